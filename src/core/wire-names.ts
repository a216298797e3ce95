// Names on the wire that both the service and the client need: the client must not load the service in browsers.

/** The header with a page's part of its login. */
export const PAGE_KEY_HEADER = 'x-aetheel-page-key'

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
export const ACTIVITY_EVENT_NAMES = ['snapshot', 'conversation', 'conversation_deleted', 'event'] as const

export type ActivityEventName = (typeof ACTIVITY_EVENT_NAMES)[number]
