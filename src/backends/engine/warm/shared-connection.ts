// Shared by agents that speak JSON-RPC and whose single process takes the turns of several sessions.

import { deferred, Lanes } from '../../../core/async.js'
import type { Approve } from '../../types.js'
import type { JsonObject } from '../jsonl.js'
import type { Translation } from '../translation.js'
import type { Turn } from '../turn.js'
import { Rpc, type RpcListener } from './rpc.js'
import type { Send, WarmConnection, WarmTurn } from './types.js'

/** A turn that may have to wait or be prepared before the agent gets the prompt. */
export abstract class SharedTurn implements WarmTurn {
  isInterrupted = false
  /** Aborted when approvals are no longer needed. */
  protected readonly over = new AbortController()
  readonly #done = deferred()
  readonly done = this.#done.promise
  #isPrompted = false

  constructor(
    readonly turn: Turn,
    readonly translation: Translation,
    protected readonly rpc: Rpc,
    protected readonly approve?: Approve,
  ) {}

  get isPending(): boolean {
    return !this.#isPrompted
  }

  /** Returns whether the prompt may still be sent. From then on, an interrupt goes to the agent. */
  mayPrompt(): boolean {
    this.#isPrompted = !this.isInterrupted
    return this.#isPrompted
  }

  /** A turn that the agent knows nothing about ends at once. */
  interrupt(): void {
    this.isInterrupted = true
    if (this.#isPrompted) this.stop()
    else this.finish()
  }

  finish(): void {
    this.#done.resolve()
  }

  /** Reports why the turn could not run. */
  abstract fail(error: unknown): void

  protected abstract stop(): void
}

/** Runs the turns of all sessions, one at a time in each. */
export abstract class SharedConnection<OneTurn extends SharedTurn> implements WarmConnection, RpcListener {
  abstract readonly ready: Promise<void>
  protected readonly rpc: Rpc
  /** Running turns, by session id. */
  protected readonly turns = new Map<string, OneTurn>()
  readonly #lanes = new Lanes()

  /** `frame` is merged into every message. */
  constructor(send: Send, frame: JsonObject = {}) {
    this.rpc = new Rpc(send, this, frame)
  }

  abstract ping(): Promise<void>
  abstract onNotification(method: string, params: JsonObject): void
  abstract onRequest(method: string, params: JsonObject): Promise<JsonObject | undefined>

  receive(message: JsonObject): void {
    this.rpc.receive(message)
  }

  begin(turn: Turn, translation: Translation, approve?: Approve): WarmTurn {
    const warm = this.newTurn(turn, translation, approve)
    void this.#run(warm)
    return warm
  }

  /** Contract: never rejects. */
  async #run(warm: OneTurn): Promise<void> {
    try {
      const id = warm.turn.sessionId?.toLowerCase() ?? (await this.open(warm.turn)).id
      await this.#lanes.run(id, () => this.talk(id, warm))
    } catch (error) {
      warm.fail(error)
    }
    warm.finish()
  }

  protected abstract newTurn(turn: Turn, translation: Translation, approve?: Approve): OneTurn
  /** Opens a new session for a turn that names none, or a stored one by its id. */
  protected abstract open(turn: Turn, id?: string): Promise<{ id: string }>
  /** Runs a turn of that session to its end. */
  protected abstract talk(id: string, warm: OneTurn): Promise<void>
}
