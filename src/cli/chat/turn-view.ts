import { isAskedNotice } from '../../core/asked-notice.js'
import type { AgentEvent } from '../../backends/types.js'
import { oneLine, printable } from '../../core/one-line.js'
import { hasStreamed, type Printer } from '../turn-printer.js'
import { withLocalTimes } from '../../core/local-time.js'
import { codeLines, markdownLines } from './markdown.js'
import { type MarkdownPart, MarkdownStream } from './markdown-stream.js'
import { type Line, span, wrap } from './styled-text.js'
import { finishedLines, runningLine, type RunningTool, subjectWithin } from './tool-lines.js'
import type { Transcript } from './transcript.js'

export interface TurnViewOptions {
  transcript: Transcript
  width(): number
  now(): number
  /** Where the agent works, if that is on this machine. */
  directory(): string | undefined
  /** Called when there is something new to show. */
  onChange(): void
}

const NOTICE_CHARACTERS = 300
const SHOWN_TOOLS = 6

/** A running turn: finished parts go into the transcript, the rest is shown below it. */
export class TurnView implements Printer {
  readonly startedAt: number
  /** What the agent is doing. */
  activity = 'Starting'
  model: string | undefined
  isRunning = false
  #markdown = new MarkdownStream()
  #streamed = ''
  #tools: RunningTool[] = []

  constructor(private readonly options: TurnViewOptions) {
    this.startedAt = options.now()
  }

  show(event: AgentEvent): void {
    this.isRunning = event.type !== 'complete'
    switch (event.type) {
      case 'started':
        this.model = event.model
        break
      case 'thinking':
        this.activity = 'Thinking'
        break
      case 'output':
        this.activity = 'Writing'
        this.#streamed += event.content
        this.#addParts(this.#markdown.push(event.content))
        break
      case 'tool_use':
        this.#endText()
        this.#tools.push(this.#tool(event.toolId, event.toolName, event.toolInput))
        break
      case 'tool_result':
        this.#endTool(event)
        break
      case 'notice':
        if (!event.isTechnical && !isAskedNotice(event.content))
          this.note(`! ${oneLine(event.content, NOTICE_CHARACTERS)}`)
        break
      case 'complete':
        this.#endText()
        this.#tools = []
        break
      case 'error': // The answer shows it.
    }
    this.options.onChange()
  }

  /** Shown above the unfinished part: a paragraph or code block continues below it. */
  note(text: string): void {
    const { transcript, width, now } = this.options
    transcript.add('note', noteLines(withLocalTimes(text, now()), width()))
    this.options.onChange()
  }

  break(): void {
    this.#endText()
    this.#tools = []
    this.#streamed = ''
    this.isRunning = false
    this.options.onChange()
  }

  answer(text: string): void {
    this.#endText()
    if (!hasStreamed(this.#streamed, text)) {
      this.#addParts(this.#markdown.push(text))
      this.#endText()
    }
    // A question may come as a reply in the middle of a turn, and more may stream after it.
    this.#streamed = ''
    this.options.onChange()
  }

  file(place: string): void {
    const { transcript, width } = this.options
    transcript.add('note', wrap([span('File: ', 'dim'), span(printable(place), 'underline')], width()))
    this.options.onChange()
  }

  /** The unfinished part, at most `maxRows` rows: the running tools, or the end of the text. */
  live(maxRows: number): Line[] {
    const { transcript, width, now } = this.options
    const tools = this.#tools.slice(-SHOWN_TOOLS).map((tool) => runningLine(tool, now(), width()))
    if (tools.length > 0) return [...transcript.gapBefore('tool'), ...tools].slice(-maxRows)
    const part = this.#markdown.unfinished()
    if (!part) return []
    const entry = part.kind === 'block' ? 'text' : 'code'
    return [...transcript.gapBefore(entry), ...partLines(part, width())].slice(-maxRows)
  }

  get runningTool(): string | undefined {
    return this.#tools.at(-1)?.name
  }

  #endText(): void {
    this.#addParts(this.#markdown.end())
  }

  #endTool(event: Extract<AgentEvent, { type: 'tool_result' }>): void {
    const { transcript, width, now } = this.options
    const known = this.#tools.find(({ id }) => id === event.toolId)
    this.#endText()
    this.#tools = this.#tools.filter((tool) => tool !== known)
    const tool = known ?? this.#tool(event.toolId, event.toolName, {})
    transcript.add('tool', finishedLines(tool, event, now(), width()))
    this.activity = 'Thinking'
  }

  #tool(id: string, name: string, input: Record<string, unknown>): RunningTool {
    const { directory, now } = this.options
    return { id, name, subject: subjectWithin(input, directory()), input, startedAt: now() }
  }

  #addParts(parts: MarkdownPart[]): void {
    const { transcript, width } = this.options
    for (const part of parts) {
      if (part.kind === 'code-start') transcript.separate()
      else transcript.add(part.kind === 'block' ? 'text' : 'code', partLines(part, width()))
    }
  }
}

export function noteLines(text: string, width: number): Line[] {
  if (text.startsWith('! ')) return wrap([span('! ', 'yellow'), span(text.slice(2), 'dim')], width)
  if (text.startsWith('Error: ')) return wrap([span(text, 'red')], width)
  return wrap([span(text, 'dim')], width)
}

function partLines(part: MarkdownPart, width: number): Line[] {
  if (part.kind === 'block') return markdownLines(part.text, width)
  return part.kind === 'code' ? codeLines(part.line, part.language, width) : []
}
