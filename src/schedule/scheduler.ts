import { randomUUID } from 'node:crypto'
import type { ChannelHost } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { MarkdownConfig } from '../prompt/markdown-config-loader.js'
import type { CommandRuntime } from '../runtime/command-runtime.js'
import type { Store } from '../store/store.js'
import { CronRunner } from './cron-runner.js'
import { type BeatResult, Heartbeat, type ProbeOutcome } from './heartbeat.js'
import { parseTarget, type Target } from '../config/target.js'
import { findDestination } from './destination.js'

export type ScheduleConfig = Pick<GatewayConfig, 'heartbeat' | 'inbound' | 'projects' | 'workingDir'>

interface SchedulerOptions {
  /** Read every time, since it may change. */
  config: ScheduleConfig
  /** The channels this gateway serves. */
  channels: readonly string[]
  hostOf(channel: string): Pick<ChannelHost, 'onMessage' | 'say' | 'claim'>
  store: Store
  markdown: { load(): Promise<MarkdownConfig> }
  commands: Pick<CommandRuntime, 'run'>
  log: Log
  now: () => number
}

const TICK_MS = 10_000
/** Everything is due on the minute. */
const MINUTE_MS = 60_000
const PROBE_TIMEOUT_MS = 60_000

/** Heartbeats and cron jobs. Both become ordinary messages in the queue; this decides only when. */
export class Scheduler {
  readonly #heartbeat: Heartbeat
  readonly #cron: CronRunner
  readonly #stopped = new AbortController()
  readonly #parts: ReadonlyArray<(now: number) => Promise<void>>
  #timer: NodeJS.Timeout | undefined
  #lastTick: Promise<void> = Promise.resolve()

  constructor(private readonly options: SchedulerOptions) {
    const { config, channels, hostOf, store, markdown, log } = options
    const shared = { config, channels, hostOf, store, log }
    this.#heartbeat = new Heartbeat({
      ...shared,
      loadTasks: async () => (await markdown.load()).heartbeat ?? '',
      runProbe: (argv, signal) => this.#runProbe(argv, signal),
    })
    this.#cron = new CronRunner(shared)
    this.#parts = [
      oneAtATime('heartbeat', (now) => this.#heartbeat.tick(now, this.#stopped.signal), log),
      oneAtATime('cron', (now) => this.#cron.tick(now), log),
    ]
  }

  start(): void {
    const wait = Math.min(TICK_MS, MINUTE_MS - (this.options.now() % MINUTE_MS))
    this.#timer = setTimeout(() => {
      this.start()
      this.#lastTick = this.tick(this.options.now())
    }, wait)
  }

  /** Runs what is due now. Contract: never rejects; may be called any number of times, by several gateways. */
  async tick(now: number): Promise<void> {
    await Promise.all(this.#parts.map((part) => part(now)))
  }

  /** Resolves when nothing more will be started. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#stopped.abort()
    await this.#lastTick
  }

  /** Wakes the agent now; `isForced` skips all checks. */
  runHeartbeat(isForced: boolean): Promise<BeatResult> {
    return this.#heartbeat.run(this.options.now(), isForced, this.#stopped.signal)
  }

  runCronJob(name: string): Promise<{ job: string; messageId: string }> {
    return this.#cron.run(name)
  }

  /** Contract: when it resolves, the text is on its way; rejects if the target is wrong. */
  async say(to: string, text: string): Promise<Target> {
    const target = parseTarget(to)
    const { channel, place, author } = findDestination(target, this.options.config, this.options.channels)
    await this.options.hostOf(channel).say(place, text, author)
    return target
  }

  /** Contract: throws if nothing could be sent there. */
  requireTarget(to: string): void {
    findDestination(parseTarget(to), this.options.config, this.options.channels)
  }

  async #runProbe(argv: string[], signal: AbortSignal): Promise<ProbeOutcome> {
    const { workingDir: directory } = this.options.config
    const request = { argv, directory, runId: randomUUID(), timeoutMs: PROBE_TIMEOUT_MS }
    const { exitCode = 1, finalOutput = '', failure } = await this.options.commands.run(request, signal, () => {})
    return { exitCode, output: finalOutput, problem: failure?.reason === 'spawn' ? failure.message : undefined }
  }
}

/** Runs at most once at a time, however often it is called; a failure is logged once, until the next success. */
function oneAtATime(part: string, work: (now: number) => Promise<void>, log: Log): (now: number) => Promise<void> {
  let running: Promise<void> | undefined
  let hasFailed = false
  const run = async (now: number): Promise<void> => {
    try {
      await work(now)
      hasFailed = false
    } catch (error) {
      if (!hasFailed) log.error('schedule.failed', { part, error: messageOf(error) })
      hasFailed = true
    } finally {
      running = undefined
    }
  }
  return (now) => (running ??= run(now))
}
