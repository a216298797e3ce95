import type { AgentEvent } from '../backends/types.js'
import type { MessageState } from '../store/schema.js'

/** Why there is no answer to a message that was taken out. */
export const DROPPED = 'It was taken out of the queue before it was done.'

/** The last word on a message, after everything its agents did. */
export interface FinalEvent {
  type: 'final'
  timestamp: number
  status: Exclude<MessageState, 'open'>
  /** Never 0 of a message that was not answered, whatever the agent's process said. */
  exitCode: number
  durationMs: number
  sessionId?: string | undefined
  /** Of the last run; absent when there was none. */
  backend?: string | undefined
  error?: string | undefined
}

/** `number` counts from 1 without gaps within all that happened to a message. */
export interface NumberedEvent {
  readonly number: number
  readonly event: AgentEvent | FinalEvent
}
