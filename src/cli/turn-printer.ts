import type { AgentEvent } from '../backends/types.js'
import { readMediaTokens } from '../media/media-tokens.js'
import { oneLine, printable } from '../core/one-line.js'

export type Output = Pick<NodeJS.WritableStream, 'write'>

const ACTIVITY_CHARACTERS = 121

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

  constructor(
    private readonly stdout: Output,
    private readonly stderr: Output,
  ) {}

  show(event: AgentEvent): void {
    if (event.type === 'output') {
      this.#streamed += event.content
      this.#isMidLine = !event.content.endsWith('\n')
      this.stdout.write(event.content)
      return
    }
    const activity = describeActivity(event)
    if (activity !== undefined) this.note(activity)
  }

  /** Prints a line on stderr. */
  note(line: string): void {
    this.stderr.write(`${this.#isMidLine ? '\n' : ''}${line}\n`)
    this.#isMidLine = false
  }

  /** Ends the streamed text if no answer will follow, also for readers of stdout alone. */
  break(): void {
    if (this.#streamed !== '' && !this.#streamed.endsWith('\n')) this.stdout.write('\n')
    this.#streamed = ''
    this.#isMidLine = false
  }

  /** Prints the answer of record unless it has streamed. The stream may be incomplete, as after a disconnect. */
  answer(text: string): void {
    if (!hasStreamed(this.#streamed, text)) this.stdout.write(`${this.#streamed === '' ? '' : '\n\n'}${text}`)
    if (this.#streamed !== '' || text !== '') this.stdout.write('\n')
    this.#isMidLine = false
  }

  file(place: string): void {
    this.stdout.write(`File: ${printable(place)}\n`)
  }
}

/**
 * Whether an answer is what streamed last. The streamed text still has the lines that name files, and perhaps blank ones
 * at its end.
 */
export function hasStreamed(streamed: string, answer: string): boolean {
  return [streamed, readMediaTokens(streamed).text].some((said) => said.trimEnd().endsWith(answer.trimEnd()))
}

function describeActivity(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'tool_use':
      return oneLine(`→ ${event.toolName} ${JSON.stringify(event.toolInput)}`, ACTIVITY_CHARACTERS)
    case 'tool_result':
      return oneLine(`${event.isError ? '✗' : '✓'} ${event.toolName} ${event.content}`, ACTIVITY_CHARACTERS)
    case 'notice':
      return event.isTechnical ? undefined : oneLine(`! ${event.content}`, ACTIVITY_CHARACTERS)
    default:
      return undefined
  }
}
