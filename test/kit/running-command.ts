import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'

/** Gives a command its own terminal. */
export const SCRIPT = '/usr/bin/script'

/** Runs a shell command in its own terminal. SHELL must be a POSIX shell. */
export function atTerminal(line: string): [string, string[]] {
  return [SCRIPT, ['-qec', line, '/dev/null']]
}

export type Child = ChildProcessByStdio<Writable, Readable, Readable>

/** A running command, whose output can be waited for. */
export class RunningCommand {
  stdout = ''
  stderr = ''
  readonly exited: Promise<number | NodeJS.Signals | null>
  #onOutput = (): void => {}

  constructor(private readonly child: Child) {
    this.exited = new Promise((resolve) => {
      child.once('close', (code, signal) => resolve(code ?? signal))
    })
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.stdout += chunk
      this.#onOutput()
    })
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.stderr += chunk
      this.#onOutput()
    })
    // It may have exited before it read its input.
    child.stdin.on('error', () => {})
  }

  /** Settles when it has printed this on stdout or stderr. */
  async printed(expected: string | RegExp): Promise<void> {
    const isThere = (): boolean =>
      [this.stdout, this.stderr].some((text) =>
        typeof expected === 'string' ? text.includes(expected) : expected.test(text),
      )
    if (isThere()) return
    await new Promise<void>((resolve, reject) => {
      const tell = (): string => `${String(expected)} was not printed, but: ${this.stdout}\n---\n${this.stderr}`
      const late = setTimeout(() => reject(new Error(tell())), 60_000)
      this.child.once('close', () => {
        clearTimeout(late)
        reject(new Error(tell()))
      })
      this.#onOutput = () => {
        if (!isThere()) return
        clearTimeout(late)
        resolve()
      }
    })
  }

  type(line: string): void {
    this.press(`${line}\n`)
  }

  press(keys: string): void {
    this.child.stdin.write(keys)
  }

  endInput(): void {
    this.child.stdin.end()
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }
}
