import { isCommand } from '../../turns/accept.js'

/** A paste that is longer than the buffer of the terminal comes in parts. */
const PART_MS = 50

/**
 * What a person writes at a terminal that does not mark a paste, as messages.
 *
 * Lines that were there at once are one message. Such a terminal hands over one line for each read, so they come in turns
 * of the event loop without one in which nothing came.
 */
export class TypedLines {
  #lines: string[] = []
  #waiting: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly onText: (text: string) => void) {}

  push(line: string): void {
    this.#stopWaiting()
    this.#lines.push(line)
    // The next turn reads before it calls the second one.
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
    // The person goes on in another line.
    if (!last.endsWith('\\')) this.#take()
  }

  /** Commands that stand first were meant one by one, typed while we were busy. */
  #take(): void {
    const lines = this.#lines.splice(0)
    while (lines.length > 1 && isCommand(lines[0] ?? '')) this.onText(lines.shift() ?? '')
    if (lines.length > 0) this.onText(lines.join('\n'))
  }
}
