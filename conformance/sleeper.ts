import { countProcesses } from './sandbox.js'

/** A shell command that does not end on its own and is unique on the machine. */
export class Sleeper {
  readonly #words = ['sleep', String(70_000_000 + Math.floor(Math.random() * 10_000_000))]
  readonly command = this.#words.join(' ')

  async isRunning(): Promise<boolean> {
    return (await countProcesses(this.#words)) > 0
  }
}
