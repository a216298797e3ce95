import type { AgentEventBody } from '../types.js'

/** Who follows gets an event whole. */
const LONGEST_JOINED = 65_536

/** Adds the later text to the earlier event, unless they must stay apart. Contract: nobody else has the earlier one. */
export function joinText(earlier: AgentEventBody, later: AgentEventBody): boolean {
  if (earlier.type !== 'output' && earlier.type !== 'thinking') return false
  if (later.type !== earlier.type || earlier.metadata || later.metadata) return false
  if (earlier.content.length + later.content.length > LONGEST_JOINED) return false
  earlier.content += later.content
  return true
}
