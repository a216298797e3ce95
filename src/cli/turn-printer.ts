import type { AgentEvent } from '../backends/types.js'
import { readMediaTokens } from '../media/media-tokens.js'
import { oneLine, showable } from '../core/one-line.js'

export type Output = Pick<NodeJS.WritableStream, 'write'>

const ACTIVITY_CHARACTERS = 121

/** Prints one turn of an agent: what it says to stdout, what it does to stderr. */
export class TurnPrinter {
  #streamed = ''
  /** Of a terminal, which shows both. */
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

  /** A line beside what the agent says. */
  note(line: string): void {
    this.stderr.write(`${this.#isMidLine ? '\n' : ''}${line}\n`)
    this.#isMidLine = false
  }

  /** Ends what was said, when there will be no answer: also for who reads stdout alone. */
  break(): void {
    if (this.#streamed !== '' && !this.#streamed.endsWith('\n')) this.stdout.write('\n')
    this.#streamed = ''
    this.#isMidLine = false
  }

  /** The answer of record. What streamed may fall short of it, as when the connection broke on the way. */
  answer(text: string): void {
    // What streamed still has the lines that name files.
    const isThere = [this.#streamed, readMediaTokens(this.#streamed).text].some((said) => said.endsWith(text))
    if (!isThere) this.stdout.write(`${this.#streamed === '' ? '' : '\n\n'}${text}`)
    if (this.#streamed !== '' || text !== '') this.stdout.write('\n')
    this.#isMidLine = false
  }

  /** What comes with the answer. */
  file(place: string): void {
    this.stdout.write(`File: ${showable(place)}\n`)
  }
}

function describeActivity(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'tool_use':
      return oneLine(`→ ${event.toolName} ${JSON.stringify(event.toolInput)}`, ACTIVITY_CHARACTERS)
    case 'tool_result':
      return oneLine(`${event.isError ? '✗' : '✓'} ${event.toolName} ${event.content}`, ACTIVITY_CHARACTERS)
    case 'notice':
      return oneLine(`! ${event.content}`, ACTIVITY_CHARACTERS)
    default:
      return undefined
  }
}
