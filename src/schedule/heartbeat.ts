// Wakes the agent from time to time, unless there is a reason not to, which is recorded for the operator.
//
// Invariants:
// - A slot is decided once, by the gateway that claims it. A slot nobody decides in time is missed.
// - A heartbeat never waits behind other messages, and keeps no session alive.

import { createHash, randomUUID } from 'node:crypto'
import type { ChannelHost } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { hasTasks, heartbeatPrompt } from '../prompt/heartbeat.js'
import type { Usage } from '../store/figures.js'
import type { BeatOutcome } from '../store/schema.js'
import type { Store } from '../store/store.js'
import { type HeartbeatSettings, isActiveHour, slotAt, zoneOf } from './beat-times.js'
import { describeTime, startOfDay, startOfNextDay } from './local-time.js'
import { parseTarget } from '../config/target.js'
import { type Destination, findDestination } from './destination.js'

interface HeartbeatOptions {
  config: Pick<GatewayConfig, 'heartbeat' | 'inbound' | 'projects'>
  /** The channels this gateway serves. */
  channels: readonly string[]
  hostOf(channel: string): Pick<ChannelHost, 'onMessage' | 'say' | 'claim'>
  store: Pick<Store, 'heartbeats' | 'jobs' | 'figures' | 'conversations'>
  /** The content of heartbeat.md; empty if there is none. */
  loadTasks(): Promise<string>
  /** Runs the operator's check. Contract: never rejects. */
  runProbe(argv: string[], signal: AbortSignal): Promise<ProbeOutcome>
  log: Log
}

export interface ProbeOutcome {
  exitCode: number
  output: string
  /** Why it could not be started, as a sentence with advice. */
  problem?: string | undefined
}

/** The outcome of an attempt to wake the agent. */
export type BeatResult = { status: 'begun'; messageId: string } | ({ status: 'skipped' } & Skip)

interface Skip {
  reason: Exclude<BeatOutcome, 'begun'>
  note: string
}

interface BeatPrompt {
  text: string
  /** Equal for equal prompts. */
  digest: string
}

/** A slot noticed later than this is missed. Well below a minute, after which the next may be due. */
const LATE_MS = 30_000
/** For a turn whose agent reported no usage: ignoring it would defeat the budget. */
const UNCOUNTED_TURN_TOKENS = 15_000
const KEPT_MS = 31 * 24 * 3_600_000

export class Heartbeat {
  #decidedSlot: number | undefined
  #loggedProblem = ''

  constructor(private readonly options: HeartbeatOptions) {}

  /** Contract: depends only on `now`, the configuration and the store. */
  async tick(now: number, signal: AbortSignal): Promise<void> {
    const { heartbeat } = this.options.config
    if (!heartbeat) return
    const slot = slotAt(heartbeat, now)
    if (slot === this.#decidedSlot || now - slot > LATE_MS) return
    const destination = this.#findDestination(heartbeat)
    if (!destination) return
    const id = `heartbeat:${slot}`
    const isOurs = await this.options.store.heartbeats.claim(id, now)
    this.#decidedSlot = slot
    if (!isOurs) return
    const prompt = await this.#promptOrSkip(heartbeat, destination, now, false, signal)
    // A gateway that is stopping has decided nothing.
    if (!signal.aborted) await this.#settle(id, heartbeat, destination, prompt)
    await this.options.store.heartbeats.forget(now - KEPT_MS)
  }

  /** Wakes the agent regardless of the time. Contract: throws `config_invalid` if there is nobody to notify. */
  async run(now: number, isForced: boolean, signal: AbortSignal): Promise<BeatResult> {
    const { heartbeat } = this.options.config
    if (!heartbeat) {
      const advice = 'Set heartbeat.everyMinutes and heartbeat.to in the configuration file.'
      throw new GatewayError('config_invalid', `No heartbeat is set up. ${advice}`)
    }
    const destination = this.#destinationOf(heartbeat)
    const prompt = isForced
      ? promptOf(await this.options.loadTasks(), (await this.#probe(heartbeat, signal)).found)
      : await this.#promptOrSkip(heartbeat, destination, now, true, signal)
    const id = `heartbeat:run:${randomUUID()}`
    await this.options.store.heartbeats.claim(id, now)
    return this.#settle(id, heartbeat, destination, prompt)
  }

  /** Looks for a reason not to wake the agent. Contract: the most expensive checks come last. */
  async #promptOrSkip(
    heartbeat: HeartbeatSettings,
    destination: Destination,
    now: number,
    ignoresHours: boolean,
    signal: AbortSignal,
  ): Promise<BeatPrompt | Skip> {
    const { store, loadTasks } = this.options
    const zone = zoneOf(heartbeat)
    if (!ignoresHours && heartbeat.activeHours && !isActiveHour(heartbeat, now)) {
      const { from, to } = heartbeat.activeHours
      return { reason: 'outside-hours', note: `It was outside the active hours, ${from} to ${to} (${zone}).` }
    }
    const tasks = await loadTasks()
    if (!hasTasks(tasks)) {
      return { reason: 'no-file', note: 'heartbeat.md is missing or lists nothing to do.' }
    }
    if (await this.#isBusy(destination)) {
      return { reason: 'busy', note: 'The conversation had a message waiting or running.' }
    }
    const { found, problem } = await this.#probe(heartbeat, signal)
    const today = startOfDay(now, zone)
    if (problem !== undefined) {
      const missing = `The heartbeat check could not be started, so the agent is not woken. ${problem}`
      await this.#notifyOnce(destination, missing, `heartbeat-check:${today}`)
      return { reason: 'probe-missing', note: missing }
    }
    if (heartbeat.probe && found === '') {
      return { reason: 'probe-quiet', note: `The check ${heartbeat.probe[0]} found nothing to do.` }
    }
    const prompt = promptOf(tasks, found)
    const last = await store.heartbeats.last()
    const wasQuiet = last?.state === 'answered' && !last.wasTold
    if (heartbeat.whenUnchanged === 'skip' && wasQuiet && last.digest === prompt.digest) {
      const what = heartbeat.probe ? 'heartbeat.md and the output of the check have' : 'heartbeat.md has'
      return { reason: 'unchanged', note: `The last heartbeat found nothing, and ${what} not changed.` }
    }
    const note = await this.#overBudget(heartbeat, now)
    if (note === undefined) return prompt
    await this.#notifyOnce(destination, note, `heartbeat-paused:${today}`)
    return { reason: 'budget', note }
  }

  /** Runs the operator's check; `found` is empty if there is none or it found nothing. */
  async #probe(
    { probe }: HeartbeatSettings,
    signal: AbortSignal,
  ): Promise<{ found: string; problem?: string | undefined }> {
    if (!probe) return { found: '' }
    const { exitCode, output, problem } = await this.options.runProbe(probe, signal)
    const failure = exitCode === 0 ? '' : `[The check ended with exit code ${exitCode}.]`
    const found = [output.trim(), failure].filter((part) => part !== '').join('\n')
    return { found, problem }
  }

  async #isBusy({ channel, place }: Destination): Promise<boolean> {
    const { store } = this.options
    const conversation = await store.conversations.find(channel, place.address)
    return conversation !== undefined && (await store.jobs.countOpen(conversation.id)) > 0
  }

