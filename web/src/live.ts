// What goes on, as the gateway tells it: one stream for all pages.
//
// - Each connection begins with a snapshot. What runs then has events that came before: they are read from the store, and
//   those that come meanwhile wait for them, so that a turn is shown in order and without gaps.
// - Pages are told at most once for each frame that is drawn.
// - A tab that nobody sees lets go of its stream: a browser has six connections to one gateway, for all tabs together.

import { useEffect, useState } from 'preact/hooks'
import type { ActivityEvent, Conversation } from '../../src/client/aetheel-client.js'
import { api } from './api.js'
import { type RunEvent, RunModel } from './run-model.js'

export type ConnectionState = 'connecting' | 'live' | 'lost'

/** A message that is worked on. */
export interface Turn {
  messageId: string
  conversationId: string
  model: RunModel
  /** What came before is being read. */
  isLoading: boolean
}

/** Contract: a new value after each change; the maps and the models in it are the store's own. */
export interface LiveState {
  connection: ConnectionState
  /** Since when nothing is heard, in milliseconds since the epoch. */
  lostAt?: number
  /** Goes up with each connection: what a page has loaded before may be old. */
  snapshots: number
  /** Everything that runs or waits, and what has been heard of since. */
  conversations: ReadonlyMap<string, Conversation>
  /** By the id of the message. */
  turns: ReadonlyMap<string, Turn>
}

/** Of a turn that runs already: enough to fill what is shown. */
const EARLIER_EVENTS = 1000
const RETRY_MS = 5_000
/** Between two looks of a tab that nobody sees, for what its title tells. */
const UNSEEN_LOOK_MS = 15_000
const LOOKED_AT = 40
/** Who comes back sooner has missed nothing. */
const UNSEEN_MS = 10_000
const MOST_IDLE = 200
const MOST_ENDED_TURNS = 20

export class LiveStore {
  #connection: ConnectionState = 'connecting'
  #lostAt: number | undefined
  #snapshots = 0
  readonly #conversations = new Map<string, Conversation>()
  readonly #turns = new Map<string, Turn>()
  /** Events that wait for those before them, by message. */
  readonly #held = new Map<string, RunEvent[]>()

  constructor(
    private readonly runEvents: typeof api.runEvents,
    private readonly onChange: () => void,
    private readonly now: () => number = Date.now,
  ) {}

  state(): LiveState {
    return {
      connection: this.#connection,
      ...(this.#lostAt !== undefined && { lostAt: this.#lostAt }),
      snapshots: this.#snapshots,
      conversations: this.#conversations,
      turns: this.#turns,
    }
  }

  /** Nothing is listened to for now. */
  paused(): void {
    this.#connection = 'connecting'
    this.onChange()
  }

  lost(): void {
    this.#connection = 'lost'
    this.#lostAt ??= this.now()
    this.onChange()
  }

  /** As they are now, asked for beside the stream. Contract: those that are known already, where they are newer. */
  hear(conversations: Conversation[]): void {
    for (const conversation of conversations) {
      const known = this.#conversations.get(conversation.id)
      if (known && known.updated_at < conversation.updated_at) this.#hear(conversation)
    }
    this.onChange()
  }

  take(next: ActivityEvent): void {
    switch (next.name) {
      case 'snapshot':
        this.#begin(next.data.conversations)
        break
      case 'conversation':
        this.#hear(next.data)
        break
      case 'conversation_deleted':
        this.#conversations.delete(next.data.id)
        break
      case 'event':
        this.#follow(next.data)
        break
    }
    this.onChange()
  }

  #begin(conversations: Extract<ActivityEvent, { name: 'snapshot' }>['data']['conversations']): void {
    this.#connection = 'live'
    this.#lostAt = undefined
    this.#snapshots += 1
    const open = new Set(conversations.map(({ id }) => id))
    for (const [id, { state }] of this.#conversations) {
      // Ended while nobody listened: how it is now is not known here.
      if (state !== 'idle' && !open.has(id)) this.#conversations.delete(id)
    }
    const worked = new Set(conversations.map(({ message_id: id }) => id))
    for (const [messageId, { model }] of this.#turns) {
      if (!model.end && !worked.has(messageId)) this.#turns.delete(messageId)
    }
    for (const { last_event_id: last, ...conversation } of conversations) {
      this.#hear(conversation)
      const { message_id: messageId, run } = conversation
      if (messageId !== null && run && last !== null)
        void this.#load(this.#turnOf(messageId, conversation.id), run.id, last)
    }
  }

