import { isCommand } from '../../turns/accept.js'

/** A paste longer than the terminal's buffer arrives in parts. */
const PART_MS = 50

/**
 * Groups typed lines into messages, at a terminal that does not mark pastes.
 *
 * Lines that arrive at once are one message. Such a terminal returns one line per read, so pasted lines arrive in
 * consecutive turns of the event loop.
 */
export class TypedLines {
  #lines: string[] = []
  #waiting: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly onText: (text: string) => void) {}

  push(line: string): void {
    this.#stopWaiting()
    this.#lines.push(line)
    // The event loop reads the next line before it runs the second callback.
    this.#waiting = setImmediate(() => {
      this.#waiting = setImmediate(() => {
        if (this.#lines.length === 1) this.#flush()
        else this.#timer = setTimeout(() => this.#flush(), PART_MS)
      })
    })
  }

  /** Nothing more comes. */
  end(): void {
    this.#stopWaiting()
    this.#take()
  }

  #stopWaiting(): void {
    clearImmediate(this.#waiting)
    clearTimeout(this.#timer)
  }

  #flush(): void {
    const last = this.#lines.pop() ?? ''
    this.#lines.push(last.replace(/\\$/, ''))
    // The message continues on the next line.
    if (!last.endsWith('\\')) this.#take()
  }

  /** Leading commands are separate messages: they were typed while we were busy. */
  #take(): void {
    const lines = this.#lines.splice(0)
    while (lines.length > 1 && isCommand(lines[0] ?? '')) this.onText(lines.shift() ?? '')
    if (lines.length > 0) this.onText(lines.join('\n'))
  }
}
