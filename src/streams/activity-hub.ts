// Activity in all conversations, for those who watch the whole gateway.
//
// Invariants:
// - The store is authoritative. It is read soon after something happens in this gateway, and polled for other gateways;
//   and only while somebody watches.
// - All watchers share each read. A watcher holds what it has reported, a cursor per followed message, and at most one
//   batch of each, which it shares with the message's other followers.
// - A run that ended before it was seen is followed too: all its events are stored.

import { wait } from '../core/async.js'
import { GatewayError } from '../errors.js'
import type { ConversationView, ConversationViews } from '../store/conversation-views.js'
import type { DeletedConversation } from '../store/conversations.js'
import type { BegunRun, Runs } from '../store/runs.js'
import { Changes } from './changes.js'
import { Funnel } from './funnel.js'
import type { NumberedEvent } from './numbered-event.js'
import type { StreamHub } from './stream-hub.js'

/** The part of a store that activity is read from. */
export interface ActivityStore {
  conversationViews: Pick<ConversationViews, 'list' | 'activeIds' | 'deletedSince'>
  runs: Pick<Runs, 'begunSince' | 'lastNumber'>
}

export type Activity =
  /** Everything that runs or waits. `positions` are the cursors, by message, after which its events follow. */
  | { type: 'snapshot'; conversations: ConversationView[]; positions: ReadonlyMap<string, number> }
  /** It changed, for example became idle. */
  | { type: 'conversation'; conversation: ConversationView }
  | { type: 'deleted'; conversationId: string }
  | { type: 'events'; conversationId: string; messageId: string; events: NumberedEvent[] }

export interface WatchOptions {
  canSee(conversation: DeletedConversation): boolean
  /** Cursors, by message, of a client that has watched before. */
  positions: ReadonlyMap<string, number>
}

interface Overview {
  /** Conversations that run, wait or have just changed. An unchanged one is the same object as before. */
  conversations: Map<string, ConversationView>
  /** Runs in progress or recently begun. */
  runs: Map<string, BegunRun>
  /** Conversations just deleted. */
  deleted: Map<string, DeletedConversation>
}

const POLL_MS = 500
/** Minimum time between reads. */
const PAUSE_MS = 50
/** A transaction may become visible after its timestamp, and gateways' clocks differ. */
const OVERLAP_MS = 30_000
/** A slower watcher may have missed changes that are no longer reported. */
const MAX_STALL_MS = 20_000
const REFOLLOW_MS = 250
const MAX_CONVERSATIONS = 1_000
/** Per watcher. Further conversations are reported without their events. */
export const MAX_FOLLOWED = 50

export class ActivityHub {
  #overview: Overview | undefined
  #refreshedAt: number | undefined
  #refreshing: Promise<void> | undefined
  #isStale = false
  #watchers = 0
  #poll: NodeJS.Timeout | undefined
  #pause: NodeJS.Timeout | undefined
  readonly #changes = new Changes()

  constructor(
    private readonly store: ActivityStore,
    private readonly streams: Pick<StreamHub, 'follow'>,
    private readonly now: () => number,
    private readonly pollMs = POLL_MS,
  ) {}

