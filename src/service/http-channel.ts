import type { Channel } from '../channels/types.js'

/** Commands to projects. */
export const HTTP_CHANNEL = 'http'
/** Conversations of people in a page. */
export const WEB_CHANNEL = 'web'

/** What comes over HTTP. Nothing has to be brought anywhere: clients read the record. */
class HttpChannel implements Channel {
  /** Clients read of them in the record. */
  readonly takesFiles = true

  constructor(readonly name: string) {}

  async start(): Promise<void> {}

  /** The reply is on record with its run. */
  async send(): Promise<void> {}

  async stop(): Promise<void> {}

  async close(): Promise<void> {}
}

export function httpChannels(): Channel[] {
  return [HTTP_CHANNEL, WEB_CHANNEL].map((name) => new HttpChannel(name))
}
