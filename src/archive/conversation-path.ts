import { createHash } from 'node:crypto'

const LONGEST_NAME = 60
const HASH_DIGITS = 16

/**
 * Where the files of a conversation are, below the archive.
 *
 * Contract: an address comes from outside. Whatever it holds, the path stays below the archive, and no two
 * conversations have the same, also where the file system takes `A` for `a`.
 */
export function conversationPath(channel: string, address: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([channel, address]))
    .digest('hex')
    .slice(0, HASH_DIGITS)
  return `${plain(channel)}/${plain(address)}-${hash}`
}

/** A name to recognise it by; the hash is what tells it from others. */
function plain(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, LONGEST_NAME)
    .replace(/^[.-]+|[.-]+$/g, '')
  return name === '' ? 'unnamed' : name
}
