import fc from 'fast-check'
import { MARK } from '../../src/credentials/scrubber.js'

/** Of a few characters, so that they overlap, share prefixes and occur in texts by chance; or of any characters. */
export const secret = fc
  .oneof(
    fc.string({ unit: fc.constantFrom('a', 'b', '\n', '"'), minLength: 6, maxLength: 9 }),
    fc.string({ unit: 'binary', minLength: 6, maxLength: 20 }),
    fc.string({ unit: 'grapheme-ascii', minLength: 6, maxLength: 40 }),
  )
  // A part of the mark cannot be distinguished from it.
  .filter((text) => !MARK.includes(text.trim()) && text.trim().length >= 6)

export const looseText = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b', '\n', '"'), maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
)

/** A text in pieces of any lengths. */
export function splitAt(text: string, places: number[]): string[] {
  const cuts = [0, ...places.map((place) => place % (text.length + 1)), text.length].toSorted((a, b) => a - b)
  return cuts.slice(1).map((cut, index) => text.slice(cuts[index], cut))
}
