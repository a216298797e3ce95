// What the parts of a turn hand to each other.

import type { AgentResult, Approve, SecretFile } from '../backends/types.js'
import type { ChannelMessage, Reply } from '../channels/types.js'
import type { TurnListener, TurnOutcome } from '../runtime/agent-runtime.js'
import type { Conversation } from '../store/conversations.js'
import type { Message } from '../store/inbox.js'
import type { Claim } from '../store/jobs.js'
import type { ProjectRecord } from '../store/projects.js'
import type { CutOffRun, NewRun } from '../store/runs.js'
import type { Session } from '../store/sessions.js'

/** The steps of a message's walk, in order. */
export type Step = 'accepted' | 'claimed' | 'streaming' | 'finished' | 'committed' | 'sent'

export interface IncomingMessage extends ChannelMessage {
  channel: string
}

/** A claimed message with all that its turn needs. */
export interface Work {
  claim: Claim
  claimedAt: number
  message: Message
  /** Messages answered with it, in order. Contract: a turn that takes in another adds it here. */
  merged: Message[]
  /** Whether such messages may be on record, told to the agent or not. */
  mayHaveMerged: boolean
  conversation: Conversation
  project?: ProjectRecord
  /** Whether the last attempt was cut off. */
  wasInterrupted: boolean
  /** Its runs that were under way when the claim of their gateway lapsed. */
  cutOff: CutOffRun[]
}

/** What is known of a run before it begins. */
export type PlannedRun = Pick<NewRun, 'id' | 'backend' | 'model' | 'directory'>

export interface EndedRun {
  id: string
  result: AgentResult
}

/** What a turn is run with, beside what its plan says. */
export interface TurnRequest {
  runId: string
  approve?: Approve
  environment?: Record<string, string>
  secretFiles?: SecretFile[]
}

/**
 * Contract: prepares at once, but asks no agent and starts nothing before `listener.mayBegin`, and rejects where that does.
 */
export type RunTurn = (request: TurnRequest, signal: AbortSignal, listener: TurnListener) => Promise<TurnOutcome>

/** Where and with what a turn runs. */
export interface TurnPlan {
  backend: string
  model?: string
  /** Where the agent works. In a pod it is no path of this machine. */
  directory: string
  /** Whether files of the directory can go with the answer. */
  canSendFiles: boolean
  run: RunTurn
  /** What the channel makes of an answer; undefined if there is nothing to say. */
  finish?(reply: Reply): Reply | undefined
}

/** What became of a turn. */
export type Settlement =
  /** Without a reply if there is nothing to tell, as after a quiet heartbeat. */
  | { kind: 'answered'; run: EndedRun; reply?: Reply; session?: Session }
  | { kind: 'failed'; problem: string; reply?: Reply; run?: EndedRun; session?: Session }
  /** `note` tells the person why they wait. */
  | { kind: 'retry'; at: number; isAttempt: boolean; run: EndedRun; note?: Reply; session?: Session }
  /** Without a run if it was cancelled before that began. */
  | { kind: 'cancelled'; run?: EndedRun; session?: Session }
  /** Released unfinished, for another gateway or the next start. */
  | { kind: 'handed-back'; runId?: string }
