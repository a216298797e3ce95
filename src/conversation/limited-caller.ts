import type { Visibility } from '../store/visibility.js'

/** A caller who may not see or change every conversation. */
export interface LimitedCaller {
  name: string
  visibility: Visibility
  /** Contract: throws if the conversation must not be changed. */
  requireChangeable(conversationId: string): Promise<unknown>
}
