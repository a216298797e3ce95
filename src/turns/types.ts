// Types shared by the parts of a turn.

import type { AgentResult, Approve, SecretFile } from '../backends/types.js'
import type { ChannelMessage, NextAttempt, Reply } from '../channels/types.js'
import type { TurnListener, TurnOutcome } from '../runtime/agent-runtime.js'
import type { RetryLimits } from '../runtime/retry.js'
import type { Conversation } from '../store/conversations.js'
import type { Message } from '../store/inbox.js'
import type { Claim } from '../store/jobs.js'
import type { ProjectRecord } from '../store/projects.js'
import type { CutOffRun, NewRun } from '../store/runs.js'
import type { Session } from '../store/sessions.js'

/** The steps of a message, in order. */
export type Step = 'accepted' | 'claimed' | 'streaming' | 'finished' | 'committed' | 'sent'

export interface IncomingMessage extends ChannelMessage {
  channel: string
}

/** A claimed message with everything its turn needs. */
export interface Work {
  claim: Claim
  claimedAt: number
  message: Message
  /** Messages answered together with it, in order. Contract: a turn that merges another adds it here. */
  merged: Message[]
  /** Whether merged messages may be on record, whether or not the agent was told. */
  mayHaveMerged: boolean
  conversation: Conversation
  project?: ProjectRecord
  /** Whether the last attempt was cut off. */
  wasInterrupted: boolean
  /** Runs in progress when their gateway's claim expired. */
  cutOff: CutOffRun[]
  /** Absent before the first attempt has ended. */
  earlier?: EarlierAttempts
}

/** The attempts at a message since it was accepted, or queued again. */
export interface EarlierAttempts {
  /** The agent of the first one. */
  backend: string
  model?: string
  /** How many ended on their own. */
  count: number
  /** How many took too long. */
  timeouts: number
  workedMs: number
}

/** What is known about a run before it begins. */
export type PlannedRun = Pick<NewRun, 'id' | 'backend' | 'model' | 'directory'>

export interface EndedRun {
  id: string
  result: AgentResult
}

/** Input for a turn in addition to its plan. */
export interface TurnRequest {
  runId: string
  approve?: Approve
  environment?: Record<string, string>
  secretFiles?: SecretFile[]
}

/** Contract: prepares at once but starts nothing before `listener.mayBegin`, and rejects if that rejects. */
export type RunTurn = (request: TurnRequest, signal: AbortSignal, listener: TurnListener) => Promise<TurnOutcome>

/** Where and with what a turn runs. */
export interface TurnPlan {
  backend: string
  model?: string
  /** The agent's directory. In a pod it is not a path on this machine. */
  directory: string
  /** Whether files from the directory can be sent with the answer. */
  canSendFiles: boolean
  retryLimits?: RetryLimits
  /** How many times the agent may go back to its model. */
  maxTurns?: number
  run: RunTurn
  /** Adapts an answer to the channel; undefined if there is nothing to say. */
  finish?(reply: Reply): Reply | undefined
}

/** The outcome of a turn. */
export type Settlement =
  /** Without a reply if there is nothing to say, as after a quiet heartbeat. */
  | { kind: 'answered'; run: EndedRun; reply?: Reply; session?: Session }
  | { kind: 'failed'; problem: string; reply?: Reply; run?: EndedRun; session?: Session }
  /** `note` tells the person why they are waiting; otherwise `next` does. */
  | {
      kind: 'retry'
      at: number
      isAttempt: boolean
      run: EndedRun
      note?: Reply
      next?: Pick<NextAttempt, 'attempt' | 'attempts' | 'problem'>
      session?: Session
    }
  /** Without a run if cancelled before one began. */
  | { kind: 'cancelled'; run?: EndedRun; session?: Session }
  /** Released unfinished, for another gateway or the next start. */
  | { kind: 'handed-back'; runId?: string }
