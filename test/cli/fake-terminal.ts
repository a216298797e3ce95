import { PassThrough, Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { until } from '../kit/waiting.js'

/** A screen that can be read and keys that can be pressed; without `isTerminal`, only pipes. */
export class FakeTerminal {
  screen = ''
  readonly input: PassThrough & { isTTY?: boolean; setRawMode?: () => void } = new PassThrough()
  readonly output = Object.assign(
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.screen += stripVTControlCharacters(String(chunk))
        done()
      },
    }),
    { columns: 200, rows: 50 },
  )

  constructor(isTerminal = true) {
    if (isTerminal) Object.assign(this.input, { isTTY: true, setRawMode: () => {} })
  }

  /** Waits until the screen shows this, at or after a position, and returns where it ends. */
  async shows(text: string, from = 0): Promise<number> {
    await until(
      () => this.screen.includes(text, from),
      () => `"${text}" on this screen: ${this.screen}`,
    )
    return this.screen.indexOf(text, from) + text.length
  }
}
