import { createHash } from 'node:crypto'

/** The gateway's own directory in a project. */
export const STATE_DIRECTORY = '.aetheel'
/** Holds what people sent, inside `STATE_DIRECTORY`. */
export const INBOX_DIRECTORY = 'inbox'

const MAX_START_LENGTH = 40
const HASH_DIGITS = 16

/**
 * The folder for the files of one message. Contract: any id yields one plain name; the hash distinguishes ids with
 * characters a name cannot hold.
 */
export function inboxFolder(id: string): string {
  if (/^[a-z\d][a-z\d_-]{0,63}$/.test(id)) return id
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_DIGITS)
  const start = id
    .slice(0, MAX_START_LENGTH)
    .replaceAll(/[^A-Za-z\d]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return start === '' ? hash : `${start}-${hash}`
}
