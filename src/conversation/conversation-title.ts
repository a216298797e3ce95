import { oneLine, printable } from '../core/one-line.js'

export const MAX_TITLE_CHARACTERS = 80
/** A longer word is cut. */
const MAX_CUT_CHARACTERS = 40

/** The title of an unnamed conversation. Contract: `beginning` holds no secret. Undefined if it is blank. */
export function titleFrom(beginning: string): string | undefined {
  const whole = printable(beginning)
  if (whole.length <= MAX_TITLE_CHARACTERS) return whole || undefined
  const line = oneLine(whole, MAX_TITLE_CHARACTERS)
  const end = line.lastIndexOf(' ')
  return end > MAX_TITLE_CHARACTERS - MAX_CUT_CHARACTERS ? `${line.slice(0, end)}…` : line
}
