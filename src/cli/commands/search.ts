import type { Command } from 'commander'
import { excerptOf, searchArchive, typedWords } from '../../archive/search.js'
import { defined } from '../../core/defined.js'
import { GatewayError } from '../../errors.js'
import type { SearchedText } from '../../store/archive-queries.js'
import type { Store } from '../../store/store.js'
import { oneLine, printable } from '../../core/one-line.js'
import { localTime } from '../listing.js'
import type { CommandContext } from '../command-context.js'
import { addListFlags, type ListFlags, listOptions } from '../list-command.js'
import { table, tableWidth } from '../table.js'

interface SearchFlags extends ListFlags {
  conversation?: string
  channel?: string
  since?: string
}

export interface SearchOptions {
  /** All must occur in the same message; each may contain spaces. */
  words: string[]
  address?: string | undefined
  channel?: string | undefined
  /** As typed: a date, or a date and time, in the machine's time zone, or in UTC with a Z. */
  since?: string | undefined
  limit?: number
  isJson: boolean
  /** Terminal width in characters. */
  width?: number
}

const MAX_CONVERSATION_WIDTH = 32
const MAX_AUTHOR_WIDTH = 20
const MIN_LINE_WIDTH = 30
/** The author of what neither a person nor an agent wrote. */
const GATEWAY = 'aetheel'

export function registerSearch(program: Command, context: CommandContext): void {
  addListFlags(program.command('search'))
    .description('Find messages and replies.')
    .argument('<words...>', 'words that must all occur')
    .option('-c, --conversation <address>', 'only in this conversation')
    .option('--channel <name>', 'only in conversations of this channel')
    .option('--since <date>', 'only from this date on, such as 2025-12-31')
    .action((words: string[], flags: SearchFlags) =>
      context.inspect((store) =>
        search(store, {
          words,
          ...listOptions(flags),
          address: flags.conversation,
          channel: flags.channel,
          since: flags.since,
        }),
      ),
    )
}

/** The output of `aetheel search`: messages and replies with every word, newest first. */
export async function search(
  store: Pick<Store, 'archive'>,
  { words, address, channel, since, limit = 20, isJson, width = 120 }: SearchOptions,
): Promise<string> {
  if (typedWords(words).length === 0) {
    throw new GatewayError('request_invalid', 'Give at least one word to search for.')
  }
  const hits: SearchedText[] = []
  const filter = defined({ address, channel, since: since === undefined ? undefined : parseSince(since) })
  for await (const hit of searchArchive(store, words, filter)) {
    hits.push(hit)
    if (hits.length > limit) break
  }
  const shown = hits.slice(0, limit)
  if (isJson) return JSON.stringify(shown.map(toJson), null, 2)
  if (shown.length === 0) return 'Nothing found.'
  const rest = hits.length > limit ? [`There are more. To see more than ${limit}, use --limit.`] : []
  return [hitTable(shown, words, width), ...rest].join('\n')
}

function parseSince(text: string): number {
  const [, day = '', time = '00:00', zone = ''] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(Z?))?$/.exec(text) ?? []
  const at = Date.parse(`${day}T${time}${zone}`)
  // `Date` turns 30 February into a date in March.
  if (!Number.isNaN(at) && new Date(`${day}T00:00Z`).toISOString().startsWith(day)) return at
  const message = `"${printable(text)}" is not a date. Write it as 2025-12-31 or 2025-12-31T18:30.`
  throw new GatewayError('request_invalid', message)
}

function toJson({ type, id, at, channel, address, author = GATEWAY, text }: SearchedText): Record<string, string> {
  return { type, id, at: new Date(at).toISOString(), channel, address, author, text }
}

function hitTable(hits: SearchedText[], words: string[], width: number): string {
  const heads = hits.map(({ at, channel, address, author = GATEWAY }) => [
    localTime(at),
    oneLine(`${channel}/${address}`, MAX_CONVERSATION_WIDTH),
    oneLine(author, MAX_AUTHOR_WIDTH),
  ])
  const room = Math.max(width - tableWidth(heads) - 2, MIN_LINE_WIDTH)
  return table(heads.map((head, index) => [...head, excerptOf(hits[index]?.text ?? '', words, room)]))
}
