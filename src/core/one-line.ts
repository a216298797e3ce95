// Control characters and bidirectional marks can manipulate a terminal.
const BIDI_MARKS = String.raw`\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069`
const UNPRINTABLE = new RegExp(String.raw`[\s\p{Cc}${BIDI_MARKS}]+`, 'gu')
const PRINTABLE = new RegExp(String.raw`[^\s\p{Cc}${BIDI_MARKS}]+`, 'gu')
const TERMINAL_CONTROLS = new RegExp(String.raw`[\p{Cc}${BIDI_MARKS}]`, 'gu')

/** Makes untrusted text safe for one line of a terminal, without cutting it. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, ' ').trim()
}

/** Like `printable`, but keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return text.replaceAll(TERMINAL_CONTROLS, (character) => (character === '\n' || character === '\t' ? character : ''))
}

/** One line of at most this many characters. Contract: ends with "…" if anything except whitespace was cut. */
export function oneLine(text: string, characters: number): string {
  let line = ''
  // Word by word, so that only the visible part of a huge text is processed.
  for (const [word] of text.matchAll(PRINTABLE)) {
    line += line === '' ? word : ` ${word}`
    if (line.length > characters) return `${truncate(line, Math.max(0, characters - 1))}…`
  }
  return line
}

/** At most this many characters, followed by how many were cut. */
export function cut(text: string, characters: number): string {
  if (text.length <= characters) return text
  const shown = truncate(text, Math.max(0, characters))
  return `${shown}… (${text.length - shown.length} more)`
}

/** Does not cut a surrogate pair in half. */
function truncate(text: string, characters: number): string {
  return text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, '')
}
