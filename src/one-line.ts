// Control characters act on the terminal, and so do marks that turn the direction of writing round.
const UNSHOWABLE = /[\s\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu

/** Somebody else's text, for one line of a terminal, whole. */
export function showable(text: string): string {
  return text.replaceAll(UNSHOWABLE, ' ').trim()
}

/** The same: at most so many characters. */
export function oneLine(text: string, characters: number): string {
  // Of a text of megabytes, no more than could be shown.
  const line = showable(text.slice(0, characters * 8))
  if (line.length <= characters) return line
  // Not in the middle of a character that takes two.
  return `${line.slice(0, Math.max(0, characters - 1)).replace(/[\uD800-\uDBFF]$/, '')}…`
}
