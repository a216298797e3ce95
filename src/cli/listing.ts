import { isProcessAlive } from '../processes/reaper.js'
import type { Store } from '../store/store.js'
import { oneLine } from '../core/one-line.js'
import { table, tableWidth } from './table.js'

export interface ListOptions {
  limit: number
  isJson: boolean
  /** Terminal width in characters. */
  width: number
  now: number
}

const MAX_CELL_WIDTH = 40
const MIN_TEXT_WIDTH = 20
/** The width of the id column. */
const INDENT = ' '.repeat(10)
/** An agent's last message may fill a page. */
const MAX_DETAIL_CHARACTERS = 1_000

/** What each column shows of an item, by its heading. */
export type Columns<Item> = Record<string, (item: Item) => string>

/** The items as JSON or as a table; `none` if there are no items. */
export function listing<Item>(
  items: Item[],
  { isJson, width }: Pick<ListOptions, 'isJson' | 'width'>,
  none: string,
  columns: Columns<Item>,
): string {
  return isJson ? JSON.stringify(items, null, 2) : section({ items, width }, columns) || none
}

interface Section<Item> {
  heading?: string
  items: Item[]
  width: number
  /** Shown below its row, wrapped in full. */
  detailsOf?: (item: Item) => string
}

/**
 * A table under a heading; empty without items. Cells may hold untrusted text of any length: the last column gets the
 * rest of the line, the others a maximum width.
 */
export function section<Item>(
  { heading, items, width, detailsOf = () => '' }: Section<Item>,
  columns: Columns<Item>,
): string {
  if (items.length === 0) return ''
  const rows = [Object.keys(columns), ...items.map((item) => Object.values(columns).map((cell) => cell(item)))]
  const heads = rows.map((row) => row.slice(0, -1).map((cell) => oneLine(cell, MAX_CELL_WIDTH) || '-'))
  const room = Math.max(width - tableWidth(heads) - 2, MIN_TEXT_WIDTH)
  const lines = rows.map((row, index) => [...(heads[index] ?? []), oneLine(row.at(-1) ?? '', room) || '-'])
  const [head = '', ...body] = table(lines).split('\n')
  const details = items.map((item) => wrapped(detailsOf(item), width))
  const below = body.flatMap((row, index) => [row, ...(details[index] ?? [])])
  return [...(heading === undefined ? [] : [heading]), head, ...below].join('\n')
}

function wrapped(text: string, width: number): string[] {
  const room = Math.max(width - INDENT.length, MIN_TEXT_WIDTH)
  const lines: string[] = []
  for (const word of oneLine(text, MAX_DETAIL_CHARACTERS).split(' ')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`
    if (lines.length > 0 && longer.length <= room) lines[lines.length - 1] = longer
    else if (word !== '') lines.push(word)
  }
  return lines.map((line) => `${INDENT}${line}`)
}

export function terminalWidth(): number {
  // 0 if the terminal does not report it.
  return process.stdout.columns || 120
}

export function conversationName({ channel, address }: { channel: string; address: string }): string {
  return `${channel}/${address}`
}

/** Enough to identify it. */
export function shortId(id: string): string {
  return id.slice(0, 8)
}

/** A prefix for the tables. Anything that cannot be one becomes a prefix that matches nothing. */
export function prefixOf(id: string): string {
  const prefix = id.toLowerCase()
  return /^[0-9a-f-]{4,36}$/.test(prefix) ? prefix : 'none'
}

export function severalIds(id: string): string {
  return `More than one id begins with ${id}. Type more characters.`
}

/** Such as `2026-03-29 03:00:05 CEST`, in the time zone of this machine. */
export function localTime(at: number): string {
  const time = new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'medium' }).format(at)
  const parts = new Intl.DateTimeFormat('en', { timeZoneName: 'short' }).formatToParts(at)
  return `${time} ${parts.find(({ type }) => type === 'timeZoneName')?.value ?? ''}`.trimEnd()
}

/** How long ago, in the largest unit that fits. */
export function age(then: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - then) / 1000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** A predicate for gateways that may still be working: those alive here, and all on other machines. */
export async function workingGateways({ ledger }: Pick<Store, 'ledger'>): Promise<(id?: string) => boolean> {
  const gateways = await ledger.gateways()
  const working = new Set(gateways.filter((gateway) => isProcessAlive(gateway) !== 'dead').map(({ id }) => id))
  return (id) => id !== undefined && working.has(id)
}
