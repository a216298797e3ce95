// Control characters act on the terminal, and so do marks that turn the direction of writing round.
const TURNING = String.raw`\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069`
const UNSHOWABLE = new RegExp(String.raw`[\s\p{Cc}${TURNING}]+`, 'gu')
const SHOWABLE = new RegExp(String.raw`[^\s\p{Cc}${TURNING}]+`, 'gu')
const ACTING = new RegExp(String.raw`[\p{Cc}${TURNING}]`, 'gu')

/** Somebody else's text, for one line of a terminal, whole. */
export function showable(text: string): string {
  return text.replaceAll(UNSHOWABLE, ' ').trim()
}

/** The same in the lines that it has. */
export function showableLines(text: string): string {
  return text.replaceAll(ACTING, (character) => (character === '\n' || character === '\t' ? character : ''))
}

/** In one line: at most so many characters. Contract: ends with "…" when anything but blanks is left out. */
export function oneLine(text: string, characters: number): string {
  let line = ''
  // Word by word: of a text of megabytes, no more than is shown.
  for (const [word] of text.matchAll(SHOWABLE)) {
    line += line === '' ? word : ` ${word}`
    if (line.length > characters) return `${whole(line, Math.max(0, characters - 1))}…`
  }
  return line
}

/** At most so many characters, and how many are left out. */
export function cut(text: string, characters: number): string {
  if (text.length <= characters) return text
  const shown = whole(text, Math.max(0, characters))
  return `${shown}… (${text.length - shown.length} more)`
}

/** Not cut in the middle of a character that takes two. */
function whole(text: string, characters: number): string {
  return text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, '')
}
