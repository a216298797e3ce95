/** The gateways of one cell, one after the other, and what the people in its one conversation see of them. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentEvent } from '../src/backends/types.js'
import type { OutgoingReply } from '../src/channels/types.js'
import type { FromGateway, ToGateway } from './gateway-process.js'

const pauseMs = 50
const patienceMs = 60_000

export class GatewayRunner {
  /** Everything that came, repetitions as well. */
  readonly replies: OutgoingReply[] = []
  readonly events: AgentEvent[] = []
  #child: ChildProcess | undefined
  #answers: string[] = []
  #log = ''
  #said = 0

  constructor(
    private readonly environment: Record<string, string>,
    private readonly signal: AbortSignal,
  ) {}

  async start(): Promise<void> {
    const child = fork(join(import.meta.dirname, 'gateway-process.ts'), {
      cwd: '/',
      env: this.environment,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let isStarted = false
    child.stderr?.on('data', (chunk) => (this.#log += String(chunk)))
    child.on('message', (line: FromGateway) => {
      if ('reply' in line) this.replies.push(line.reply)
      else if ('live' in line) this.events.push(line.live.event)
      else if ('answer' in line) this.#answers.push(line.answer)
      else isStarted = true
    })
    this.#child = child
    await this.until('the gateway has started', () => isStarted)
  }

  say(text: string, address = 'here'): void {
    this.#said += 1
    this.#tell({ message: { address, platformId: String(this.#said), author: 'somebody', text } })
  }

  async command(command: string, address = 'here'): Promise<string> {
    const count = this.#answers.length
    this.#tell({ command, address })
    await this.until(`${command} is answered`, () => this.#answers.length > count)
    return this.#answers.at(-1) ?? ''
  }

  async kill(): Promise<void> {
    assert.equal(await this.#end('SIGKILL'), 'SIGKILL')
  }

  async stop(): Promise<void> {
    assert.equal(await this.#end('SIGTERM'), 0, 'the gateway stops in order')
  }

  /** The sessions of the turns so far, in order. */
  sessions(): string[] {
    return this.events.flatMap((event) => (event.type === 'started' ? [event.sessionId ?? 'none'] : []))
  }

  /** Polls; what never comes true fails with the gateway's log. */
  async until(claim: string, isTrue: () => boolean | Promise<boolean>, timeoutMs = patienceMs): Promise<void> {
    const deadline = Date.now() + timeoutMs
    while (!(await isTrue())) {
      const isLate = Date.now() > deadline || this.signal.aborted
      assert.equal(isLate, false, `not true in time: ${claim}. The gateway's log:\n${this.#log}`)
      await sleep(pauseMs)
    }
  }

  async #end(signal: NodeJS.Signals): Promise<unknown> {
    const child = this.#child
    assert.ok(child, 'a gateway runs')
    const ended = once(child, 'exit')
    child.kill(signal)
    const [code, by] = (await ended) as [number | null, NodeJS.Signals | null]
    return by ?? code
  }

  #tell(line: ToGateway): void {
    assert.ok(this.#child, 'a gateway runs')
    this.#child.send(line)
  }
}
