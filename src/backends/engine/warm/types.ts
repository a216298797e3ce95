/** The contract of an agent whose warm process takes turn after turn. */

import type { ShortenLine } from '../../../processes/line-splitter.js'
import type { Invocation } from '../cli-backend.js'
import type { JsonObject } from '../jsonl.js'
import type { Place } from '../place.js'
import type { Translation } from '../translation.js'
import type { Turn } from '../turn.js'
import type { AgentEventBody, Approve, Steer } from '../../types.js'

/** How one CLI is started as a warm process, and what is said to it. */
export interface WarmDriver {
  /** Whether one process takes the turns of several sessions, also at the same time. */
  readonly isShared: boolean
  /** Whether no other process can go on with a session while this one has it. */
  readonly locksSessions?: boolean
  /** Whether it can ask before it uses a tool. */
  readonly canAsk?: boolean
  /** Versions from this one on are known to work in this way. */
  readonly oldestKnown: string
  /** What cannot be changed once the process runs: turns with the same key, and where it is not shared the same session, can
   *  follow each other in one process. */
  keyOf(turn: Turn): string
  /** Contract: as in one-shot, changes nothing but the files of `place`, which are gone with the process. */
  launch(turn: Turn, place: Place, signal: AbortSignal): Invocation | Promise<Invocation>
  /** Leaves out what nobody reads of a line, where that is most of it. */
  readonly shorten?: ShortenLine
  /** Begins to talk to a process that was just started in that place. */
  connect(send: (message: JsonObject) => void, place: Place): WarmConnection
}

/** The talk with one process. */
export interface WarmConnection {
  /** Settles when turns can begin. Contract: rejects with a sentence when the CLI does not answer as it should. */
  readonly ready: Promise<void>
  /** Settles when the process has answered a question that is about nothing. Contract: called while no turn is under way;
   *  never rejects, and never settles when there is no answer. */
  ping(): Promise<void>
  /** Each message of the process, in order. It may trust the shapes it captured: what it throws becomes a notice. */
  receive(message: JsonObject): void
  /** Begins a turn; every message of it is given to its translation. `approve` comes with a turn that is to ask. Contract:
   *  one at a time for a session. */
  begin(turn: Turn, emit: (event: AgentEventBody) => void, approve?: Approve): WarmTurn
}

/** One turn of a warm process. */
export interface WarmTurn {
  /** Has the verdict when `done` has settled. */
  readonly translation: Translation
  /** Settles when the agent has spoken its final word of this turn, also after an interrupt. Contract: never rejects. */
  readonly done: Promise<void>
  /** Known when `done` has settled: the agent was not asked, as the turn cannot be had in a warm process. */
  readonly isDeclined?: boolean
  /** Whether it is still being prepared, and the agent knows nothing of it. */
  readonly isPending?: boolean
  /** Asks the agent to stop; it stays usable. */
  interrupt(): void
  /** Known when `done` has settled: the process must not take another turn. */
  readonly isSpent?: boolean
  /** Absent where the protocol has no way for it. It may stay open when the turn has ended: then nothing was taken. */
  steer?: Steer
}
