/** The contract of an agent that can run as a warm process. */

import type { ShortenLine } from '../../../processes/output.js'
import type { Invocation } from '../cli-backend.js'
import type { JsonObject } from '../jsonl.js'
import type { Place } from '../place.js'
import type { Translation } from '../translation.js'
import type { Turn } from '../turn.js'
import type { Approve, Steer } from '../../types.js'

/** What the process gets from the operator's environment and for its run. */
export type Variables = Readonly<Record<string, string>>

export type Send = (message: JsonObject) => void

/** How one CLI is started as a warm process, and the protocol it speaks. */
export interface WarmDriver {
  /** Whether one process takes the turns of several sessions, even concurrently. */
  readonly isShared: boolean
  /** Whether no other process can continue a session while this one has it loaded. */
  readonly locksSessions?: boolean
  /** Whether it can ask for approval before it uses a tool. */
  readonly canAsk?: boolean
  /** Whether the protocol takes a turn with a `compaction`, which no command line could. */
  readonly canCompact?: boolean
  /** The oldest version known to work as a warm process. */
  readonly oldestKnown: string
  /** Covers everything that cannot change while the process runs. Turns with the same key can run in one process; if it is
   *  not shared, they must also be of the same session. */
  keyOf(turn: Turn): string
  /** Contract: as in one-shot, writes only files of `place`, which are removed with the process. */
  launch(turn: Turn, place: Place, signal: AbortSignal, variables: Variables): Invocation | Promise<Invocation>
  /** Drops unused parts of long lines. */
  readonly shorten?: ShortenLine
  /** Opens the connection to a process that was just started in that place. */
  connect(send: Send, place: Place, variables: Variables): WarmConnection
}

/** The protocol connection to one process. */
export interface WarmConnection {
  /** Settles when turns can begin. Contract: rejects with a sentence if the CLI does not respond as expected. */
  readonly ready: Promise<void>
  /** Settles when the process has answered a no-op request. Contract: called only while no turn is running; never rejects,
   *  and never settles if there is no answer. */
  ping(): Promise<void>
  /** Takes each message of the process, in order. It may trust the captured shapes: an exception becomes a notice. */
  receive(message: JsonObject): void
  /** Begins a turn, whose messages all go to the translation. `approve` is given if the turn needs approvals. Contract: one
   *  turn at a time in each session. */
  begin(turn: Turn, translation: Translation, approve?: Approve): WarmTurn
}

/** One turn of a warm process. */
export interface WarmTurn {
  /** Settles when the translation has the agent's final word on this turn, even after an interrupt. Contract: never
   *  rejects. */
  readonly done: Promise<void>
  /** Known once `done` has settled: a warm process cannot run this turn, so the agent did not get the prompt. */
  readonly isDeclined?: boolean
  /** Whether it is still being prepared, so the agent knows nothing about it. */
  readonly isPending?: boolean
  /** Asks the agent to stop the turn; the process stays usable. */
  interrupt(): void
  /** Known once `done` has settled: the process must not take another turn. */
  readonly isSpent?: boolean
  /** Absent if the protocol does not support it. May never settle if the turn ends first: then nothing was taken. */
  steer?: Steer
}
