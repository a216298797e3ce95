import { stripAnsi } from './jsonl.js'
import { Translation } from './translation.js'
import type { AgentEventBody } from '../types.js'

/** Reads the output of a CLI that prints nothing but its answer, in its text format. */
export class PlainTranslation extends Translation {
  #answer = ''
  /** Blank lines that count only if more text follows. */
  #gap = ''

  constructor(
    emit: (event: AgentEventBody) => void,
    private readonly maxCharacters: number,
  ) {
    super(emit)
  }

  line(line: string): void {
    const text = stripAnsi(line).replace(/\r$/, '')
    const isBlank = text.trim() === ''
    if (isBlank && this.#answer === '') return
    const part = this.#answer === '' ? text : `${this.#gap}\n${text}`
    if (isBlank) {
      this.#gap = part
      return
    }
    this.#gap = ''
    this.#answer += part
    this.output(part)
    if (this.#answer.length <= this.maxCharacters) return
    const message = `The agent printed an answer of more than ${this.maxCharacters} characters and was stopped.`
    this.mustStop = { reason: 'no_result', message }
  }

  /** A CLI that ends without output has not answered. */
  end(): void {
    if (this.#answer !== '') this.succeeded(this.#answer)
  }

  protected translate(): void {
    throw new TypeError('plain text is read line by line')
  }
}
