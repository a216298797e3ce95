// Finds duplicate keys in the objects of a JSON5 text. A parser silently uses the last one.

import JSON5 from 'json5'
import { dotted } from './problems.js'

interface Open {
  /** The line of each key so far; undefined for a list. */
  lines: Map<string, number> | undefined
  /** What is being read in it. */
  current: PropertyKey
}

export interface DuplicateKey {
  key: string
  line: number
  /** Where the key appeared before. */
  earlierLine: number
}

const TOKEN = /\/\/.*|\/\*[^]*?\*\/|"[^\\"]*(?:\\[^][^\\"]*)*"|'[^\\']*(?:\\[^][^\\']*)*'|[{}[\]:,]|[^\s{}[\]:,'"/]+/g
/** Nobody reads more. */
const MOST_FOUND = 100
/** As editors count lines. */
const LINE_END = /\r\n|[\n\r]/

/** Contract: the text is valid JSON5. */
export function duplicateKeys(text: string): DuplicateKey[] {
  const found: DuplicateKey[] = []
  const open: Open[] = []
  let last: { word: string; line: number } | undefined
  let line = 1
  let counted = 0
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    line += text.slice(counted, index).split(LINE_END).length - 1
    counted = index
    const inside = open.at(-1)
    if (token.startsWith('/')) continue
    if (token === '{' || token === '[') {
      open.push({ lines: token === '{' ? new Map() : undefined, current: 0 })
    } else if (token === '}' || token === ']') open.pop()
    else if (token === ',' && inside && typeof inside.current === 'number') inside.current += 1
    else if (token === ':' && inside?.lines && last) {
      const key = nameOf(last.word)
      const earlierLine = inside.lines.get(key)
      inside.lines.set(key, last.line)
      inside.current = key
      if (earlierLine !== undefined && found.length < MOST_FOUND) {
        found.push({ key: dotted(open.map(({ current }) => current)), line: last.line, earlierLine })
      }
    }
    last = { word: token, line }
  }
  return found
}

/** A key may be quoted and have escapes. */
function nameOf(word: string): string {
  return Object.keys(JSON5.parse<object>(`{${word}:0}`))[0] ?? word
}