  #hear(conversation: Conversation): void {
    // The latest is the last.
    this.#conversations.delete(conversation.id)
    this.#conversations.set(conversation.id, conversation)
    if (this.#conversations.size <= MOST_IDLE) return
    const idle = [...this.#conversations.values()].find(({ state }) => state === 'idle')
    if (idle) this.#conversations.delete(idle.id)
  }

  #follow({ conversation_id: conversationId, message_id: messageId, ...event }: RunEventOfMessage): void {
    const held = this.#held.get(messageId)
    if (held) held.push(event)
    else this.#turnOf(messageId, conversationId).model.apply(event)
    if (event.name === 'complete') this.#forgetEnded()
  }

  #turnOf(messageId: string, conversationId: string): Turn {
    const known = this.#turns.get(messageId)
    if (known) return known
    const turn: Turn = { messageId, conversationId, model: new RunModel(), isLoading: false }
    this.#turns.set(messageId, turn)
    return turn
  }

  /** Reads what came up to `last`. */
  async #load(turn: Turn, runId: string, last: number): Promise<void> {
    const { messageId, model } = turn
    if (model.lastId >= last || this.#held.has(messageId)) return
    this.#held.set(messageId, [])
    turn.isLoading = true
    try {
      let after: number | null = Math.max(model.lastId, last - EARLIER_EVENTS)
      while (after !== null && after < last) {
        const page: Awaited<ReturnType<typeof api.runEvents>> = await this.runEvents(runId, {
          after,
          limit: EARLIER_EVENTS,
        })
        for (const event of page.events) if (event.id <= last) model.apply(event)
        after = page.next
      }
    } catch {
      // The next connection brings a new snapshot; what comes meanwhile is shown without what was before.
    } finally {
      const held = this.#held.get(messageId) ?? []
      this.#held.delete(messageId)
      for (const event of held) model.apply(event)
      turn.isLoading = false
      this.onChange()
    }
  }

  #forgetEnded(): void {
    const ended = [...this.#turns.values()].filter(({ model }) => model.end)
    for (const { messageId } of ended.slice(0, -MOST_ENDED_TURNS)) this.#turns.delete(messageId)
  }
}

type RunEventOfMessage = Extract<ActivityEvent, { name: 'event' }>['data']

const listeners = new Set<() => void>()
let isTellingSoon = false

function tell(): void {
  if (isTellingSoon) return
  isTellingSoon = true
  const now = (): void => {
    isTellingSoon = false
    for (const listener of listeners) listener()
  }
  // A hidden tab draws no frames.
  if (document.hidden) setTimeout(now)
  else requestAnimationFrame(now)
}

let store = new LiveStore(api.runEvents.bind(api), tell)

/** Follows the stream until what it gives back is called. */
export function followActivity(): () => void {
  const ending = new AbortController()
  store = new LiveStore(api.runEvents.bind(api), tell)
  void follow(store, ending.signal)
  return () => ending.abort()
}

async function follow(target: LiveStore, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const unseen = new AbortController()
    const stopWatching = onUnseen(() => unseen.abort())
    try {
      const either = AbortSignal.any([signal, unseen.signal])
      for await (const next of api.activity({ signal: either, onLost: () => target.lost() })) target.take(next)
    } catch {
      // Unseen, refused, or away for minutes. Who is not let in any more sees the login instead of this.
    } finally {
      stopWatching()
    }
    if (signal.aborted) return
    if (unseen.signal.aborted) {
      target.paused()
      await lookNowAndThen(target, signal)
    } else {
      target.lost()
      await new Promise((resolve) => {
        setTimeout(resolve, RETRY_MS)
      })
    }
  }
}

/** Without a stream of its own, until the tab is seen again. */
async function lookNowAndThen(target: LiveStore, signal: AbortSignal): Promise<void> {
  const timer = setInterval(() => {
    api.conversations.list({ limit: LOOKED_AT }).then(
      ({ conversations }) => target.hear(conversations),
      () => undefined, // The next look may get through.
    )
  }, UNSEEN_LOOK_MS)
  await untilSeen(signal)
  clearInterval(timer)
}

/** Tells when nobody has seen the page for a while. Gives back what ends that. */
function onUnseen(listener: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = (): void => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(listener, UNSEEN_MS)
  }
  look()
  document.addEventListener('visibilitychange', look)
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', look)
  }
}

function untilSeen(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.hidden && !signal.aborted) return
      document.removeEventListener('visibilitychange', look)
      signal.removeEventListener('abort', look)
      resolve()
    }
    document.addEventListener('visibilitychange', look)
    signal.addEventListener('abort', look)
    look()
  })
}

export function useLive(): LiveState {
  const [state, setState] = useState(() => store.state())
  useEffect(() => {
    const listener = (): void => setState(store.state())
    listeners.add(listener)
    listener()
    return () => {
      listeners.delete(listener)
    }
  }, [])
  return state
}
