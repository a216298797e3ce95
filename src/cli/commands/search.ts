import type { Command } from 'commander'
import { excerptOf, searchArchive, typedWords } from '../../archive/search.js'
import { GatewayError } from '../../errors.js'
import type { SearchedText } from '../../store/archive-queries.js'
import type { Store } from '../../store/store.js'
import { oneLine, showable } from '../../core/one-line.js'
import type { CommandContext } from '../command-context.js'
import { addListFlags, type ListFlags, listOptions } from '../list-command.js'
import { table } from '../table.js'

interface SearchFlags extends ListFlags {
  conversation?: string
  channel?: string
  since?: string
}

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

const WIDEST_CONVERSATION = 32
const WIDEST_AUTHOR = 20
const NARROWEST_LINE = 30
/** Who spoke, when it was no person and no agent. */
const GATEWAY = 'aetheel'

export function registerSearch(program: Command, context: CommandContext): void {
  addListFlags(program.command('search'))
    .description('Find messages and replies.')
    .argument('<words...>', 'all of them must occur')
    .option('-c, --conversation <address>', 'only in this conversation')
    .option('--channel <name>', 'only in conversations of this channel')
    .option('--since <date>', 'only from this day on, as 2025-12-31, in UTC')
    .action((words: string[], flags: SearchFlags) =>
      context.inspect((store) =>
        search(store, {
          words,
          ...listOptions(flags),
          ...(flags.conversation !== undefined && { address: flags.conversation }),
          ...(flags.channel !== undefined && { channel: flags.channel }),
          ...(flags.since !== undefined && { since: flags.since }),
        }),
      ),
    )
}

/** What `aetheel search` prints: the messages and replies that hold every word, newest first. */
export async function search(
  store: Pick<Store, 'archive'>,
  { words, address, channel, since, limit = 20, isJson, width = 120 }: SearchOptions,
): Promise<string> {
  if (typedWords(words).length === 0) {
    throw new GatewayError('request_invalid', 'There is no word to look for. Name at least one.')
  }
  const hits: SearchedText[] = []
  const filter = {
    ...(address !== undefined && { address }),
    ...(channel !== undefined && { channel }),
    ...(since !== undefined && { since: parseSince(since) }),
  }
  for await (const hit of searchArchive(store, words, filter)) {
    hits.push(hit)
    if (hits.length > limit) break
  }
  const shown = hits.slice(0, limit)
  if (isJson) return JSON.stringify(shown.map(toJson), null, 2)
  if (shown.length === 0) return 'Nothing was found.'
  const rest = hits.length > limit ? [`There are more. --limit shows more than ${limit}.`] : []
  return [hitTable(shown, words, width), ...rest].join('\n')
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

function hitTable(hits: SearchedText[], words: string[], width: number): string {
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
  return table(heads.map((head, index) => [...head, excerptOf(hits[index]?.text ?? '', words, room)]))
}
