// Twilio fetches the files it sends. A link is encrypted and authenticated: it names a file an agent was allowed to
// send, expires within minutes, and can be neither read nor forged. Whether the file may be sent is checked again at
// every download.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { OutgoingPath } from '../types.js'

const LIFETIME_MS = 15 * 60_000
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
const CIPHER = 'aes-256-gcm'

const contentSchema = z.object({ path: z.string(), directory: z.string(), expiresAt: z.number() })

export class FileLinks {
  readonly #key: Buffer

  constructor(
    secret: string,
    private readonly now: () => number,
  ) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', 'aetheel whatsapp files', KEY_BYTES))
  }

  seal({ path, directory }: OutgoingPath): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce)
    const content = JSON.stringify({ path, directory, expiresAt: this.now() + LIFETIME_MS })
    const sealed = Buffer.concat([cipher.update(content, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url')
  }

  /** Undefined if it is not one of ours, or has expired. */
  open(link: string): OutgoingPath | undefined {
    const bytes = Buffer.from(link, 'base64url')
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_BYTES))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    let content: string
    try {
      const opened = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]
      content = Buffer.concat(opened).toString('utf8')
    } catch {
      // Forged, or encrypted with an auth token that has changed since.
      return undefined
    }
    const { path, directory, expiresAt } = contentSchema.parse(JSON.parse(content))
    return expiresAt < this.now() ? undefined : { path, directory }
  }
}
