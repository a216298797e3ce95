// Heartbeats and cron jobs on a clock that the test sets, with the real queue and store; the test is the agent.

import { randomUUID } from 'node:crypto'
import type { AgentResult, TokenUsage } from '../../src/backends/types.js'
import type { ChannelHost } from '../../src/channels/types.js'
import { heartbeatSchema } from '../../src/config/heartbeat.js'
import { readHeartbeatAnswer } from '../../src/prompt/heartbeat.js'
import { Queue } from '../../src/turns/queue.js'
import type { Work } from '../../src/turns/types.js'
import type { HeartbeatSettings } from '../../src/schedule/beat-times.js'
import type { ProbeOutcome } from '../../src/schedule/heartbeat.js'
import { type CronJobRequest, addCronJob } from '../../src/schedule/new-cron-job.js'
import { type ScheduleConfig, Scheduler } from '../../src/schedule/scheduler.js'
import type { Message } from '../../src/store/inbox.js'
import type { Store } from '../../src/store/store.js'
import { queueOn } from '../kit/queue.js'

export const CHANNELS = ['terminal', 'discord', 'whatsapp']
export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** In the form of the configuration file. */
export function scheduleConfig(heartbeat?: object): ScheduleConfig {
  return {
    projects: [],
    workingDir: '/srv/site',
    ...(heartbeat && { heartbeat: heartbeatSettings(heartbeat) }),
  }
}

export function heartbeatSettings(settings: object): HeartbeatSettings {
  const { to = 'terminal:ops', everyMinutes = 30, ...more } = heartbeatSchema.parse({ timeZone: 'UTC', ...settings })
  return { ...more, to, everyMinutes }
}

export class ScheduleStage {
  now: number
  /** The content of heartbeat.md. */
  tasks = '- Look at the mail.'
  /** What the operator's check does, and how often it ran. */
  probe: ProbeOutcome = { exitCode: 0, output: '' }
  readonly probed: string[][] = []
  runProbe: (signal: AbortSignal) => Promise<ProbeOutcome> = async () => this.probe
  readonly logged: Array<[string, Record<string, unknown> | undefined]> = []
  readonly queue: Queue
  #hasTaken = false

  constructor(
    readonly store: Store,
    readonly config: ScheduleConfig,
    start: string,
  ) {
    this.now = Date.parse(start)
    this.queue = queueOn(store, { maxQueueDepth: 10, replyExpiryMs: DAY_MS, now: () => this.now })
  }

  /** As a gateway that was just started. */
  scheduler(config: ScheduleConfig = this.config, channels: string[] = CHANNELS): Scheduler {
    const note = (message: string, fields?: Record<string, unknown>): void => void this.logged.push([message, fields])
    return new Scheduler({
      config,
      channels,
      hostOf: (channel) => this.hostOf(channel),
      store: this.store,
      markdown: { load: async () => ({ skills: [], ...(this.tasks !== '' && { heartbeat: this.tasks }) }) },
      commands: {
        run: async ({ argv }, signal) => {
          this.probed.push(argv)
          const { exitCode, output, problem: message } = await this.runProbe(signal)
          const failure = message !== undefined && { failure: { reason: 'spawn' as const, message, report: message } }
          return { isError: exitCode !== 0, exitCode, finalOutput: output, durationMs: 1, ...failure }
        },
      },
      log: { debug: note, info: note, warn: note, error: note },
      now: () => this.now,
    })
  }

  hostOf(channel: string): Pick<ChannelHost, 'onMessage' | 'say' | 'claim'> {
    return {
      onMessage: (message) => {
        this.#hasTaken = true
        return this.queue.accept({ ...message, channel })
      },
      say: async (place, text, author) => void (await this.queue.say({ ...place, channel }, text, author)),
      claim: (name) => this.store.channelValues.claim(channel, name, this.now),
    }
  }

  async add(request: Partial<CronJobRequest> = {}): Promise<string> {
    const whole = {
      name: 'job',
      schedule: '*/5 * * * *',
      timeZone: 'UTC',
      prompt: 'Look',
      to: 'terminal:ops',
      ...request,
    }
    const { job } = await addCronJob(whole, { store: this.store, now: () => this.now, newId: randomUUID })
    return job.id
  }

  /** A person writes. */
  async write(address = 'ops', text = 'Hello'): Promise<void> {
    this.#hasTaken = true
    await this.queue.accept({ channel: 'terminal', address, platformId: randomUUID(), author: 'ann', text })
  }

  /** Whether anything was started since the last call. */
  hasTaken(): boolean {
    const hasTaken = this.#hasTaken
    this.#hasTaken = false
    return hasTaken
  }

  async take(): Promise<Work | undefined> {
    return this.queue.claim(CHANNELS, {}, () => ({ id: randomUUID(), backend: 'claude', directory: '/srv/site' }))
  }

  /** Answers everything that waits. */
  async answerAll(answer = 'HEARTBEAT_OK', tokens: number | 'untold' = 1_000): Promise<number> {
    for (let count = 0; ; count += 1) {
      const work = await this.take()
      if (!work) return count
      await this.answer(work, answer, tokens)
    }
  }

  async answer(work: Work, answer: string, tokens: number | 'untold' = 1_000): Promise<void> {
    const [run] = await this.store.runs.ofMessage(work.message.id)
    const usage = tokens !== 'untold' && { usage: usageOf(tokens) }
    const result: AgentResult = { isError: false, finalOutput: answer, durationMs: 5, ...usage }
    const text = work.message.kind === 'heartbeat' ? readHeartbeatAnswer(answer, false) : answer
    const reply = text === undefined ? {} : { reply: { text, notes: [], isError: false } }
    await this.queue.settle(work, { kind: 'answered', run: { id: run?.id ?? '', result }, ...reply })
  }

  async fail(work: Work): Promise<void> {
    await this.queue.settle(work, { kind: 'failed', problem: 'auth: Not logged in' })
  }

  async messages(address = 'ops', channel = 'terminal'): Promise<Message[]> {
    const conversation = await this.store.conversations.find(channel, address)
    return conversation ? this.store.inbox.history(conversation.id, 100_000) : []
  }

  /** By their platform ids. */
  async ids(address = 'ops'): Promise<string[]> {
    return (await this.messages(address)).map(({ platformId }) => platformId)
  }

  /** What is said there. */
  async said(address = 'ops', channel = 'terminal'): Promise<string[]> {
    const conversation = await this.store.conversations.find(channel, address)
    const replies = conversation ? await this.store.outbox.history(conversation.id, 1_000) : []
    return replies.map(({ reply }) => reply.text)
  }

  /** Why the last beat was skipped. */
  async lastOutcome(): Promise<string | undefined> {
    return (await this.store.heartbeats.list(1))[0]?.outcome
  }
}

function usageOf(tokens: number): TokenUsage {
  const none = { outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
  return { ...none, inputTokens: tokens, totalTokens: tokens }
}
