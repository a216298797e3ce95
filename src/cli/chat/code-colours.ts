// Colours for a line of code: strings, numbers, comments and common keywords. Loading a grammar for each language would
// take longer than loading the rest of the chat.

import type { Line, Span } from './styled-text.js'
import { span } from './styled-text.js'

const KEYWORDS = new Set(
  `abstract and as async await begin break case catch class const continue def default defer del do done echo elif else
  end enum esac except export extends fi final finally fn for from func function go if impl implements import in instanceof
  interface is lambda let match mod module mut namespace new not of or package pass private protected pub public raise
  return select self static struct super switch then this throw throws trait try type typeof union unless until use using
  var void when where while with yield true false null nil none undefined SELECT FROM WHERE INSERT INTO VALUES UPDATE SET
  DELETE CREATE TABLE JOIN ON GROUP ORDER BY LIMIT AND OR NOT NULL AS`.split(/\s+/),
)
const HASH =
  /^(?:ba|z|k)?sh$|^(?:shell|console|python|py|ruby|rb|ya?ml|toml|ini|perl|pl|r|make|makefile|dockerfile|elixir)$/
const DASHES = /^(?:sql|lua|haskell|hs|ada|elm)$/
const NONE = /^(?:|text|txt|plain|plaintext|output|log|markdown|md)$/
const STRING = String.raw`"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|\`(?:[^\`\\]|\\.)*\`?`
const TOKENS = {
  hash: tokensWith(String.raw`(?<![\w$\\])#.*`),
  dashes: tokensWith('--.*'),
  slashes: tokensWith(String.raw`\/\/.*|\/\*.*?(?:\*\/|$)`),
}
/** Longer lines are data. */
const LONGEST_LINE = 1_000

export function codeSpans(line: string, language: string): Line {
  const name = language.toLowerCase()
  if (name === 'diff' || name === 'patch') return diffSpans(line)
  if (NONE.test(name) || line.length > LONGEST_LINE) return [span(line)]
  const kind = HASH.test(name) ? 'hash' : DASHES.test(name) ? 'dashes' : 'slashes'
  const spans: Span[] = []
  let position = 0
  for (const found of line.matchAll(TOKENS[kind])) {
    if (found.index > position) spans.push(span(line.slice(position, found.index)))
    spans.push(coloured(found[0], found.groups ?? {}))
    position = found.index + found[0].length
  }
  return [...spans, span(line.slice(position))]
}

function tokensWith(comment: string): RegExp {
  return new RegExp(
    `(?<comment>${comment})|(?<text>${STRING})|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_$][\\w$]*)`,
    'g',
  )
}

function coloured(text: string, { comment, text: quoted, number, word }: Record<string, string | undefined>): Span {
  if (comment !== undefined) return span(text, 'dim')
  if (quoted !== undefined) return span(text, 'green')
  if (number !== undefined) return span(text, 'yellow')
  return word !== undefined && KEYWORDS.has(word) ? span(text, 'magenta') : span(text)
}

function diffSpans(line: string): Line {
  if (/^(?:\+\+\+|---|diff |index )/.test(line)) return [span(line, 'bold')]
  if (line.startsWith('@@')) return [span(line, 'cyan')]
  if (line.startsWith('+')) return [span(line, 'green')]
  return [line.startsWith('-') ? span(line, 'red') : span(line)]
}
