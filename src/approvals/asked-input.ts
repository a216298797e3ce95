// A tool call as a person sees it and as a rule remembers it.
//
// Invariant: a rule allows what a person has seen, and nothing else. It therefore matches the same input character by
// character, except cosmetic fields; for a file it matches the path, since the content differs each time.

import type { ApprovalRequest } from '../backends/types.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { cut, oneLine } from '../core/one-line.js'
import { describeTool, subjectField } from '../runtime/describe-tool.js'

/** Tools that run a command line, in lower case. */
const COMMAND_TOOLS: ReadonlySet<string> = new Set(['bash', 'command_execution', 'run_shell_command'])
/** Their fields for people and for time limits, which differ on every call. */
const COSMETIC_FIELDS: ReadonlySet<string> = new Set(['description', 'reason', 'timeout'])
/** Tools that read or write one file, in lower case. */
const FILE_TOOLS: ReadonlySet<string> = new Set([
  ...['read', 'write', 'edit', 'multiedit', 'notebookedit', 'read_file', 'write_file', 'replace'],
])
const PATHS = ['file_path', 'filePath', 'path', 'absolute_path', 'notebook_path']
/** Short enough to be shown in full: a question never truncates what would be remembered. */
const MAX_SUBJECT_CHARACTERS = 700
const MAX_FIELDS = 12
/** Fits one message on any platform, with the text around it. */
const SHOWN_CHARACTERS = 1_300
const SHOWN_FIRST = 900
const SHOWN_COSMETIC = 150
const NAME_CHARACTERS = 80
/** Everything displayed as a line break. */
const LINE_END = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/g
/** More than any indentation, including characters that only look blank. */
const MANY_BLANKS = /[\s\u00AD\u115F\u1160\u180E\u200B-\u200F\u2060-\u2064\u2800\u3164\uFEFF\uFFA0]{40,}/g
const MAX_INPUT_CHARACTERS = 20_000
/** Length of each text in the input, tried in order until the whole is short enough. */
const TEXT_CHARACTERS = [4_000, 400, 40]

/**
 * The subject of a rule for exactly this call: a command line, a path or the whole input. Undefined if it contains a
 * secret or is too long.
 */
export function subjectOf({ toolName, toolInput }: ApprovalRequest, scrubber: Scrubber): string | undefined {
  const entries = Object.entries(toolInput)
  const relevant = entries.filter(([name]) => !isCosmetic(toolName, name))
  const only = isCommandTool(toolName) && relevant.length === 1 ? toolInput['command'] : undefined
  const subject =
    pathOf({ toolName, toolInput })?.path ??
    (isText(only) ? only : JSON.stringify(Object.fromEntries(relevant.toSorted(byName))))
  const isSeen = subject.length <= MAX_SUBJECT_CHARACTERS && entries.length <= MAX_FIELDS
  const isKept = isSeen && !/\0|\p{Surrogate}/u.test(subject)
  return isKept && scrubber.scrub(subject) === subject ? subject : undefined
}

/**
 * The one file a call is about, and the field that names it. Undefined if several fields disagree: it is unknown which
 * one the tool reads.
 */
export function pathOf({ toolName, toolInput }: ApprovalRequest): { name: string; path: string } | undefined {
  if (!FILE_TOOLS.has(toolName.toLowerCase())) return undefined
  const [first, ...others] = PATHS.flatMap((name) => {
    const path = toolInput[name]
    return isText(path) ? [{ name, path }] : []
  })
  return first && others.every(({ path }) => path === first.path) ? first : undefined
}

/** One line. Contract: says how much it omits, except content written to the one file it names. */
export function summaryOf({ toolName, toolInput }: ApprovalRequest): string {
  const line = describeTool({ name: toolName, input: toolInput })
  if (pathOf({ toolName, toolInput })) return line
  const shown = isCommandTool(toolName) ? 'command' : subjectField(toolInput)
  const more = Object.keys(toolInput).filter((name) => name !== shown && !isCosmetic(toolName, name)).length
  return more === 0 ? line : `${line} (and ${more} more ${more === 1 ? 'field' : 'fields'})`
}

/**
 * The input as the question shows it.
 *
 * Contract: the command or the file comes first, and no field hides another, neither by its length nor by lines that
 * look like another field. Truncated text says how much is missing, and so do runs of blanks that would push the rest
 * out of sight.
 */
export function shownFields(request: ApprovalRequest): string {
  const { toolName } = request
  const first = firstField(request)
  const entries = fieldsOf(request)
  const fields = entries.slice(0, MAX_FIELDS).map(({ name, line }) => {
    return cut(line, name === first ? SHOWN_FIRST : isCosmetic(toolName, name) ? SHOWN_COSMETIC : SHOWN_CHARACTERS)
  })
  const more = entries.length - fields.length
  const lead = entries[0]?.name === first ? fields.slice(0, 1) : []
  const lines = [...lead, ...share(fields.slice(lead.length), SHOWN_CHARACTERS - lead.join().length)]
  return [...lines, ...(more > 0 ? [`… and ${more} more fields`] : [])].join('\n')
}

/** Like `shownFields`, in full. */
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
  const rank = (name: string): number => (name === first ? 0 : isCosmetic(request.toolName, name) ? 2 : 1)
  const entries = Object.entries(request.toolInput).toSorted(([one], [other]) => rank(one) - rank(other))
  return entries.map(([name, value]) => {
    const whole = typeof value === 'string' ? value.trim() : JSON.stringify(value)
    const text = whole.replaceAll(MANY_BLANKS, ({ length }) => ` … (${length} blanks) … `)
    const line = entries.length === 1 ? text : `${oneLine(name, NAME_CHARACTERS)}: ${text.replaceAll(LINE_END, '\n  ')}`
    return { name, line }
  })
}

/** Shortens texts to fit `room` together: long ones are cut to equal length. */
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

function isCosmetic(toolName: string, field: string): boolean {
  return isCommandTool(toolName) && COSMETIC_FIELDS.has(field)
}

/** The input without known secrets and within the size limit. */
export function shownInput(input: Record<string, unknown>, scrubber: Scrubber): Record<string, unknown> {
  const json = scrubber.scrubJson(JSON.stringify(input))
  for (const characters of TEXT_CHARACTERS) {
    const shortened = JSON.stringify(JSON.parse(json, (_, value: unknown) => shorten(value, characters)))
    if (shortened.length <= MAX_INPUT_CHARACTERS) return JSON.parse(shortened) as Record<string, unknown>
  }
  return { beginning: shorten(json, MAX_INPUT_CHARACTERS) }
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