  async #overBudget(heartbeat: HeartbeatSettings, now: number): Promise<string | undefined> {
    const zone = zoneOf(heartbeat)
    const usage = await this.options.store.figures.usage({ kind: 'heartbeat' }, startOfDay(now, zone))
    const tokens = tokensOf(usage)
    if (tokens < heartbeat.dailyTokens) return undefined
    const cost = usage.costUsd === undefined ? '' : `, for about ${usage.costUsd.toFixed(2)} USD`
    const share = `${formatCount(tokens)} of ${formatCount(heartbeat.dailyTokens)} tokens`
    const used = `${share} in ${describeTurns(usage)}${cost}`
    const until = describeTime(startOfNextDay(now, zone), zone)
    return `Heartbeats have used ${used} today, so they pause until ${until}. Set "dailyTokens" to change the limit.`
  }

  async #notifyOnce({ channel, place, author }: Destination, note: string, id: string): Promise<void> {
    const host = this.options.hostOf(channel)
    if (await host.claim(id)) await host.say(place, note, author)
  }

  async #settle(
    id: string,
    { session }: HeartbeatSettings,
    { channel, place, author }: Destination,
    prompt: BeatPrompt | Skip,
  ): Promise<BeatResult> {
    const { store, hostOf, log } = this.options
    if ('reason' in prompt) {
      const { reason, note } = prompt
      await store.heartbeats.skipped(id, reason, note)
      log.debug('heartbeat.skipped', { id, reason })
      return { status: 'skipped', reason, note }
    }
    const hasFailedBefore = (await store.heartbeats.last())?.state === 'failed'
    const { messageId } = await hostOf(channel).onMessage({
      ...place,
      platformId: id,
      author: author ?? 'heartbeat',
      kind: 'heartbeat',
      text: prompt.text,
      options: {
        session: session === 'own' ? 'own' : 'idle',
        ...(hasFailedBefore && { isKnownToFail: true }),
        ...(author !== undefined && { variables: { From: author } }),
      },
    })
    await store.heartbeats.begun(id, messageId, prompt.digest)
    log.info('heartbeat.begun', { id, messageId })
    return { status: 'begun', messageId }
  }

  #findDestination(heartbeat: HeartbeatSettings): Destination | undefined {
    try {
      return this.#destinationOf(heartbeat)
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== this.#loggedProblem) this.options.log.warn('heartbeat.no-target', { problem })
      this.#loggedProblem = problem
      return undefined
    }
  }

  #destinationOf({ to }: HeartbeatSettings): Destination {
    return findDestination(parseTarget(to), this.options.config, this.options.channels)
  }
}

/** Cached or not: the budget counts everything the model read and wrote. */
export function tokensOf({ tokens, uncountedTurns }: Usage): number {
  const estimate = uncountedTurns * UNCOUNTED_TURN_TOKENS
  if (!tokens) return estimate
  return estimate + tokens.inputTokens + tokens.outputTokens + tokens.cacheReadTokens + tokens.cacheWriteTokens
}

/** Such as `3 turns`, with a note on estimates. */
export function describeTurns({ turns, uncountedTurns }: Usage): string {
  const all = turns === 1 ? '1 turn' : `${turns} turns`
  if (uncountedTurns === 0) return all
  return `${all} (${uncountedTurns} reported no usage, estimated at ${formatCount(UNCOUNTED_TURN_TOKENS)} each)`
}

export function formatCount(count: number): string {
  return count.toLocaleString('en')
}

function promptOf(tasks: string, found: string): BeatPrompt {
  const hash = createHash('sha256').update(JSON.stringify([tasks, found]))
  return { text: heartbeatPrompt(found), digest: hash.digest('hex') }
}
