// What people and agents wrote is quoted line by line: no heading or fence in it can escape, and code blocks survive.
// HTML tags such as `</blockquote>` could escape, so a text containing any is fenced as well.

import type { Conversation } from '../store/conversations.js'
import type { ArchivedMessage, ArchivedReply, ArchiveEntry, RunReference } from '../store/archive-queries.js'
import type { MessageState } from '../store/schema.js'

const STATES = {
  open: 'Waiting',
  answered: undefined,
  failed: 'Failed',
  cancelled: 'Cancelled',
  dropped: 'Dropped',
  refused: 'Refused',
} as const satisfies Record<MessageState, string | undefined>

/** One day of a conversation as Markdown. `date` is a UTC date. */
export function renderDay(
  { id, channel, address }: Pick<Conversation, 'id' | 'channel' | 'address'>,
  date: string,
  entries: ArchiveEntry[],
): string {
  const title = `# ${date} ${code(channel)} ${code(address)}`
  const about = `Conversation ${code(id)}. Times are UTC.`
  const sections = entries.map((entry) => (entry.type === 'message' ? renderMessage(entry) : renderReply(entry)))
  return `${[title, about, ...sections].join('\n\n')}\n`
}

function renderMessage({ at, author, kind, text, state, runs }: ArchivedMessage): string {
  const origin = kind === 'message' ? '' : ` (${kind})`
  const mark = STATES[state]
  return paragraphs([
    `## ${timeOf(at)} ${code(author)}${origin}`,
    mark && `**${mark}**`,
    ...runs.map((run) => `${code(run.backend)}: ${describeRun(run)}`),
    quote(text),
  ])
}

function renderReply({ at, reply, state, run }: ArchivedReply): string {
  const { text, notes, isError, files = [] } = reply
  return paragraphs([
    `## ${timeOf(at)} ${run ? code(run.backend) : 'Aetheel'}`,
    run && describeRun(run),
    isError && '**Error**',
    state === 'undelivered' && '**Not delivered**',
    text !== '' && quote(text),
    files.length > 0 && `Files: ${files.map((file) => code('url' in file ? file.url : file.path)).join(', ')}`,
    ...notes.map((note) => `Note:\n\n${quote(note)}`),
  ])
}

function describeRun({ id, model }: RunReference): string {
  return `run ${code(id)}${model === undefined ? '' : `, model ${code(model)}`}`
}

function paragraphs(parts: (string | false | undefined)[]): string {
  return parts.filter((part) => part !== false && part !== undefined).join('\n\n')
}

function quote(text: string): string {
  const lines = text.split(/\r\n|\r|\n/).map(withoutControls)
  const fence = '`'.repeat(Math.max(3, longestTicks(text) + 1))
  const shown = /<[a-z/!?]/i.test(lines.join('\n')) ? [fence, ...lines, fence] : lines
  return shown.map((line) => (line === '' ? '>' : `> ${line}`)).join('\n')
}

/** On one line and taken literally, whatever it contains. */
function code(text: string): string {
  const line = withoutControls(text.replace(/\s+/g, ' ')).trim()
  if (line === '') return '(none)'
  const longest = longestTicks(line)
  const ticks = '`'.repeat(longest + 1)
  return longest === 0 ? `${ticks}${line}${ticks}` : `${ticks} ${line} ${ticks}`
}

function longestTicks(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((longest, { length }) => Math.max(longest, length), 0)
}

/** Control characters would reach the terminal of anyone who prints the file. Tabs stay. */
function withoutControls(text: string): string {
  return text.replace(/[\p{Cc}\u202A-\u202E\u2066-\u2069\u2028\u2029]/gu, (character) =>
    character === '\t' ? '\t' : '',
  )
}

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(11, 19)
}
