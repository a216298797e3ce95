import type { Channel } from '../channels/types.js'

/** Commands sent to projects. */
export const HTTP_CHANNEL = 'http'
/** Conversations from the dashboard. */
export const WEB_CHANNEL = 'web'

/** Messages over HTTP. Replies are not sent anywhere: clients read the stored record. */
class HttpChannel implements Channel {
  /** Clients find the files in the record. */
  readonly takesFiles = true

  constructor(readonly name: string) {}

  async start(): Promise<void> {}

  /** The reply is stored with its run. */
  async send(): Promise<void> {}

  async stop(): Promise<void> {}

  async close(): Promise<void> {}
}

export function httpChannels(): Channel[] {
  return [HTTP_CHANNEL, WEB_CHANNEL].map((name) => new HttpChannel(name))
}
