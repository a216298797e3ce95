import type { AgentEventBody } from './types.js'

/** Who follows gets an event whole. */
const LONGEST_JOINED = 65_536

/** Both texts as one event, with what else the earlier one says; undefined where they must stay apart. */
export function joinedText<Event extends AgentEventBody>(earlier: Event, later: AgentEventBody): Event | undefined {
  if (earlier.type !== 'output' && earlier.type !== 'thinking') return undefined
  if (later.type !== earlier.type || earlier.metadata || later.metadata) return undefined
  if (earlier.content.length + later.content.length > LONGEST_JOINED) return undefined
  return { ...earlier, content: earlier.content + later.content }
}
