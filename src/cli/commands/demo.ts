import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { abortable, wait, within } from '../../core/async.js'
import { DEMO_AGENT } from '../../core/demo-agent.js'
import { type CommandContext, STOP_SIGNALS } from '../command-context.js'
import { ControlClient } from '../control/client.js'
import { type HistoryEntry, type Push, socketPath } from '../control/protocol.js'
import { messageOf } from '../../errors.js'
import { ownName } from '../own-name.js'
import { ownCommand, startOwnProgram } from '../../processes/own-program.js'
import { OWNER_MARKER } from '../../processes/process-owner.js'
import { readProcessTable } from '../../processes/process-table.js'
import type { Output } from '../turn-printer.js'

const START_LIMIT_MS = 30_000
const ANSWER_LIMIT_MS = 30_000
const NO_PROCESS_LIMIT_MS = 10_000

export function registerDemo(program: Command, context: CommandContext): void {
  program
    .command('demo')
    .description('Show what happens when a gateway is killed, with the built-in demo agent.')
    .action(async () => {
      context.endWith(await demo(context.environment, process.stdout, context.abortOn(STOP_SIGNALS)))
    })
}

/** Talks to a gateway in a separate process, kills it mid-turn, and shows that nothing is lost. */
async function demo(environment: NodeJS.ProcessEnv, stdout: Output, signal: AbortSignal): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-demo-'))
  const stage = new Stage(directory, environment, stdout, signal)
  try {
    await stage.startGateway()

    stage.title('Two conversations at once')
    await Promise.all([
      stage.ask('ada', 'My name is Ada. Which files are here?'),
      stage.ask('grace', 'My name is Grace. Which files are here?'),
    ])

    stage.title('Each continues in its own session')
    await Promise.all([stage.ask('ada', 'What is my name?'), stage.ask('grace', 'What is my name?')])

    stage.title('The gateway is killed while an agent is answering')
    const answer = stage.ask('ada', 'Please count to ten.')
    await stage.heard('ada', 'three')
    await stage.killGateway()
    await stage.startGateway()
    await answer

    const answered = await stage.countAnswers()
    stage.say(
      `\n${answered} messages, ${answered} answers: none lost, none repeated.\n\nNow try it yourself: ${ownName({ environment })}`,
    )
    return 0
  } catch (error) {
    if (!signal.aborted) stage.say(`\nThe demo failed: ${messageOf(error)}`)
    return 1
  } finally {
    await stage.close()
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

class Stage {
  readonly #home: string
  readonly #project: string
  readonly #lines = new Map<string, string>()
  /** Resolvers of pending answers, by message. */
  readonly #waiting = new Map<string, () => void>()
  readonly #heard: Array<{ speaker: string; word: string; resolve(): void }> = []
  #gateway: ReturnType<typeof startOwnProgram> | undefined
  #client: ControlClient | undefined
  #messages = 0

  constructor(
    directory: string,
    private readonly environment: NodeJS.ProcessEnv,
    private readonly stdout: Output,
    private readonly signal: AbortSignal,
  ) {
    this.#home = join(directory, 'home')
    this.#project = join(directory, 'project')
    mkdirSync(this.#home)
    mkdirSync(this.#project)
    writeFileSync(join(this.#project, 'hello.txt'), 'Hello\n')
    writeFileSync(join(this.#project, 'notes.md'), '# Notes\n')
  }

  say(text: string): void {
    this.stdout.write(`${text}\n`)
  }

  title(text: string): void {
    this.say(`\n${text}`)
  }

  async startGateway(): Promise<void> {
    const environment = {
      PATH: this.environment['PATH'],
      HOME: this.#home,
      AETHEEL_HOME: this.#home,
      WORKING_DIR: this.#project,
      BACKEND_CLI_PATH: DEMO_AGENT,
      AGENT_MODE: 'oneshot',
      LOG_LEVEL: 'error',
      HTTP_ENABLED: 'false',
    }
    const command = [...ownCommand('../../main', import.meta.url), 'start']
    const gateway = startOwnProgram(command, this.#project, environment)
    this.#gateway = gateway
    const started = new Promise<void>((resolve) => {
      gateway.stdout?.on('data', (chunk: Buffer) => {
        if (chunk.includes('is running')) resolve()
      })
    })
    await this.#within(START_LIMIT_MS, 'the gateway to start', started)
    this.#client = await ControlClient.connect(socketPath(this.#home), (push) => this.#show(push))
    if (!this.#client) throw new Error('The gateway has started but cannot be reached.')
    this.say(`  gateway  started, process ${gateway.pid}`)
    for (const address of this.#lines.keys()) await this.#client.call('chat.attach', { address })
    await this.#catchUp()
  }

  /** Settles when the answer has arrived, from this gateway or the next. */
  async ask(speaker: string, text: string): Promise<void> {
    this.#line(speaker, 'you', text)
    if (!this.#lines.has(speaker)) await this.#client?.call('chat.attach', { address: speaker })
    this.#lines.set(speaker, '')
    this.#messages += 1
    const message = { address: speaker, platformId: `demo-${this.#messages}`, author: speaker, text }
    const accepted = await this.#client?.call('chat.send', message)
    if (accepted?.status !== 'accepted') throw new Error('The gateway did not accept the message.')
    const answered = new Promise<void>((resolve) => this.#waiting.set(accepted.messageId, resolve))
    await this.#within(ANSWER_LIMIT_MS, 'an answer', answered)
  }

  /** Settles when the agent has said this word. */
  async heard(speaker: string, word: string): Promise<void> {
    const heard = new Promise<void>((resolve) => this.#heard.push({ speaker, word, resolve }))
    await this.#within(ANSWER_LIMIT_MS, `"${word}"`, heard)
  }

  async killGateway(): Promise<void> {
    const owner = (await this.#client?.call('status', {}))?.id ?? ''
    const isOurs = ({ isZombie, hasVariable }: ReturnType<typeof readProcessTable>[number]): boolean =>
      !isZombie && hasVariable(`${OWNER_MARKER}=${owner}`)
    const before = readProcessTable().filter(isOurs).length
    const killedAt = performance.now()
    this.#gateway?.kill('SIGKILL')
    await this.#client?.closed
    for (const speaker of this.#lines.keys()) this.#flush(speaker)
    this.say(`  gateway  kill -9 ${this.#gateway?.pid}`)
    while (readProcessTable().some(isOurs)) {
      if (performance.now() - killedAt > NO_PROCESS_LIMIT_MS) throw new Error('The agent outlived its gateway.')
      await wait(20, { signal: this.signal })
    }
    const seconds = ((performance.now() - killedAt) / 1000).toFixed(1)
    const processes = `${before} process${before === 1 ? '' : 'es'}`
    this.say(`  guardian ended the agent left behind (${processes}) after ${seconds} s`)
  }

  /** Contract: throws unless every message has exactly one answer. */
  async countAnswers(): Promise<number> {
    let answers = 0
    for (const address of this.#lines.keys()) {
      answers += (await this.#history(address)).filter(({ kind }) => kind === 'reply').length
    }
    if (answers !== this.#messages) throw new Error(`There are ${answers} answers to ${this.#messages} messages.`)
    return answers
  }

  async close(): Promise<void> {
    await this.#client?.close()
    const gateway = this.#gateway
    if (!gateway || gateway.exitCode !== null || gateway.signalCode !== null) return
    const exited = once(gateway, 'exit')
    gateway.kill('SIGTERM')
    await exited
  }

  /** Reads replies that were sent while we were not attached. */
  async #catchUp(): Promise<void> {
    for (const address of this.#lines.keys()) {
      for (const entry of await this.#history(address)) {
        if (entry.kind === 'reply' && entry.messageId !== undefined) this.#answer(address, entry.messageId, entry.text)
      }
    }
  }

  async #history(address: string): Promise<HistoryEntry[]> {
    return (await this.#client?.call('chat.history', { address, afterSeq: 0, limit: 50 }))?.entries ?? []
  }

  #show(push: Push): void {
    const { address } = push
    if (push.kind === 'reply') {
      if (push.messageId !== undefined) this.#answer(address, push.messageId, push.text)
      return
    }
    if (push.kind !== 'event') return
    const { event } = push
    if (event.type === 'output') this.#stream(address, event.content)
    if (event.type === 'tool_use') this.#line(address, 'tool', `${event.toolName} ${JSON.stringify(event.toolInput)}`)
    if (event.type === 'tool_result') this.#line(address, 'tool', `→ ${event.content.replaceAll('\n', ' ')}`)
  }

  #answer(address: string, messageId: string, text: string): void {
    const resolve = this.#waiting.get(messageId)
    if (!resolve) return
    this.#waiting.delete(messageId)
    this.#flush(address)
    this.#line(address, 'answer', text)
    resolve()
  }

  /** Two agents speak at once, so text is printed in pieces: when a piece is long enough or ends a sentence. */
  #stream(speaker: string, text: string): void {
    const pending = (this.#lines.get(speaker) ?? '') + text
    this.#lines.set(speaker, pending)
    for (const waiting of this.#heard) {
      if (waiting.speaker === speaker && pending.includes(waiting.word)) waiting.resolve()
    }
    if (pending.length > PIECE_CHARACTERS || /[.!?]\s*$/.test(pending)) this.#flush(speaker)
  }

  #flush(speaker: string): void {
    const pending = this.#lines.get(speaker)?.trim() ?? ''
    this.#lines.set(speaker, '')
    if (pending !== '') this.#line(speaker, 'agent', `${pending} …`.replace(/([.!?]) …$/, '$1'))
  }

  #line(speaker: string, who: string, text: string): void {
    if (who === 'tool') this.#flush(speaker)
    this.say(`  ${speaker.padEnd(7)}${who.padEnd(8)}${text}`)
  }

  async #within(timeoutMs: number, what: string, awaited: Promise<void>): Promise<void> {
    const done = abortable(this.signal, () => awaited).then(() => true)
    if (!(await within(timeoutMs, done))) throw new Error(`Timed out after ${timeoutMs / 1000} s, waiting for ${what}.`)
  }
}

const PIECE_CHARACTERS = 30
