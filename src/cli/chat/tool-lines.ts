// An agent's use of a tool, as short lines.

import type { AgentEvent } from '../../backends/types.js'
import { cutLine, type DiffLine, diffOf } from '../../core/line-diff.js'
import { oneLine, printableLines } from '../../core/one-line.js'
import { fileChangesOf, subjectOf } from '../../core/tool-input.js'
import { codeSpans } from './code-colours.js'
import { clock } from '../../core/local-time.js'
import { type Line, type Span, span, truncate, widthOfLine } from './styled-text.js'

export interface RunningTool {
  id: string
  name: string
  /** What it works on, in one line. */
  subject: string
  input: Record<string, unknown>
  startedAt: number
}

type ToolResult = Pick<Extract<AgentEvent, { type: 'tool_result' }>, 'content' | 'isError'>

const SHOWN_OUTPUT = 4
const SHOWN_CHANGES = 30
const NAME_CHARACTERS = 60
const SUBJECT_CHARACTERS = 300
/** Only the beginning of a huge output is read. */
const READ_CHARACTERS = 20_000
/** Their results, a file or a list, matter only to the agent. */
const READING_TOOL = /^(?:read|grep|glob|ls|list|view)(?:_|$)|(?:file|todo|many_files)$/i

/** The line of a running tool. */
export function runningLine(tool: RunningTool, now: number, width: number): Line {
  return toolLine(span('● ', 'yellow'), tool, now - tool.startedAt, width)
}

/** The lines of a finished tool. */
export function finishedLines(tool: RunningTool, result: ToolResult, now: number, width: number): Line[] {
  const mark = result.isError ? span('✗ ', 'red') : span('✓ ', 'green')
  const changes = result.isError ? [] : changeLines(tool, width)
  const details = changes.length > 0 ? changes : outputLines(tool, result, width)
  return [toolLine(mark, tool, now - tool.startedAt, width), ...details]
}

/** Paths inside the agent's directory are shown relative to it: the end says more than the beginning. */
export function subjectWithin(input: Record<string, unknown>, directory: string | undefined): string {
  const subject = oneLine(subjectOf(input), SUBJECT_CHARACTERS)
  return directory !== undefined && subject.startsWith(`${directory}/`) ? subject.slice(directory.length + 1) : subject
}

/** At most `shown` lines, and how many more there are. */
export function fold<T>(lines: readonly T[], shown: number): { lines: readonly T[]; more: number } {
  // Saying that one line is missing takes a line, too.
  if (lines.length <= shown + 1) return { lines, more: 0 }
  return { lines: lines.slice(0, shown), more: lines.length - shown }
}

function toolLine(mark: Span, { name, subject }: RunningTool, durationMs: number, width: number): Line {
  const time = span(`  ${clock(durationMs)}`, 'dim')
  const words = [mark, span(oneLine(name, NAME_CHARACTERS), 'bold'), span(` ${subject}`)]
  return [...truncate(words, width - widthOfLine([time])), time]
}

function changeLines({ name, input }: RunningTool, width: number): Line[] {
  let moreBehind = 0
  const lines = fileChangesOf(name, input).flatMap((change): (() => Line)[] => {
    if (change.kind === 'edit') return diffOf(change.before, change.after).map((line) => () => diffSpans(line))
    const { lines: first, more } = firstLines(change.patch, SHOWN_CHANGES + 2)
    moreBehind += more
    return first.map((line) => () => codeSpans(cutLine(line), 'diff'))
  })
  return folded(lines, SHOWN_CHANGES, width, moreBehind)
}

function diffSpans({ kind, text }: DiffLine): Line {
  if (kind === 'added') return [span(`+ ${text}`, 'green')]
  if (kind === 'removed') return [span(`- ${text}`, 'red')]
  return [span(kind === 'gap' ? text : `  ${text}`, 'dim')]
}

/** At most `count` lines; the rest are only counted. */
function firstLines(text: string, count: number): { lines: string[]; more: number } {
  const lines = text.split('\n', count)
  const length = lines.reduce((sum, line) => sum + line.length + 1, 0)
  return { lines, more: length > text.length ? 0 : countLines(text, length) }
}

function countLines(text: string, from: number): number {
  let count = 1
  for (let end = text.indexOf('\n', from); end !== -1; end = text.indexOf('\n', end + 1)) count += 1
  return count
}

function outputLines({ name }: RunningTool, { content, isError }: ToolResult, width: number): Line[] {
  const text = printableLines(content.slice(0, READ_CHARACTERS)).trimEnd()
  if (text === '') return []
  const rest = content.slice(READ_CHARACTERS).trimEnd()
  const lines = text.split('\n')
  const more = rest === '' ? 0 : rest.split('\n').length - 1
  if (!isError && READING_TOOL.test(name)) return [indented([span(linesText(lines.length + more), 'dim')], width)]
  const formats = isError ? (['red'] as const) : (['dim'] as const)
  return folded(
    lines.map((line) => () => [span(cutLine(line), ...formats)]),
    SHOWN_OUTPUT,
    width,
    more,
  )
}

/** Styles only the lines that are shown. */
function folded(all: (() => Line)[], shown: number, width: number, moreBehind = 0): Line[] {
  const { lines, more } = fold(all, shown)
  const left = more + moreBehind
  const rows = lines.map((line) => indented(line(), width))
  return left === 0 ? rows : [...rows, indented([span(`… ${linesText(left, 'more ')}`, 'dim')], width)]
}

function linesText(count: number, which = ''): string {
  return `${count} ${which}${count === 1 ? 'line' : 'lines'}`
}

function indented(line: Line, width: number): Line {
  return truncate([span('  '), ...line], width)
}
