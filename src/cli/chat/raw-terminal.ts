import type { ReadStream } from 'node:tty'
import { type Input, KeyDecoder } from './keys.js'

interface RawTerminalOptions {
  stdin: ReadStream
  stdout: NodeJS.WritableStream
  onInput(input: Input): void
  /** The terminal is gone. */
  onEnd(): void
}

/** Turns on bracketed paste, and distinct codes for keys such as Shift+Enter where the terminal supports them. */
const ENTER = '\u001B[?2004h\u001B[>1u'
const LEAVE = '\u001B[<u\u001B[?2004l\u001B[?25h'
/** If nothing follows an Escape for this long, it is the key. */
const ESCAPE_MS = 50

/** A terminal in raw mode, which passes every key to us until it is closed. */
export class RawTerminal {
  readonly #decoder = new KeyDecoder()
  #timer: NodeJS.Timeout | undefined
  #isOpen = false
  readonly #restore = (): void => this.#leave()
  readonly #read = (chunk: string): void => {
    clearTimeout(this.#timer)
    for (const input of this.#decoder.push(chunk)) this.options.onInput(input)
    if (this.#decoder.isWaiting) this.#timer = setTimeout(() => this.#flush(), ESCAPE_MS)
  }

  constructor(private readonly options: RawTerminalOptions) {}

  open(): void {
    const { stdin, onEnd } = this.options
    this.#enter()
    stdin.setEncoding('utf8').on('data', this.#read).once('end', onEnd)
    // Restore the terminal however this process ends.
    process.once('exit', this.#restore)
  }

  close(): void {
    const { stdin } = this.options
    clearTimeout(this.#timer)
    this.#leave()
    process.off('exit', this.#restore)
    stdin.off('data', this.#read).pause()
  }

  /** Returns to the shell until the person resumes us. */
  suspend(onReturn: () => void): void {
    this.#leave()
    process.once('SIGCONT', () => {
      this.#enter()
      onReturn()
    })
    process.kill(process.pid, 'SIGTSTP')
  }

  #flush(): void {
    for (const input of this.#decoder.flush()) this.options.onInput(input)
  }

  #enter(): void {
    this.options.stdin.setRawMode(true)
    this.options.stdout.write(ENTER)
    this.#isOpen = true
  }

  #leave(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.options.stdout.write(LEAVE)
    this.options.stdin.setRawMode(false)
  }
}
