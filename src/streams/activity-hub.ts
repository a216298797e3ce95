// What goes on in all conversations, for whoever watches the whole gateway.
//
// What must stay true:
// - The store is the truth here, too. It is looked at soon after something happened in this gateway, and every now and
//   then for what happens in others; and only while somebody watches.
// - All watchers share one look. Each keeps what it has told, a number for every message that it follows, and one batch
//   of each of these at most, which it shares with all who follow that message.
// - A run that was over before it was seen is followed as well: its events are all there.

import { wait } from '../core/async.js'
import { GatewayError } from '../errors.js'
import type { ConversationView, ConversationViews } from '../store/conversation-views.js'
import type { BegunRun, Runs } from '../store/runs.js'
import { Funnel } from './funnel.js'
import type { NumberedEvent } from './numbered-event.js'
import type { StreamHub } from './stream-hub.js'

/** The part of a store that is looked at. */
export interface ActivityStore {
  conversationViews: Pick<ConversationViews, 'list' | 'activeIds'>
  runs: Pick<Runs, 'begunSince' | 'lastNumber'>
}

export type Activity =
  /** Everything that runs or waits. `positions` are the numbers, by message, after which its events come here. */
  | { type: 'snapshot'; conversations: ConversationView[]; positions: ReadonlyMap<string, number> }
  /** Something has changed in it, as that it is idle now. */
  | { type: 'conversation'; conversation: ConversationView }
  | { type: 'events'; conversationId: string; messageId: string; events: NumberedEvent[] }

export interface WatchOptions {
  canSee(conversation: ConversationView): boolean
  /** The numbers, by message, after which its events are told: for who has watched before. */
  positions: ReadonlyMap<string, number>
}

interface Scene {
  /** Those that run, wait or have just changed. One that is the same as before is the same object. */
  conversations: Map<string, ConversationView>
  /** The runs that go on or began lately. */
  runs: Map<string, BegunRun>
}

const POLL_MS = 500
/** Not oftener than this, however much happens. */
const PAUSE_MS = 50
/** A transaction may be seen later than the time it carries, and the clocks of two gateways differ. */
const OVERLAP_MS = 30_000
/** Who is away for longer may have missed what is not told any more. */
const LONGEST_PAUSE_MS = 20_000
const FOLLOW_AGAIN_MS = 250
const MOST_CONVERSATIONS = 1_000
/** Of one watcher. More are told of without their events. */
export const MOST_FOLLOWED = 50

export class ActivityHub {
  #scene: Scene | undefined
  #lookedAt: number | undefined
  #looking: Promise<void> | undefined
  #isStale = false
  #version = 0
  #watchers = 0
  #poll: NodeJS.Timeout | undefined
  #pause: NodeJS.Timeout | undefined
  readonly #waiting = new Set<() => void>()

  constructor(
    private readonly store: ActivityStore,
    private readonly streams: Pick<StreamHub, 'follow'>,
    private readonly now: () => number,
    private readonly pollMs = POLL_MS,
  ) {}

