import type { ComponentChildren } from 'preact'

export interface Piece {
  text: string
  isFound: boolean
}

/** Splits the text at the words of the search. The pieces joined are the text. */
export function piecesOf(text: string, query: string): Piece[] {
  const words = [...new Set(query.split(/\s+/).filter(Boolean))].toSorted((a, b) => b.length - a.length)
  if (words.length === 0) return [{ text, isFound: false }]
  const pattern = words.map((word) => word.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)).join('|')
  return text
    .split(new RegExp(`(${pattern})`, 'giu'))
    .map((piece, index) => ({ text: piece, isFound: index % 2 === 1 }))
    .filter(({ text: piece }) => piece !== '')
}

/** Marks the words of a search. */
export function MarkedWords({ text, query }: { text: string; query: string }): ComponentChildren {
  return piecesOf(text, query).map(({ text: piece, isFound }, index) =>
    isFound ? <mark key={index}>{piece}</mark> : piece,
  )
}
