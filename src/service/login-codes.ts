// One-time codes that log a browser in. Anyone who may use the gateway's socket gets one, and needs no token.
//
// A code travels in the fragment of a URL, which browsers do not send, and is gone once used.

import { randomBytes, timingSafeEqual } from 'node:crypto'
import { hashOf } from './auth.js'

const CODE_MS = 10 * 60_000
/** More than anyone opens at a time. Beyond that, the oldest is discarded. */
const MAX_CODES = 20

interface OpenCode {
  hash: Buffer
  expiresAt: number
}

export class LoginCodes {
  #open: OpenCode[] = []

  constructor(private readonly now: () => number) {}

  issue(): { code: string; expiresAt: number } {
    const code = randomBytes(32).toString('base64url')
    const expiresAt = this.now() + CODE_MS
    this.#open = [...this.#open.slice(1 - MAX_CODES), { hash: Buffer.from(hashOf(code)), expiresAt }]
    return { code, expiresAt }
  }

  /** Consumes a code. False if it is unknown, used or expired. */
  redeem(code: string): boolean {
    const hash = Buffer.from(hashOf(code))
    const matching = this.#open.filter((open) => timingSafeEqual(open.hash, hash))
    this.#open = this.#open.filter((open) => !matching.includes(open))
    return matching.some(({ expiresAt }) => expiresAt > this.now())
  }
}
