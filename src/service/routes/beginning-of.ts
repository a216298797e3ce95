import type { Scrubber } from '../../credentials/scrubber.js'

/** Enough to recognise a message. */
const BEGINNING_CHARACTERS = 400

/** Contract: never cuts a secret in two, which would reveal its first part. */
export function beginningOf(text: string, scrubber: Pick<Scrubber, 'find'>): string {
  if (text.length < BEGINNING_CHARACTERS) return text
  const beginning = text.slice(0, BEGINNING_CHARACTERS)
  return beginning.slice(0, scrubber.find(beginning).openAt)
}
