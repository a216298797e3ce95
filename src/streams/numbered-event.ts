import type { AgentEvent } from '../backends/types.js'
import type { MessageState } from '../store/schema.js'

/** The last word on a message, after everything its agents did. */
export interface FinalEvent {
  type: 'final'
  timestamp: number
  status: Exclude<MessageState, 'open'>
  /** Never 0 of a message that was not answered, whatever the agent's process said. */
  exitCode: number
  durationMs: number
  sessionId?: string
  /** Of the last run; absent when there was none. */
  backend?: string
  error?: string
}

/** `number` counts from 1 without gaps within all that happened to a message. */
export interface NumberedEvent {
  readonly number: number
  readonly event: AgentEvent | FinalEvent
}
