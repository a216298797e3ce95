// What an agent wants to do, as a person sees it and as a rule remembers it.
//
// What must stay true: a rule allows what a person has seen, and nothing else. So it holds for the same input to the
// character, but for words that change nothing; of a file, for its path, since what is written differs each time.

import type { ApprovalRequest } from '../backends/types.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { cut, oneLine } from '../core/one-line.js'
import { describeTool, subjectField } from '../runtime/describe-tool.js'

/** The tools of the agents that run a command line, in lower case. */
const COMMAND_TOOLS: ReadonlySet<string> = new Set(['bash', 'command_execution', 'run_shell_command'])
/** What these are given beside it for people, and how long it may take: an agent finds others each time. */
const IDLE_WORDS: ReadonlySet<string> = new Set(['description', 'reason', 'timeout'])
/** The tools of the agents that read or write one file, in lower case. */
const FILE_TOOLS: ReadonlySet<string> = new Set([
  ...['read', 'write', 'edit', 'multiedit', 'notebookedit', 'read_file', 'write_file', 'replace'],
])
const PATHS = ['file_path', 'filePath', 'path', 'absolute_path', 'notebook_path']
/** So few that a person has seen all of them: what is remembered is never cut off in the question. */
const MOST_SUBJECT_CHARACTERS = 700
const MOST_FIELDS = 12
/** Of the question: in one message of any platform, with all that stands around it. */
const SHOWN_CHARACTERS = 1_300
const SHOWN_FIRST = 900
const SHOWN_IDLE = 150
const NAME_CHARACTERS = 80
/** Whatever is shown as the end of a line. */
const LINE_END = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/g
/** More than one indents by, also of what only looks like blanks. */
const MANY_BLANKS = /[\s\u00AD\u115F\u1160\u180E\u200B-\u200F\u2060-\u2064\u2800\u3164\uFEFF\uFFA0]{40,}/g
const MOST_INPUT_CHARACTERS = 20_000
/** Of one text in it: as much as leaves the whole short enough. */
const TEXT_CHARACTERS = [4_000, 400, 40]

/** What a rule for exactly this is about: a command line, a path, or all of the input. None where it must not be kept, as
 *  with a secret in it, or is too long. */
export function subjectOf({ toolName, toolInput }: ApprovalRequest, scrubber: Scrubber): string | undefined {
  const entries = Object.entries(toolInput)
  const telling = entries.filter(([name]) => !isIdle(toolName, name))
  const only = isCommandTool(toolName) && telling.length === 1 ? toolInput['command'] : undefined
  const subject =
    pathOf({ toolName, toolInput })?.path ??
    (isText(only) ? only : JSON.stringify(Object.fromEntries(telling.toSorted(byName))))
  const isSeen = subject.length <= MOST_SUBJECT_CHARACTERS && entries.length <= MOST_FIELDS
  const isKept = isSeen && !/\0|\p{Surrogate}/u.test(subject)
  return isKept && scrubber.scrub(subject) === subject ? subject : undefined
}

/** The one file that a tool is about, and under which name. With several names, nobody knows which one the tool reads. */
export function pathOf({ toolName, toolInput }: ApprovalRequest): { name: string; path: string } | undefined {
  if (!FILE_TOOLS.has(toolName.toLowerCase())) return undefined
  const [first, ...others] = PATHS.flatMap((name) => {
    const path = toolInput[name]
    return isText(path) ? [{ name, path }] : []
  })
  return first && others.every(({ path }) => path === first.path) ? first : undefined
}

/** In one line. Contract: says what it leaves out, but for what is written to the one file that it names. */
export function summaryOf({ toolName, toolInput }: ApprovalRequest): string {
  const line = describeTool({ name: toolName, input: toolInput })
  if (pathOf({ toolName, toolInput })) return line
  const told = isCommandTool(toolName) ? 'command' : subjectField(toolInput)
  const more = Object.keys(toolInput).filter((name) => name !== told && !isIdle(toolName, name)).length
  return more === 0 ? line : `${line} (and ${more} more ${more === 1 ? 'field' : 'fields'})`
}

/**
 * The input as the question shows it.
 *
 * Contract: the command or the file comes first, and no field hides another: not by its length, nor by lines that look
 * like a field of their own. What is cut off says how much, and so do blanks that would push the rest out of sight.
 */
export function shownFields(request: ApprovalRequest): string {
  const { toolName } = request
  const first = firstField(request)
  const entries = fieldsOf(request)
  const fields = entries.slice(0, MOST_FIELDS).map(({ name, line }) => {
    return cut(line, name === first ? SHOWN_FIRST : isIdle(toolName, name) ? SHOWN_IDLE : SHOWN_CHARACTERS)
  })
  const more = entries.length - fields.length
  const lead = entries[0]?.name === first ? fields.slice(0, 1) : []
  const lines = [...lead, ...share(fields.slice(lead.length), SHOWN_CHARACTERS - lead.join().length)]
  return [...lines, ...(more > 0 ? [`… and ${more} more fields`] : [])].join('\n')
}

/** The same with all there is of it. */
export function allFields(request: ApprovalRequest): string {
  return fieldsOf(request)
    .map(({ line }) => line)
    .join('\n')
}

function firstField(request: ApprovalRequest): string | undefined {
  return isCommandTool(request.toolName) ? 'command' : pathOf(request)?.name
}

function fieldsOf(request: ApprovalRequest): { name: string; line: string }[] {
  const first = firstField(request)
  const rank = (name: string): number => (name === first ? 0 : isIdle(request.toolName, name) ? 2 : 1)
  const entries = Object.entries(request.toolInput).toSorted(([one], [other]) => rank(one) - rank(other))
  return entries.map(([name, value]) => {
    const whole = typeof value === 'string' ? value.trim() : JSON.stringify(value)
    const text = whole.replaceAll(MANY_BLANKS, ({ length }) => ` … (${length} blanks) … `)
    const line = entries.length === 1 ? text : `${oneLine(name, NAME_CHARACTERS)}: ${text.replaceAll(LINE_END, '\n  ')}`
    return { name, line }
  })
}

/** Texts that take no more room together: the long ones are cut, all at the same length. */
function share(texts: string[], room: number): string[] {
  let left = room
  for (const [index, { length }] of texts.toSorted((one, other) => one.length - other.length).entries()) {
    const limit = Math.floor(left / (texts.length - index))
    if (length > limit) return texts.map((text) => cut(text, limit))
    left -= length
  }
  return texts
}

function isCommandTool(toolName: string): boolean {
  return COMMAND_TOOLS.has(toolName.toLowerCase())
}

function isIdle(toolName: string, field: string): boolean {
  return isCommandTool(toolName) && IDLE_WORDS.has(field)
}

/** The input without known secrets, and not too long. */
export function shownInput(input: Record<string, unknown>, scrubber: Scrubber): Record<string, unknown> {
  const json = scrubber.scrubJson(JSON.stringify(input))
  for (const characters of TEXT_CHARACTERS) {
    const shortened = JSON.stringify(JSON.parse(json, (_, value: unknown) => shorten(value, characters)))
    if (shortened.length <= MOST_INPUT_CHARACTERS) return JSON.parse(shortened) as Record<string, unknown>
  }
  return { beginning: shorten(json, MOST_INPUT_CHARACTERS) }
}

function shorten(value: unknown, characters: number): unknown {
  return typeof value === 'string' ? cut(value, characters) : value
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1
}
