// What a test may change at any time. The defaults are Discord's own, where known.

export interface Settings {
  /** How long a nonce is remembered. */
  nonceWindowMs: number
  /** How long an interaction waits for its first response. */
  interactionDeadlineMs: number
  /** How long an interaction accepts further responses. */
  interactionTokenMs: number
  /** The age from which edits of messages are limited, and the limit, per channel. */
  oldMessageMs: number
  oldMessageEdits: { limit: number; perMs: number }
  /** Per file. */
  uploadMaxBytes: number
  heartbeatIntervalMs: number
  /** A gateway that ignores heartbeats looks dead to the client. */
  acknowledgesHeartbeats: boolean
  /** How long a session without a socket can be resumed. */
  sessionTimeoutMs: number
}

export function defaultSettings(): Settings {
  return {
    nonceWindowMs: 300_000,
    interactionDeadlineMs: 3_000,
    interactionTokenMs: 900_000,
    oldMessageMs: 3_600_000,
    oldMessageEdits: { limit: 3, perMs: 20_000 },
    uploadMaxBytes: 10_485_760,
    heartbeatIntervalMs: 41_250,
    acknowledgesHeartbeats: true,
    sessionTimeoutMs: 300_000,
  }
}
