// Prompts for test/fixtures/bin/fake-agent.sh, which runs its prompt as a shell script. That takes a few milliseconds
// rather than a start of Node.js, so every agent can be put through every test.

import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BackendName } from '../../src/backends/types.js'
import { type Speaker, speakers } from './wire-formats.js'

/** The agent's next action. */
export type Step =
  /** Announces a session: a new one, or the one named here. */
  | { start: true | string }
  /** Text before the answer, one delta per string. */
  | { say: string | string[] }
  | { sayForEver: string }
  | { think: string }
  /** A tool call; without `output` it never returns. */
  | { tool: { id?: string; command: string; output?: string; isError?: boolean } }
  /** The CLI's own final word. */
  | { answer: string | string[] }
  | { fail: string }
  /** Lines of known kinds with missing fields. */
  | { misshape: true }
  /** Raw output. */
  | { print: string }
  | { printOnStderr: string }
  | { printOneLineOf: number }
  /** How lines are printed from now on. */
  | { style: Style }
  /** Files in the working directory, to synchronise with the test. */
  | { touch: string }
  | { waitFor: string }
  /** A process that ignores SIGTERM and the like and never exits. */
  | { descendant: DescendantKind }
  | { ignoreSignals: NodeJS.Signals[] }
  | { onStop: Step[] }
  | { hang: true }
  | { exit: number }
  | { die: NodeJS.Signals }

export type Style =
  | 'plain'
  | 'crlf'
  | 'coloured'
  | 'indented'
  | 'after-a-byte-order-mark'
  | 'without-last-newline'
  | 'in-half-characters'

export type DescendantKind = 'child' | 'own-session' | 'own-session-no-environment' | 'orphan' | 'holds-output'

export const START: Step = { start: true }

/** Writes prompts for one agent; `directory` holds what it will print. */
export class AgentScript {
  readonly #outputs: string
  readonly #speaker: Speaker
  #style: Style = 'plain'
  #count = 0
  #hasPrinted = false
  #pending = ''
  #isTrapped = false
  #commands: string[] = []

  constructor(name: BackendName, directory: string, speaker: () => Speaker = speakers[name]) {
    this.#speaker = speaker()
    this.#outputs = mkdtempSync(join(directory, 'outputs-'))
  }

  /** The prompt that makes the fake agent do this. */
  prompt(steps: Step[]): string {
    this.#commands = []
    for (const step of steps) this.#add(step)
    this.#flush()
    // The first word is not one that a backend would have to neutralise.
    return ['set -e', ...this.#commands, 'exit 0'].join('\n')
  }

  #add(step: Step): void {
    const speaker = this.#speaker
    if ('start' in step) this.#say(speaker.start(step.start === true ? undefined : step.start))
    else if ('say' in step) this.#say(speaker.say([step.say].flat()))
    else if ('think' in step) this.#say(speaker.think(step.think))
    else if ('tool' in step) this.#tool(step.tool)
    else if ('answer' in step) this.#say(speaker.answer([step.answer].flat()))
    else if ('fail' in step) this.#say(speaker.fail(step.fail))
    else if ('misshape' in step) this.#say(speaker.misshape?.() ?? [])
    else if ('print' in step) this.#print(step.print)
    else if ('style' in step) this.#style = step.style
    else {
      this.#flush()
      this.#commands.push(this.#command(step))
    }
  }

