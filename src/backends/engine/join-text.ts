import type { AgentEventBody } from '../types.js'

/** Followers receive each event whole, so events must not grow without bound. */
const MAX_JOINED_CHARACTERS = 65_536

/** Appends the later text to the earlier event, unless they must stay separate. Contract: nobody else holds the earlier
 *  one. */
export function joinText(earlier: AgentEventBody, later: AgentEventBody): boolean {
  if (earlier.type !== 'output' && earlier.type !== 'thinking') return false
  if (later.type !== earlier.type || earlier.metadata || later.metadata) return false
  if (earlier.content.length + later.content.length > MAX_JOINED_CHARACTERS) return false
  earlier.content += later.content
  return true
}
