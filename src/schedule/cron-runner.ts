// Turns due cron jobs into messages.
//
// Invariants:
// - A slot becomes a message under its own id, so it runs once, whichever gateway sees that it is due.
// - Everything up to `lastSlot` has been handled: run, or skipped for a recorded reason. `lastSlot` is written after
//   the message.

import { randomUUID } from 'node:crypto'
import type { Acceptance, ChannelHost } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import { defined } from '../core/defined.js'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { CronJob } from '../store/cron-jobs.js'
import type { Store, Tables } from '../store/store.js'
import { CronSchedule } from './cron-schedule.js'
import { findCronJob } from './find-cron-job.js'
import { findDestination } from './destination.js'

interface CronRunnerOptions {
  config: Pick<GatewayConfig, 'inbound' | 'projects'>
  /** The channels this gateway serves; jobs for others are left to gateways that serve them. */
  channels: readonly string[]
  hostOf(channel: string): Pick<ChannelHost, 'onMessage'>
  store: Store
  log: Log
}

/** A slot noticed later than this was missed. */
const LATE_MS = 60_000
/** Missed slots older than this are skipped. */
const CATCH_UP_MS = 24 * 3_600_000

export class CronRunner {
  readonly #unserved = new Set<string>()
  /** When each job is next due, by its id: computing it takes longer than the rest of a tick. */
  readonly #dueAt = new Map<string, { lastSlot: number; at: number }>()

  constructor(private readonly options: CronRunnerOptions) {}

  /** Contract: depends only on `now`, the configuration and the store. */
  async tick(now: number): Promise<void> {
    const { store, log } = this.options
    for (const job of await store.cronJobs.list()) {
      try {
        await this.#runIfDue(job, now)
      } catch (error) {
        // An unreadable job must not hold up the others.
        log.error('cron.failed', { job: job.name, error: messageOf(error) })
      }
    }
  }

  /** Runs a job now, outside its schedule. */
  async run(name: string): Promise<{ job: string; messageId: string }> {
    const { store } = this.options
    const job = findCronJob(name, await store.cronJobs.list())
    if (await isUnfinished(store, job)) {
      throw new GatewayError('request_invalid', `The job ${job.name} has not finished. Wait, or stop it with /stop.`)
    }
    const acceptance = await this.#enqueue(job, `cron:${job.id}:run:${randomUUID()}`)
    if (acceptance.status === 'refused') throw new GatewayError('too_many', acceptance.reason)
    const { messageId } = acceptance
    await store.cronJobs.noteMessage(job.id, messageId)
    return { job: job.name, messageId }
  }

  async #runIfDue(job: CronJob, now: number): Promise<void> {
    const { store } = this.options
    const { id, schedule, timeZone, lastSlot } = job
    if (this.#nextOf(job) > now || !this.#isServed(job)) return
    const slot = new CronSchedule(schedule, timeZone).latest(now)
    if (slot === undefined || slot <= lastSlot) return
    if (!(await this.#isWanted(id, slot, now))) return
    const acceptance = await this.#enqueue(job, `cron:${id}:${slot}`)
    const { messageId } = acceptance
    const outcome = acceptance.status === 'refused' ? { problem: acceptance.reason } : { messageId }
    await store.cronJobs.advance(id, slot, outcome)
  }

  /** Decides under a lock. A skipped slot is recorded as handled. */
  async #isWanted(id: string, slot: number, now: number): Promise<boolean> {
    const { store, log } = this.options
    return store.transaction(async (tables) => {
      const job = await tables.cronJobs.lock(id)
      if (!job || slot <= job.lastSlot) return false
      const problem = await problemOf(tables, job, slot, now)
      if (problem === undefined) return true
      log.warn('cron.skipped', { job: job.name, slot: new Date(slot).toISOString(), problem })
      await tables.cronJobs.advance(id, slot, { problem })
      return false
    })
  }

  async #enqueue(job: CronJob, platformId: string): Promise<Acceptance> {
    const { config, channels, hostOf, log } = this.options
    const { work, session, projectId } = job
    const { channel, place, author } = findDestination(job, config, channels)
    const acceptance = await hostOf(channel).onMessage({
      ...place,
      platformId,
      author: author ?? `cron:${job.name}`,
      kind: 'cron',
      text: 'prompt' in work ? work.prompt : work.command.join(' '),
      options: defined({
        job: job.name,
        command: 'command' in work ? work.command : undefined,
        session: session === 'own' ? session : undefined,
        projectId,
        variables: author === undefined ? undefined : { From: author },
      }),
    })
    if (acceptance.status === 'accepted') log.info('cron.begun', { job: job.name, messageId: acceptance.messageId })
    return acceptance
  }

  #nextOf({ id, schedule, timeZone, lastSlot }: CronJob): number {
    const known = this.#dueAt.get(id)
    if (known?.lastSlot === lastSlot) return known.at
    const at = new CronSchedule(schedule, timeZone).next(lastSlot) ?? Number.POSITIVE_INFINITY
    this.#dueAt.set(id, { lastSlot, at })
    return at
  }

  #isServed({ name, channel }: CronJob): boolean {
    if (this.options.channels.includes(channel)) return true
    if (!this.#unserved.has(name)) this.options.log.warn('cron.no-channel', { job: name, channel })
    this.#unserved.add(name)
    return false
  }
}

async function problemOf(tables: Tables, job: CronJob, slot: number, now: number): Promise<string | undefined> {
  const lateMs = now - slot
  if (lateMs > LATE_MS && job.catchUp === 'skip') return 'No gateway was running at that time.'
  if (lateMs > CATCH_UP_MS) return 'No gateway was running at that time or in the 24 hours after it.'
  if (await isUnfinished(tables, job)) return 'The previous run had not finished.'
  return undefined
}

async function isUnfinished({ inbox }: Pick<Tables, 'inbox'>, { lastMessageId }: CronJob): Promise<boolean> {
  return lastMessageId !== undefined && (await inbox.get(lastMessageId))?.state === 'open'
}