  #tool({ id = 'tool-1', command, output, isError = false }: Extract<Step, { tool: unknown }>['tool']): void {
    this.#say(this.#speaker.toolCall(id, command))
    if (output !== undefined) this.#say(this.#speaker.toolResult(id, command, output, isError))
  }

  #say(objects: object[]): void {
    for (const object of objects) {
      const line = JSON.stringify(object)
      switch (this.#style) {
        case 'plain':
          this.#print(`${line}\n`)
          break
        case 'crlf':
          this.#print(`${line}\r\n`)
          break
        case 'coloured':
          this.#print(`\u001B[2m${line}\u001B[0m\n`)
          break
        case 'indented':
          this.#print(`${JSON.stringify(object, undefined, 2)}\n`)
          break
        case 'after-a-byte-order-mark':
          this.#print(`${this.#hasPrinted ? '' : '\uFEFF'}${line}\n`)
          break
        case 'without-last-newline':
          this.#print(`${this.#hasPrinted ? '\n' : ''}${line}`)
          break
        case 'in-half-characters':
          this.#commands.push(this.#piecewise(`${line}\n`))
      }
    }
  }

  #print(output: string): void {
    this.#hasPrinted = true
    this.#pending += output
  }

  /** Prints consecutive lines at once. */
  #flush(): void {
    if (this.#pending !== '') this.#commands.push(`cat ${this.#keep(this.#pending)}`)
    this.#pending = ''
  }

  /** Splits before every continuation byte of a character. */
  #piecewise(output: string): string {
    const bytes = Buffer.from(output)
    const cuts = [...bytes.keys()].filter((index) => (bytes[index] ?? 0) >> 6 === 0b10)
    const pieces = [0, ...cuts].map((cut, index) => this.#keep(bytes.subarray(cut, cuts[index])))
    return pieces.map((piece) => `cat ${piece}`).join('\nsleep 0.002\n')
  }

  #command(step: Step): string {
    if ('printOnStderr' in step) return `{ ${this.#piecewise(step.printOnStderr)}\n} >&2`
    if ('sayForEver' in step) {
      const [line] = this.#speaker.say([step.sayForEver]).slice(-1)
      return `while :; do cat ${this.#keep(`${JSON.stringify(line)}\n`)}; done`
    }
    if ('printOneLineOf' in step)
      return `dd if=/dev/zero bs=1048576 count=${step.printOneLineOf / 1_048_576} 2> /dev/null`
    if ('touch' in step) return `: > ${step.touch}`
    if ('waitFor' in step) return `until [ -e ${step.waitFor} ]; do sleep 0.01; done`
    if ('descendant' in step) return descendant(step.descendant)
    if ('ignoreSignals' in step) return `trap '' ${shortNames(step.ignoreSignals)}`
    if ('onStop' in step) return this.#onStop(step.onStop)
    if ('hang' in step) return this.#isTrapped ? 'sleep 1000 & wait' : 'exec sleep 1000'
    if ('exit' in step) return `exit ${step.exit}`
    if ('die' in step) return `kill -${shortNames([step.die])} $$`
    throw new Error(`No such step: ${JSON.stringify(step)}`)
  }

  #onStop(steps: Step[]): string {
    const outer = this.#commands
    const reaction = this.prompt(steps).replaceAll('\n', '; ')
    this.#commands = outer
    // A shell handles signals only while it waits, and a program that replaces it not at all.
    this.#isTrapped = true
    return `trap '${reaction}' TERM INT`
  }

  /** Returns the name of the file that holds it. */
  #keep(output: string | Uint8Array): string {
    this.#count += 1
    const path = join(this.#outputs, String(this.#count))
    writeFileSync(path, output)
    return path
  }
}

/** The step is done once the process runs and ignores those signals. */
function descendant(kind: DescendantKind): string {
  const ready = `descendant-${kind}`
  const stay = `/bin/sh -c 'trap "" TERM INT HUP; : > ${ready}; exec /bin/sleep 1000' < /dev/null`
  const start: Record<DescendantKind, string> = {
    child: `${stay} > /dev/null 2>&1 &`,
    'own-session': `setsid ${stay} > /dev/null 2>&1 &`,
    'own-session-no-environment': `env -i /usr/bin/setsid ${stay} > /dev/null 2>&1 &`,
    // Its parent exits at once, so it becomes a child of init.
    orphan: `(setsid ${stay} > /dev/null 2>&1 &)`,
    'holds-output': `setsid ${stay} &`,
  }
  return `${start[kind]}\nuntil [ -e ${ready} ]; do sleep 0.01; done`
}

function shortNames(signals: NodeJS.Signals[]): string {
  return signals.map((signal) => signal.replace('SIG', '')).join(' ')
}
