import { GatewayError } from '../errors.js'
import type { SearchedText, SearchFilter } from '../store/archive-queries.js'
import type { Store } from '../store/store.js'
import { oneLine, showable } from '../one-line.js'
import { table } from './table.js'

export interface SearchOptions {
  /** All must be in the same message; one may hold spaces. */
  words: string[]
  address?: string
  channel?: string
  /** As a person types it: a day, or a day and a time, in UTC. */
  since?: string
  limit?: number
  isJson: boolean
  /** Of the terminal, in characters. */
  width?: number
}

const TEXTS_AT_ONCE = 200
const WIDEST_CONVERSATION = 32
const WIDEST_AUTHOR = 20
const NARROWEST_LINE = 30
/** Who spoke, when it was no person and no agent. */
const GATEWAY = 'aetheel'

/** What `aetheel search` prints: the messages and replies that hold every word, newest first. */
export async function search(
  store: Pick<Store, 'archive'>,
  { words, address, channel, since, limit = 20, isJson, width = 120 }: SearchOptions,
): Promise<string> {
  const typed = words.map((word) => word.trim().normalize('NFC')).filter((word) => word !== '')
  const wanted = typed.map(fold)
  if (wanted.length === 0) throw new GatewayError('request_invalid', 'There is no word to look for. Name at least one.')
  const hits = await find(
    store,
    {
      fragments: typed.flatMap(fragmentOf),
      ...(address !== undefined && { address }),
      ...(channel !== undefined && { channel }),
      ...(since !== undefined && { since: parseSince(since) }),
    },
    wanted,
    limit + 1,
  )
  const shown = hits.slice(0, limit)
  if (isJson) return JSON.stringify(shown.map(toJson), null, 2)
  if (shown.length === 0) return 'Nothing was found.'
  const rest = hits.length > limit ? [`There are more. --limit shows more than ${limit}.`] : []
  return [hitTable(shown, wanted, width), ...rest].join('\n')
}

async function find(
  store: Pick<Store, 'archive'>,
  filter: SearchFilter,
  wanted: string[],
  limit: number,
): Promise<SearchedText[]> {
  const candidates = await store.archive.candidates(filter)
  const hits: SearchedText[] = []
  for (let start = 0; start < candidates.length && hits.length < limit; start += TEXTS_AT_ONCE) {
    const texts = await store.archive.texts(candidates.slice(start, start + TEXTS_AT_ONCE))
    hits.push(...texts.filter(({ text }) => holdsAll(text, wanted)))
  }
  return hits.slice(0, limit)
}

function holdsAll(text: string, wanted: string[]): boolean {
  const folded = fold(text)
  return wanted.every((word) => folded.includes(word))
}

/** Makes the same of what differs only in case, or in how an accent is written. */
function fold(text: string): string {
  return text.normalize('NFC').toUpperCase()
}

/** The longest part that a database compares as we do, and that stands in JSON as it is. */
function fragmentOf(word: string): string[] {
  const parts = word.match(/[ !#-[\]-~]+/g) ?? []
  const [longest] = parts.toSorted((a, b) => b.length - a.length)
  return longest === undefined ? [] : [longest.slice(0, 200)]
}

function parseSince(text: string): number {
  const [, day = '', time = '00:00'] = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)Z?)?$/.exec(text) ?? []
  const at = new Date(`${day}T${time}Z`)
  // A 30th of February is taken for a day in March.
  if (!Number.isNaN(at.getTime()) && at.toISOString().startsWith(day)) return at.getTime()
  const message = `"${showable(text)}" is no date. Write it as 2025-12-31 or 2025-12-31T18:30, in UTC.`
  throw new GatewayError('request_invalid', message)
}

function toJson({ type, id, at, channel, address, author = GATEWAY, text }: SearchedText): Record<string, string> {
  return { type, id, at: new Date(at).toISOString(), channel, address, author, text }
}

function hitTable(hits: SearchedText[], wanted: string[], width: number): string {
  const heads = hits.map(({ at, channel, address, author = GATEWAY }) => [
    `${new Date(at).toISOString().replace('T', ' ').slice(0, 19)}Z`,
    oneLine(`${channel}/${address}`, WIDEST_CONVERSATION),
    oneLine(author, WIDEST_AUTHOR),
  ])
  const [taken = 0] = table(heads)
    .split('\n')
    .map(({ length }) => length)
    .toSorted((a, b) => b - a)
  const room = Math.max(width - taken - 2, NARROWEST_LINE)
  return table(heads.map((head, index) => [...head, hitLine(hits[index]?.text ?? '', wanted, room)]))
}

/** The line with the first hit, cut around it. */
function hitLine(text: string, wanted: string[], room: number): string {
  const lines = text.split(/[\r\n]+/).map(showable)
  for (const line of lines) {
    const folded = fold(line)
    const places = wanted.map((word) => folded.indexOf(word)).filter((place) => place !== -1)
    if (places.length > 0) return cut(line, Math.min(...places), room)
  }
  // Words that go over a line's end.
  return oneLine(text, room)
}

/** At most `room` characters, with those around `place`. */
function cut(line: string, place: number, room: number): string {
  if (line.length <= room) return line
  const start = Math.min(Math.max(place - Math.floor(room / 3), 0), line.length - room)
  const isCutAfter = start + room < line.length
  const part = line.slice(start > 0 ? start + 1 : start, start + room - (isCutAfter ? 1 : 0))
  // Half of a character that takes two places.
  const whole = part.replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, '')
  return `${start > 0 ? '…' : ''}${whole}${isCutAfter ? '…' : ''}`
}
