// Current activity in the gateway: one stream for all pages.
//
// - Each connection starts with a snapshot. Earlier events of its turns are read from the store, and new ones are held
//   back meanwhile, so that a turn is shown in order and without gaps.
// - Pages are notified at most once per animation frame.
// - A hidden tab closes its stream: a browser allows six connections to one gateway, for all tabs together.

import { useEffect, useState } from 'preact/hooks'
import type { ActivityEvent, Conversation } from '../../src/client/aetheel-client.js'
import { api } from './api.js'
import { type RunEvent, RunModel } from './run-model.js'

export type ConnectionState = 'connecting' | 'live' | 'lost'

/** A message that an agent is working on. */
export interface Turn {
  messageId: string
  conversationId: string
  model: RunModel
  /** Earlier events are being read. */
  isLoading: boolean
}

/** Contract: a new object after each change, but its maps and models belong to the store. */
export interface LiveState {
  connection: ConnectionState
  /** When the connection was lost, in milliseconds since the epoch. */
  lostAt?: number
  /** Incremented with each connection: what a page loaded before may be out of date. */
  snapshots: number
  /** All that run or wait, and all that have changed since. */
  conversations: ReadonlyMap<string, Conversation>
  /** By message id. */
  turns: ReadonlyMap<string, Turn>
}

/** Read of a turn that is already running: enough to fill the page. */
const EARLIER_EVENTS = 1000
const RETRY_MS = 5_000
/** How often a hidden tab polls, to keep its title up to date. */
const HIDDEN_POLL_MS = 15_000
const POLLED = 40
/** A tab that is hidden for less time keeps its stream. */
const HIDDEN_AFTER_MS = 10_000
const MOST_IDLE = 200
const MOST_ENDED_TURNS = 20

export class LiveStore {
  #connection: ConnectionState = 'connecting'
  #lostAt: number | undefined
  #snapshots = 0
  readonly #conversations = new Map<string, Conversation>()
  readonly #turns = new Map<string, Turn>()
  /** Events held back until earlier ones are read, by message. */
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

  /** The stream is closed on purpose. */
  paused(): void {
    this.#connection = 'connecting'
    this.onChange()
  }

  lost(): void {
    this.#connection = 'lost'
    this.#lostAt ??= this.now()
    this.onChange()
  }

  /** Conversations polled without the stream. Contract: takes only newer versions of known ones. */
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
      // It ended while the stream was closed, so its current state is unknown.
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
    // Keeps the most recent last.
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

  /** Reads the events up to `last`. */
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
      // The next connection brings a new snapshot. Until then, the turn is shown without its earlier events.
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

/** Follows the stream until the returned function is called. */
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
      // The tab is hidden, the login has ended (then the login page is shown), or the gateway was away for minutes.
    } finally {
      stopWatching()
    }
    if (signal.aborted) return
    if (unseen.signal.aborted) {
      target.paused()
      await pollUntilSeen(target, signal)
    } else {
      target.lost()
      await new Promise((resolve) => {
        setTimeout(resolve, RETRY_MS)
      })
    }
  }
}

/** Polls instead of streaming until the tab is visible again. */
async function pollUntilSeen(target: LiveStore, signal: AbortSignal): Promise<void> {
  const timer = setInterval(() => {
    api.conversations.list({ limit: POLLED }).then(
      ({ conversations }) => target.hear(conversations),
      () => undefined, // The next poll may get through.
    )
  }, HIDDEN_POLL_MS)
  await untilSeen(signal)
  clearInterval(timer)
}

/** Calls the listener when the tab has been hidden for a while. Returns the unsubscribe function. */
function onUnseen(listener: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = (): void => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(listener, HIDDEN_AFTER_MS)
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

/** Calls the listener when the page is next connected to the gateway. Returns the unsubscribe function. */
export function onConnected(listener: () => void): () => void {
  const { snapshots } = store.state()
  const look = (): void => {
    if (store.state().snapshots <= snapshots) return
    listeners.delete(look)
    listener()
  }
  listeners.add(look)
  return () => {
    listeners.delete(look)
  }
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
