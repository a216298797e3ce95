/** The successive gateways of one cell, and what a person sees in one conversation with them. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentEvent } from '../src/backends/types.js'
import type { OutgoingReply, Place as Conversation, Reply } from '../src/channels/types.js'
import type { GatewayBuild } from './gateway-build.js'
import type { FromGateway, ToGateway } from './gateway-process.js'
import type { Place } from './place.js'

const address = 'here'
const pollMs = 50
/** Far more than anything takes; whatever must be quick has its own limit. */
const patienceMs = 60_000
const loggedCharacters = 2_000

export class GatewayRunner {
  /** Everything received, including repetitions. */
  readonly #replies: OutgoingReply[] = []
  readonly #events: AgentEvent[] = []
  readonly #answers: string[] = []
  #gateway: ChildProcess | undefined
  #log = ''
  #messages = 0

  /** `signal`: the cell has run out of time. */
  constructor(
    private readonly build: GatewayBuild,
    private readonly place: Pick<Place, 'gatewayEnvironment' | 'gatewayProject'>,
    private readonly signal: AbortSignal,
  ) {}

  /** `settings` are variables in addition to those of the place. */
  async start(settings: Record<string, string> = {}): Promise<void> {
    const gateway = fork(await this.build.program(), {
      cwd: '/',
      env: { ...this.place.gatewayEnvironment, ...settings },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#gateway = gateway
    gateway.stderr?.on('data', (chunk) => (this.#log += String(chunk)))
    let isStarted = false
    gateway.on('message', (line: FromGateway) => {
      if ('reply' in line) this.#replies.push(line.reply)
      else if ('live' in line) this.#events.push(line.live.event)
      else if ('answer' in line) this.#answers.push(line.answer)
      else isStarted = true
    })
    await this.until('the gateway starts', () => isStarted)
  }

  async kill(): Promise<void> {
    assert.equal(await this.#end('SIGKILL'), 'SIGKILL')
  }

  /** Shuts it down in an orderly way. */
  async stop(): Promise<void> {
    assert.equal(await this.#end('SIGTERM'), 0, 'the exit code of the gateway')
  }

  say(text: string): void {
    this.#messages += 1
    this.#tell({ message: { ...this.#conversation(), platformId: String(this.#messages), author: 'somebody', text } })
  }

  async command(command: string): Promise<string> {
    const count = this.#answers.length
    this.#tell({ command, place: this.#conversation() })
    await this.until(`${command} is answered`, () => this.#answers.length > count)
    return this.#answers.at(-1) ?? ''
  }

  replies(): Reply[] {
    return this.#replies.map(({ text, notes, isError }) => ({ text, notes, isError }))
  }

  async untilReplies(count: number): Promise<void> {
    await this.until(`${count} replies arrive`, () => this.#replies.length >= count)
  }

  /** The sessions of the turns so far, in order. */
  sessions(): string[] {
    return this.#events.flatMap((event) => (event.type === 'started' ? [event.sessionId ?? 'unnamed'] : []))
  }

  /** How many turns have ended. */
  attempts(): number {
    return this.#events.filter(({ type }) => type === 'complete').length
  }

  hasOutput(): boolean {
    return this.#events.some(({ type }) => type === 'output')
  }

  /** Polls; on time-out it fails with the end of the gateways' log. */
  async until(claim: string, isTrue: () => boolean | Promise<boolean>, timeoutMs = patienceMs): Promise<void> {
    const deadline = Date.now() + timeoutMs
    while (!(await isTrue())) {
      const isLate = Date.now() > deadline || this.signal.aborted
      assert.equal(isLate, false, `timed out: ${claim}. The log ends with: ${this.#log.slice(-loggedCharacters)}`)
      await sleep(pollMs)
    }
  }

  #conversation(): Conversation {
    const { gatewayProject } = this.place
    return { address, ...(gatewayProject !== undefined && { projectId: gatewayProject }) }
  }

  async #end(signal: NodeJS.Signals): Promise<NodeJS.Signals | number | null> {
    assert.ok(this.#gateway, 'a gateway runs')
    const ended = once(this.#gateway, 'exit')
    this.#gateway.kill(signal)
    const [code, endedBy] = (await ended) as [number | null, NodeJS.Signals | null]
    return endedBy ?? code
  }

  #tell(line: ToGateway): void {
    assert.ok(this.#gateway, 'a gateway runs')
    this.#gateway.send(line)
  }
}
