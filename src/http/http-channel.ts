import type { Channel } from '../channels/types.js'

export const HTTP_CHANNEL = 'http'

/** Commands that come over HTTP. Nothing has to be brought anywhere: clients read the record. */
export class HttpChannel implements Channel {
  readonly name = HTTP_CHANNEL
  /** Clients read of them in the command. */
  readonly takesFiles = true

  async start(): Promise<void> {}

  /** The reply is on record with its run. */
  async send(): Promise<void> {}

  async stop(): Promise<void> {}

  async close(): Promise<void> {}
}
