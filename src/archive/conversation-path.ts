import { createHash } from 'node:crypto'

const MAX_NAME_LENGTH = 60
const HASH_DIGITS = 16

/**
 * The directory of a conversation's files, relative to the archive.
 *
 * Contract: an address comes from outside. For any address the path stays inside the archive and is unique, even on
 * case-insensitive file systems.
 */
export function conversationPath(channel: string, address: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([channel, address]))
    .digest('hex')
    .slice(0, HASH_DIGITS)
  return `${plain(channel)}/${plain(address)}-${hash}`
}

/** A name for people to recognise; the hash makes it unique. */
function plain(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, MAX_NAME_LENGTH)
    .replace(/^[.-]+|[.-]+$/g, '')
  return name === '' ? 'unnamed' : name
}
