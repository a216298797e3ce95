// Twilio fetches the files it sends. A link to one is sealed: it names a file that an agent was allowed to send, for some
// minutes, and nobody can read it or make one. Whether the file may be sent is decided anew whenever it is fetched.

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

  /** Nothing for what is not of ours, or too old. */
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
      // Made by somebody else, or with a token that was changed since.
      return undefined
    }
    const { path, directory, expiresAt } = contentSchema.parse(JSON.parse(content))
    return expiresAt < this.now() ? undefined : { path, directory }
  }
}
