import type { Scrubber } from '../../credentials/scrubber.js'

/** Enough to recognise a message by. */
const BEGINNING_CHARACTERS = 400

/** Contract: no secret is cut in two, of which the first part would be told. */
export function beginningOf(text: string, scrubber: Pick<Scrubber, 'find'>): string {
  if (text.length < BEGINNING_CHARACTERS) return text
  const beginning = text.slice(0, BEGINNING_CHARACTERS)
  return beginning.slice(0, scrubber.find(beginning).openAt)
}
