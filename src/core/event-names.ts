// Event names on the wire. They are separate because both the service's schemas and the client need them, and the
// client must not load the service in browsers.

/** Events of a command's stream, in no particular order. `complete` is always the last event. */
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

/** Events of the activity stream. */
export const ACTIVITY_EVENT_NAMES = ['snapshot', 'conversation', 'event'] as const

export type ActivityEventName = (typeof ACTIVITY_EVENT_NAMES)[number]
