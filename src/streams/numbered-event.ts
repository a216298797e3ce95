import type { AgentEvent, FailureReason } from '../backends/types.js'
import type { MessageState } from '../store/schema.js'

/** The error of a dropped message. */
export const DROPPED = 'It was removed from the queue before it was finished.'

/** The last event of a message, after everything its agents did. */
export interface FinalEvent {
  type: 'final'
  timestamp: number
  status: Exclude<MessageState, 'open'>
  /** Never 0 for a message that was not answered, or only in part, whatever the agent's process returned. */
  exitCode: number
  durationMs: number
  sessionId?: string | undefined
  /** Of the last run, if there was one. */
  backend?: string | undefined
  error?: string | undefined
  /** Why the last run failed; of an answered message, that the agent has paused. */
  reason?: FailureReason | undefined
}

/** `number` counts from 1 without gaps across all runs of a message. */
export interface NumberedEvent {
  readonly number: number
  readonly event: AgentEvent | FinalEvent
}
