// The names of the events on the wire. The client needs them in browsers, where nothing of the service is loaded, and
// its schemas need them, too: so they stand here, without either.

/** Of the stream of a command, in no order; `complete` is the last of each. */
export const STREAM_EVENT_NAMES = [
  'started',
  'output',
  'thinking',
  'tool_use',
  'tool_result',
  'notice',
  'error',
  'agent_complete',
  'complete',
] as const

export type StreamEventName = (typeof STREAM_EVENT_NAMES)[number]

/** Of the stream of all activity. */
export const ACTIVITY_EVENT_NAMES = ['snapshot', 'conversation', 'event'] as const

export type ActivityEventName = (typeof ACTIVITY_EVENT_NAMES)[number]
