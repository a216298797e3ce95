import { createHash } from 'node:crypto'

/** The gateway's own directory in a project. */
export const STATE_DIRECTORY = '.aetheel'
/** In it, what people sent. */
export const INBOX_DIRECTORY = 'inbox'

const LONGEST_START = 40
const HASH_DIGITS = 16

/** A folder for the files of one message. Contract: any id gives one plain name; what a name cannot hold of an id, the
 *  hash tells apart. */
export function inboxFolder(id: string): string {
  if (/^[a-z\d][a-z\d_-]{0,63}$/.test(id)) return id
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_DIGITS)
  const start = id
    .slice(0, LONGEST_START)
    .replaceAll(/[^A-Za-z\d]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return start === '' ? hash : `${start}-${hash}`
}