  /** Called when something may have changed. Contract: returns at once and never throws. */
  changed(): void {
    if (this.#watchers === 0) return
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined
      void this.#refreshAgain()
    }, PAUSE_MS).unref()
  }

  /** Called when a run has written something. Contract: see `changed`. */
  wrote(runId: string): void {
    if (this.#overview && !this.#overview.runs.has(runId)) this.changed()
  }

  /**
   * Yields a snapshot, then changes and the events of all runs, until the signal.
   *
   * Contract: a message's events come once each, in order and without gaps; from the first again if it is retried after
   * its end. While the store is unavailable nothing comes. Ends early for a slow consumer, or when a reported
   * conversation is no longer visible to it; a consumer that comes back gets a new snapshot.
   */
  async *watch(options: WatchOptions, signal: AbortSignal): AsyncGenerator<Activity, void> {
    this.#addWatcher()
    try {
      await this.#refreshAgain()
      const watcher = new Watcher(this.store, this.streams, options, signal)
      for await (const next of watcher.activities(this.#overviews(signal))) {
        const givenAt = this.now()
        yield next
        if (this.now() - givenAt > MAX_STALL_MS) return
      }
    } finally {
      this.#removeWatcher()
    }
  }

  #addWatcher(): void {
    this.#watchers += 1
    this.#poll ??= setInterval(() => void this.#refreshAgain(), this.pollMs).unref()
  }

  #removeWatcher(): void {
    this.#watchers -= 1
    if (this.#watchers > 0) return
    clearInterval(this.#poll)
    clearTimeout(this.#pause)
    this.#poll = undefined
    this.#pause = undefined
    this.#overview = undefined
    this.#refreshedAt = undefined
  }

  async *#overviews(signal: AbortSignal): AsyncGenerator<Overview, void> {
    while (!signal.aborted) {
      const { version } = this.#changes
      if (this.#overview) yield this.#overview
      await this.#changes.since(version, signal)
    }
  }

  /** Settles after a read that began after this call, or failed. */
  async #refreshAgain(): Promise<void> {
    this.#isStale = true
    while (this.#isStale && this.#watchers > 0) {
      // Concurrent callers share one read.
      if (this.#refreshing) await this.#refreshing
      else {
        this.#isStale = false
        this.#refreshing = this.#refresh()
          // The store is unavailable. The next read covers the time since the last one.
          .catch(() => {})
          .finally(() => {
            this.#refreshing = undefined
          })
      }
    }
    await this.#refreshing
  }

  async #refresh(): Promise<void> {
    const { conversationViews, runs } = this.store
    const at = this.now()
    const since = (this.#refreshedAt ?? at) - OVERLAP_MS
    const before = this.#overview
    const begun = await runs.begunSince(since, MAX_CONVERSATIONS)
    const ids = new Set([
      ...(await conversationViews.activeIds(since, MAX_CONVERSATIONS)),
      ...begun.map(({ conversationId }) => conversationId),
      // A change to idle must be reported, whatever its timestamp.
      ...[...(before?.conversations.values() ?? [])].filter(({ state }) => state !== 'idle').map(({ id }) => id),
    ])
    const found = await conversationViews.list({ visibility: { seesPrivate: true }, ids: [...ids] }, ids.size)
    const conversations = new Map(found.map((view) => [view.id, reuseIfSame(before?.conversations.get(view.id), view)]))
    const inProgress = found.flatMap(({ id: conversationId, run, head }): BegunRun[] =>
      run && head ? [{ id: run.id, messageId: head.messageId, conversationId }] : [],
    )
    const deleted = new Map((await conversationViews.deletedSince(since)).map((gone) => [gone.id, gone]))
    const overview = { conversations, deleted, runs: new Map([...begun, ...inProgress].map((run) => [run.id, run])) }
    if (this.#watchers === 0) return
    this.#refreshedAt = at
    if (before && isSame(before, overview)) return
    this.#overview = overview
    this.#changes.tell()
  }
}

/** What one watcher has been sent. */
class Watcher {
  readonly #funnel = new Funnel<Activity | Overview>()
  readonly #sent = new Map<string, ConversationView>()
  /** The last number sent, by message. */
  readonly #positions = new Map<string, number>()
  readonly #following = new Set<string>()
  #toldDeleted = new Set<string>()
  #seenRuns = new Set<string>()

  constructor(
    private readonly store: ActivityStore,
    private readonly streams: Pick<StreamHub, 'follow'>,
    private readonly options: WatchOptions,
    private readonly signal: AbortSignal,
  ) {}

  async *activities(overviews: AsyncIterable<Overview>): AsyncGenerator<Activity, void> {
    void this.#funnel.add(overviews)
    let isFirst = true
    for await (const next of this.#funnel.values(this.signal)) {
      if ('type' in next) {
        yield next
        continue
      }
      if (this.#hasLost(next)) return
      if (isFirst) yield await this.#begin(next)
      else yield* this.#changes(next)
      yield* this.#deletions(next)
      isFirst = false
      this.#followNew(next)
    }
  }

  async #begin(overview: Overview): Promise<Activity> {
    for (const conversation of this.#visible(overview)) this.#sent.set(conversation.id, conversation)
    for (const { head, run } of this.#sent.values()) {
      if (!head || this.#positions.size >= MAX_FOLLOWED) continue
      const { messageId } = head
      const position = this.options.positions.get(messageId) ?? (run && (await this.store.runs.lastNumber(messageId)))
      if (position !== undefined) this.#positions.set(messageId, position)
    }
    for (const { id, messageId, conversationId } of overview.runs.values()) {
      if (!this.#sent.has(conversationId)) continue
      const position = this.options.positions.get(messageId)
      if (position !== undefined) this.#positions.set(messageId, position)
      // Runs that ended before are in the transcript, unless only their end is missing.
      else if (!this.#positions.has(messageId)) this.#seenRuns.add(id)
    }
    const conversations = [...this.#sent.values()].filter(({ state }) => state !== 'idle')
    return { type: 'snapshot', conversations, positions: new Map(this.#positions) }
  }

  *#changes(overview: Overview): Generator<Activity, void> {
    for (const conversation of this.#visible(overview)) {
      if (this.#sent.get(conversation.id) === conversation) continue
      this.#sent.set(conversation.id, conversation)
      yield { type: 'conversation', conversation }
    }
    for (const id of this.#sent.keys()) if (!overview.conversations.has(id)) this.#sent.delete(id)
  }

  *#deletions({ deleted }: Overview): Generator<Activity, void> {
    for (const conversation of deleted.values()) {
      if (this.#toldDeleted.has(conversation.id) || !this.options.canSee(conversation)) continue
      yield { type: 'deleted', conversationId: conversation.id }
    }
    this.#toldDeleted = new Set(deleted.keys())
  }

  #hasLost({ conversations }: Overview): boolean {
    const sent = [...this.#sent.keys()].flatMap((id) => conversations.get(id) ?? [])
    return !sent.every((conversation) => this.options.canSee(conversation))
  }

  #visible({ conversations }: Overview): ConversationView[] {
    return [...conversations.values()].filter((conversation) => this.options.canSee(conversation))
  }

  #followNew({ runs }: Overview): void {
    this.#seenRuns = new Set([...this.#seenRuns].filter((id) => runs.has(id)))
    for (const run of runs.values()) {
      const { id, messageId, conversationId } = run
      if (this.#seenRuns.has(id) || !this.#sent.has(conversationId)) continue
      if (this.#following.has(messageId)) this.#seenRuns.add(id)
      else if (this.#following.size < MAX_FOLLOWED) {
        this.#seenRuns.add(id)
        this.#following.add(messageId)
        void this.#funnel.add(this.#follow(run))
      }
    }
  }

  /** Contract: never throws. After an error it continues from its cursor. */
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
          // Otherwise the store is unavailable.
        }
        await wait(REFOLLOW_MS, { signal: this.signal }).catch(() => {})
      }
    } finally {
      this.#following.delete(messageId)
    }
  }
}

function reuseIfSame(before: ConversationView | undefined, view: ConversationView): ConversationView {
  return before && JSON.stringify(before) === JSON.stringify(view) ? before : view
}

function isSame(before: Overview, { conversations, runs, deleted }: Overview): boolean {
  return (
    before.conversations.size === conversations.size &&
    before.runs.size === runs.size &&
    before.deleted.size === deleted.size &&
    [...deleted.keys()].every((id) => before.deleted.has(id)) &&
    [...conversations].every(([id, view]) => before.conversations.get(id) === view) &&
    [...runs.keys()].every((id) => before.runs.has(id))
  )
}