  /** Something may have changed. Contract: returns at once and never throws. */
  changed(): void {
    if (this.#watchers === 0) return
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined
      void this.#lookAgain()
    }, PAUSE_MS).unref()
  }

  /** A run has written something. Contract: as `changed`. */
  wrote(runId: string): void {
    if (this.#scene && !this.#scene.runs.has(runId)) this.changed()
  }

  /**
   * A snapshot first, then what changes and the events of all runs, until the signal.
   *
   * Contract: the events of a message come each once, in order and without gaps; from the first again when it is taken up
   * again after its end. While the store is away there is silence.
   * Ends early for who takes too long, or when a conversation that was told of must not be seen any more; who comes back
   * gets a new snapshot.
   */
  async *watch(options: WatchOptions, signal: AbortSignal): AsyncGenerator<Activity, void> {
    this.#join()
    try {
      await this.#lookAgain()
      const watcher = new Watcher(this.store, this.streams, options, signal)
      for await (const next of watcher.activities(this.#scenes(signal))) {
        const givenAt = this.now()
        yield next
        if (this.now() - givenAt > LONGEST_PAUSE_MS) return
      }
    } finally {
      this.#leave()
    }
  }

  #join(): void {
    this.#watchers += 1
    this.#poll ??= setInterval(() => void this.#lookAgain(), this.pollMs).unref()
  }

  #leave(): void {
    this.#watchers -= 1
    if (this.#watchers > 0) return
    clearInterval(this.#poll)
    clearTimeout(this.#pause)
    this.#poll = undefined
    this.#pause = undefined
    this.#scene = undefined
    this.#lookedAt = undefined
  }

  async *#scenes(signal: AbortSignal): AsyncGenerator<Scene, void> {
    while (!signal.aborted) {
      const version = this.#version
      if (this.#scene) yield this.#scene
      if (version === this.#version) await this.#change(signal)
    }
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake)
      if (signal.aborted) wake()
    })
  }

  /** Settles after a look that began later than now, or failed. */
  async #lookAgain(): Promise<void> {
    this.#isStale = true
    while (this.#isStale && this.#watchers > 0) {
      // Of several who ask, one looks.
      if (this.#looking) await this.#looking
      else {
        this.#isStale = false
        this.#looking = this.#look()
          // The store does not answer now. The next look covers the time since the last one.
          .catch(() => {})
          .finally(() => {
            this.#looking = undefined
          })
      }
    }
    await this.#looking
  }

  async #look(): Promise<void> {
    const { conversationViews, runs } = this.store
    const at = this.now()
    const since = (this.#lookedAt ?? at) - OVERLAP_MS
    const before = this.#scene
    const begun = await runs.begunSince(since, MOST_CONVERSATIONS)
    const ids = new Set([
      ...(await conversationViews.activeIds(since, MOST_CONVERSATIONS)),
      ...begun.map(({ conversationId }) => conversationId),
      // Whatever time it carries, that it is idle must be told.
      ...[...(before?.conversations.values() ?? [])].filter(({ state }) => state !== 'idle').map(({ id }) => id),
    ])
    const found = await conversationViews.list({ visibility: { seesPrivate: true }, ids: [...ids] }, ids.size)
    const conversations = new Map(found.map((view) => [view.id, sameOr(before?.conversations.get(view.id), view)]))
    const going = found.flatMap(({ id: conversationId, run, head }): BegunRun[] =>
      run && head ? [{ id: run.id, messageId: head.messageId, conversationId }] : [],
    )
    const scene = { conversations, runs: new Map([...begun, ...going].map((run) => [run.id, run])) }
    if (this.#watchers === 0) return
    this.#lookedAt = at
    if (before && isSame(before, scene)) return
    this.#scene = scene
    this.#version += 1
    for (const wake of this.#waiting) wake()
  }
}

/** What one who watches has been told. */
class Watcher {
  readonly #funnel = new Funnel<Activity | Scene>()
  readonly #told = new Map<string, ConversationView>()
  /** By message, the last number that was told. */
  readonly #positions = new Map<string, number>()
  readonly #following = new Set<string>()
  #seenRuns = new Set<string>()

  constructor(
    private readonly store: ActivityStore,
    private readonly streams: Pick<StreamHub, 'follow'>,
    private readonly options: WatchOptions,
    private readonly signal: AbortSignal,
  ) {}

  async *activities(scenes: AsyncIterable<Scene>): AsyncGenerator<Activity, void> {
    void this.#funnel.add(scenes)
    let isFirst = true
    for await (const next of this.#funnel.values(this.signal)) {
      if ('type' in next) {
        yield next
        continue
      }
      if (this.#hasLost(next)) return
      if (isFirst) yield await this.#begin(next)
      else yield* this.#changes(next)
      isFirst = false
      this.#followNew(next)
    }
  }

  async #begin(scene: Scene): Promise<Activity> {
    for (const conversation of this.#visible(scene)) this.#told.set(conversation.id, conversation)
    for (const { head, run } of this.#told.values()) {
      if (!head || this.#positions.size >= MOST_FOLLOWED) continue
      const { messageId } = head
      const position = this.options.positions.get(messageId) ?? (run && (await this.store.runs.lastNumber(messageId)))
      if (position !== undefined) this.#positions.set(messageId, position)
    }
    for (const { id, messageId, conversationId } of scene.runs.values()) {
      if (!this.#told.has(conversationId)) continue
      const position = this.options.positions.get(messageId)
      if (position !== undefined) this.#positions.set(messageId, position)
      // What was over before is in the transcript, unless its end is all that is missing.
      else if (!this.#positions.has(messageId)) this.#seenRuns.add(id)
    }
    const conversations = [...this.#told.values()].filter(({ state }) => state !== 'idle')
    return { type: 'snapshot', conversations, positions: new Map(this.#positions) }
  }

  *#changes(scene: Scene): Generator<Activity, void> {
    for (const conversation of this.#visible(scene)) {
      if (this.#told.get(conversation.id) === conversation) continue
      this.#told.set(conversation.id, conversation)
      yield { type: 'conversation', conversation }
    }
    for (const id of this.#told.keys()) if (!scene.conversations.has(id)) this.#told.delete(id)
  }

  #hasLost({ conversations }: Scene): boolean {
    const told = [...this.#told.keys()].flatMap((id) => conversations.get(id) ?? [])
    return !told.every((conversation) => this.options.canSee(conversation))
  }

  #visible({ conversations }: Scene): ConversationView[] {
    return [...conversations.values()].filter((conversation) => this.options.canSee(conversation))
  }

  #followNew({ runs }: Scene): void {
    this.#seenRuns = new Set([...this.#seenRuns].filter((id) => runs.has(id)))
    for (const run of runs.values()) {
      const { id, messageId, conversationId } = run
      if (this.#seenRuns.has(id) || !this.#told.has(conversationId)) continue
      if (this.#following.has(messageId)) this.#seenRuns.add(id)
      else if (this.#following.size < MOST_FOLLOWED) {
        this.#seenRuns.add(id)
        this.#following.add(messageId)
        void this.#funnel.add(this.#follow(run))
      }
    }
  }

  /** Contract: never throws. What breaks is followed again from where it was. */
  async *#follow({ messageId, conversationId }: BegunRun): AsyncGenerator<Activity, void> {
    try {
      while (!this.signal.aborted) {
        const after = this.#positions.get(messageId) ?? 0
        try {
          for await (const events of this.streams.follow(messageId, after, this.signal)) {
            const last = events.at(-1)
            this.#positions.set(messageId, last?.number ?? after)
            yield { type: 'events', conversationId, messageId, events }
            if (last?.event.type !== 'final') continue
            this.#positions.delete(messageId)
            return
          }
        } catch (error) {
          if (error instanceof GatewayError && error.code === 'not_found') return
          // Else the store does not answer now.
        }
        await wait(FOLLOW_AGAIN_MS, { signal: this.signal }).catch(() => {})
      }
    } finally {
      this.#following.delete(messageId)
    }
  }
}

function sameOr(before: ConversationView | undefined, view: ConversationView): ConversationView {
  return before && JSON.stringify(before) === JSON.stringify(view) ? before : view
}

function isSame(before: Scene, { conversations, runs }: Scene): boolean {
  return (
    before.conversations.size === conversations.size &&
    before.runs.size === runs.size &&
    [...conversations].every(([id, view]) => before.conversations.get(id) === view) &&
    [...runs.keys()].every((id) => before.runs.has(id))
  )
}
