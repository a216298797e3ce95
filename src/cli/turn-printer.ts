import { isAskedNotice } from '../core/asked-notice.js'
import type { AgentEvent } from '../backends/types.js'
import { oneLine, printable } from '../core/one-line.js'
import { subjectOf } from '../core/tool-input.js'
import { readMediaTokens } from '../media/media-tokens.js'
import { clock, withLocalTimes } from '../core/local-time.js'
import { NOBODY } from './terminal-approval.js'

export type Output = Pick<NodeJS.WritableStream, 'write'>

const NOTICE_CHARACTERS = 121
const TOOL_CHARACTERS = 100
const PROBLEM_CHARACTERS = 100

/** Shows one turn to a person. */
export interface Printer {
  show(event: AgentEvent): void
  note(line: string): void
  /** Ends the streamed text if no answer will follow. */
  break(): void
  /** The answer of record, which may have streamed. */
  answer(text: string): void
  file(place: string): void
}

/** Prints one turn as plain text: what the agent says on stdout, its activity on stderr. */
export class TurnPrinter implements Printer {
  #streamed = ''
  /** On a terminal, which shows both streams. */
  #isMidLine = false
  readonly #tools = new Map<string, { line: string; startedAt: number }>()
  /** The tool whose line is the last one; it is completed when the tool ends. */
  #openTool: string | undefined

  constructor(
    private readonly stdout: Output,
    private readonly stderr: Output,
    private readonly now: () => number,
  ) {}

  show(event: AgentEvent): void {
    switch (event.type) {
      case 'output':
        this.#endToolLine()
        this.#streamed += event.content
        this.#isMidLine = !event.content.endsWith('\n')
        this.stdout.write(event.content)
        break
      case 'tool_use':
        return this.#beginTool(event)
      case 'tool_result':
        return this.#endTool(event)
      case 'notice':
        // The question itself is shown.
        if (event.isTechnical || isAskedNotice(event.content)) return
        return this.note(oneLine(`! ${event.content}`, NOTICE_CHARACTERS))
      default: // The answer shows it.
    }
  }

  note(line: string): void {
    this.line(withLocalTimes(line, this.now()))
  }

  /** Prints a line on stderr, as it is. */
  line(line: string): void {
    this.#beginLine()
    this.stderr.write(`${line}\n`)
  }

  /** Ends the streamed text if no answer will follow, also for readers of only stdout. */
  break(): void {
    this.#endToolLine()
    if (this.#streamed !== '' && !this.#streamed.endsWith('\n')) this.stdout.write('\n')
    this.#streamed = ''
    this.#isMidLine = false
  }

  /** Prints the answer of record unless it has streamed. The stream may be incomplete, as after a disconnect. */
  answer(text: string): void {
    this.#endToolLine()
    if (!hasStreamed(this.#streamed, text)) this.stdout.write(`${this.#streamed === '' ? '' : '\n\n'}${text}`)
    if (this.#streamed !== '' || text !== '') this.stdout.write('\n')
    this.#isMidLine = false
  }

  file(place: string): void {
    this.stdout.write(`File: ${printable(place)}\n`)
  }

  #beginTool({ toolId, toolName, toolInput, timestamp }: Extract<AgentEvent, { type: 'tool_use' }>): void {
    const line = oneLine(`→ ${toolName} ${subjectOf(toolInput)}`, TOOL_CHARACTERS)
    this.#tools.set(toolId, { line, startedAt: timestamp })
    this.#beginLine()
    this.stderr.write(line)
    this.#openTool = toolId
  }

  #endTool({ toolId, toolName, content, isError, timestamp }: Extract<AgentEvent, { type: 'tool_result' }>): void {
    const { line, startedAt } = this.#tools.get(toolId) ?? {
      line: oneLine(`→ ${toolName}`, TOOL_CHARACTERS),
      startedAt: timestamp,
    }
    this.#tools.delete(toolId)
    // It was already said once that nobody could allow it.
    const problem = isError && !content.includes(NOBODY) ? oneLine(content, PROBLEM_CHARACTERS) : ''
    const end = `  ${isError ? '✗' : '✓'} ${clock(timestamp - startedAt)}${problem === '' ? '' : `: ${problem}`}`
    if (this.#openTool !== toolId) return this.line(line + end)
    this.#openTool = undefined
    this.stderr.write(`${end}\n`)
  }

  #beginLine(): void {
    this.#endToolLine()
    if (this.#isMidLine) this.stderr.write('\n')
    this.#isMidLine = false
  }

  #endToolLine(): void {
    if (this.#openTool !== undefined) this.stderr.write('\n')
    this.#openTool = undefined
  }
}

/**
 * Whether an answer is what streamed last. The streamed text still has the lines that name files, and may end with
 * blank lines.
 */
export function hasStreamed(streamed: string, answer: string): boolean {
  return [streamed, readMediaTokens(streamed).text].some((said) => said.trimEnd().endsWith(answer.trimEnd()))
}
