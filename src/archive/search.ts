// Full-text search over all messages and replies.

import type { SearchedText, SearchFilter } from '../store/archive-queries.js'
import type { Store } from '../store/store.js'
import { oneLine, printable } from '../core/one-line.js'

const TEXTS_AT_ONCE = 200

/** The messages and replies that contain every word, newest first. A word may contain spaces. */
export async function* searchArchive(
  { archive }: Pick<Store, 'archive'>,
  words: string[],
  filter: Omit<SearchFilter, 'fragments'> = {},
): AsyncGenerator<SearchedText, void> {
  const typed = typedWords(words)
  const wanted = typed.map(fold)
  const candidates = await archive.candidates({ ...filter, fragments: typed.flatMap(fragmentOf) })
  for (let start = 0; start < candidates.length; start += TEXTS_AT_ONCE) {
    const texts = await archive.texts(candidates.slice(start, start + TEXTS_AT_ONCE))
    yield* texts.filter(({ text }) => containsAll(text, wanted))
  }
}

/** Trimmed and normalised, without empty ones. */
export function typedWords(words: string[]): string[] {
  return words.map((word) => word.trim().normalize('NFC')).filter((word) => word !== '')
}

/** The line with the first hit, cut around it. */
export function excerptOf(text: string, words: string[], room: number): string {
  const wanted = typedWords(words).map(fold)
  const lines = text.split(/[\r\n]+/).map(printable)
  for (const line of lines) {
    const folded = fold(line)
    const places = wanted.map((word) => folded.indexOf(word)).filter((place) => place !== -1)
    if (places.length > 0) return cut(line, Math.min(...places), room)
  }
  // The words span a line break.
  return oneLine(text, room)
}

function containsAll(text: string, wanted: string[]): boolean {
  const folded = fold(text)
  return wanted.every((word) => folded.includes(word))
}

/** Ignores case, and how accents are encoded. */
function fold(text: string): string {
  return text.normalize('NFC').toUpperCase()
}

/** The longest part that databases compare as we do and that JSON stores unescaped. */
function fragmentOf(word: string): string[] {
  const parts = word.match(/[ !#-[\]-~]+/g) ?? []
  const [longest] = parts.toSorted((a, b) => b.length - a.length)
  return longest === undefined ? [] : [longest.slice(0, 200)]
}

/** At most `room` characters around `place`. */
function cut(line: string, place: number, room: number): string {
  if (line.length <= room) return line
  const start = Math.min(Math.max(place - Math.floor(room / 3), 0), line.length - room)
  const isCutAfter = start + room < line.length
  const part = line.slice(start > 0 ? start + 1 : start, start + room - (isCutAfter ? 1 : 0))
  // Half a surrogate pair.
  const whole = part.replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, '')
  return `${start > 0 ? '…' : ''}${whole}${isCutAfter ? '…' : ''}`
}
