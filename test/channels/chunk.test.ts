import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chunkMarkdown } from '../../src/channels/chunk.js'

const RUNS = { numRuns: 1000 }
const FAMILY = '👩‍👩‍👧‍👦'

describe('chunkMarkdown, of any text', () => {
  const anyLimit = fc.oneof(fc.integer({ min: 50, max: 120 }), fc.integer({ min: 50, max: 2000 }))
  const texts = {
    'whole Markdown': anyMarkdown(),
    'pieces of Markdown': anyPieces(),
    'any characters': anyCharacters(),
  }
  it.each(Object.entries(texts))('cuts within the limit, balanced, none blank, nothing lost: %s', (_, anyText) => {
    fc.assert(
      fc.property(anyText, anyLimit, (text, limit) => {
        const parts = chunkMarkdown(text, limit)
        const wrong = parts.filter((part) => part.length > limit || part.trim() === '' || openFence(linesOf(part)))
        expect([wrong, rejoin(parts, text, limit)]).toEqual([[], text])
      }),
      RUNS,
    )
  })
})

interface Marker {
  indent: string
  run: string
  info: string
}

interface Line {
  start: number
  end: number
  before: Marker | undefined
  after: Marker | undefined
}

/** Reads fences as CommonMark says, apart from lists and quotes. Those with a longer marker are text. */
function linesOf(text: string, longest = Infinity): Line[] {
  const lines: Line[] = []
  let open: Marker | undefined
  for (const { 0: line, index: start } of text.matchAll(/(?<=^|\n)[^\n]*?(?=\r?\n|$)/g)) {
    const before = open
    const [, indent = '', run = '', info = ''] = /^( {0,3})(`{3,}|~{3,})(.*)$/s.exec(line) ?? []
    const isOpener =
      run !== '' && !(run.startsWith('`') && info.includes('`')) && 2 * indent.length + run.length <= longest
    const isCloser = open && run[0] === open.run[0] && run.length >= open.run.length && /^[ \t]*$/.test(info)
    if (isCloser) open = undefined
    else if (!open && isOpener) open = { indent, run, info: info.trim() }
    lines.push({ start, end: start + (isCloser ? line.trimEnd() : line).length, before, after: open })
  }
  return lines
}

function openFence(lines: Line[]): Marker | undefined {
  return lines.at(-1)?.after
}

/**
 * Puts the parts together again: gives `text` if they are what it must be cut into, else as much as is right. A part is
 * the opening line of the fence that it begins in, the piece of the text that comes next, and the closing line of the
 * fence that it would leave open. Between two pieces a line break may be left out in a fence, white space elsewhere.
 */
function rejoin(parts: string[], text: string, limit: number): string {
  // A third of a part is the longest marker that leaves room for anything else.
  const lines = linesOf(text, limit / 3)
  const fenceFrom = (position: number) => {
    const line = lines.findLast(({ start }) => start <= position)
    return position === line?.start ? line.before : (line?.before ?? line?.after)
  }
  const fenceUpTo = (position: number) => {
    const line = lines.findLast(({ start }) => start <= position)
    return line && position >= line.end ? line.after : (line?.before ?? line?.after)
  }
  const gapsFrom = (position: number) => gapsAt(text, position, fenceUpTo(position) !== undefined)
  // A closing line may look like what comes next in the text, so there can be more than one way to read a part.
  let ends = new Set([0])
  for (const part of parts) {
    const starts = [...ends].flatMap((end) => gapsFrom(end).map((gap) => end + gap.length))
    const next = starts.flatMap((start) =>
      bodiesOf(part, headerOf(fenceFrom(start), limit))
        .filter((body) => text.startsWith(body, start))
        .map((body) => start + body.length),
    )
    if (next.length === 0) return text.slice(0, Math.max(...ends))
    ends = new Set(next)
  }
  const isDone = [...ends].some((end) => gapsFrom(end).includes(text.slice(end)))
  return isDone ? text : text.slice(0, Math.max(...ends))
}

function gapsAt(text: string, position: number, isInFence: boolean): string[] {
  const rest = text.slice(position)
  const space = rest.slice(0, rest.length - rest.trimStart().length)
  const lineBreak = /^\r?\n/.exec(rest)?.[0] ?? ''
  return isInFence ? [lineBreak, ''] : [space, space.slice(0, space.lastIndexOf('\n') + 1), '']
}

function headerOf(fence: Marker | undefined, limit: number): string {
  if (!fence) return ''
  const [, word = ''] = /^(\S*)/.exec(fence.info) ?? []
  const info = [fence.info, word].find((info) => fence.indent.length + fence.run.length + info.length + 1 <= limit / 2)
  return `${fence.indent}${fence.run}${info?.startsWith('~') ? '' : (info ?? '')}\n`
}

/** What the piece of a part can be: without or with its last line, as it needs to be closed. */
function bodiesOf(part: string, header: string): string[] {
  if (!part.startsWith(header)) return []
  return [part.length, part.lastIndexOf('\n')]
    .filter((end) => end >= header.length)
    .filter((end) => {
      const open = openFence(linesOf(part.slice(0, end)))
      return part.slice(end) === (open ? `\n${open.indent}${open.run}` : '')
    })
    .map((end) => part.slice(header.length, end))
}

function anyCharacters(): fc.Arbitrary<string> {
  const unit = fc.integer({ min: 0, max: 0xff_ff }).map((code) => String.fromCharCode(code))
  const known = fc.constantFrom('\n', ' ', '`', '~', 'a', '\u0301', FAMILY, '🇩🇪', '\u00A0')
  return manyOf(fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), unit, known), 150)
}

/** Without fences in lists and quotes, which `linesOf` does not know. */
function anyPieces(): fc.Arbitrary<string> {
  const markers = ['```', '~~~', '`````', '~', '`', '``', '`'.repeat(40), '~'.repeat(90)]
  const breaks = ['\n', '\n\n', '\r\n', '\n   ', '\n\t', ' ', '  ', ' '.repeat(70), '\n'.repeat(70)]
  const words = ['ts', 'word', 'A sentence. ', '- item', '1. item', '> quote', '# ', 'é', FAMILY, 'x'.repeat(60)]
  const piece = fc.oneof(...[markers, breaks, words].map((pieces) => fc.constantFrom(...pieces)))
  return manyOf(piece, 80).filter((text) => !/^(?:[ \t]*\t| {4})[ \t]*(?:`{3}|~{3})/m.test(text))
}

function anyMarkdown(): fc.Arbitrary<string> {
  const word = fc.oneof(
    {
      weight: 9,
      arbitrary: fc.constantFrom('the', 'gateway', 'answers', 'é', '日本語の文です。', FAMILY, 'e.g.', '2 * 3'),
    },
    fc.constantFrom(
      '`code span`',
      '`` a ` b ``',
      '**bold words**',
      '[a link](https://example.com/a_b)',
      'https://example.com/x?y=z',
    ),
    fc.string({ minLength: 1, maxLength: 90, unit: fc.constantFrom('a', 'b', '🎉') }),
  )
  const sentence = fc.array(word, { minLength: 1, maxLength: 14 }).map((words) => `${words.join(' ')}.`)
  const paragraph = fc
    .array(fc.tuple(sentence, fc.constantFrom(' ', ' ', '\n')), { minLength: 1, maxLength: 6 })
    .map((sentences) => sentences.flat().join('').trim())
  const heading = fc
    .tuple(fc.integer({ min: 1, max: 6 }), word)
    .map(([level, title]) => `${'#'.repeat(level)} ${title}`)
  const item = fc
    .tuple(
      fc.constantFrom('- ', '* ', '1. ', '  - ', '   1. ', '    - '),
      sentence,
      fc.array(sentence, { maxLength: 2 }),
    )
    .map(([mark, first, more]) =>
      [`${mark}${first}`, ...more.map((line) => `${' '.repeat(mark.length)}${line}`)].join('\n'),
    )
  const list = fc
    .tuple(fc.array(item, { minLength: 1, maxLength: 8 }), fc.constantFrom('\n', '\n\n'))
    .map(([items, gap]) => items.join(gap))
  const quote = paragraph.map((text) => text.replaceAll(/^/gm, '> '))
  const row = fc.tuple(word, word).map((cells) => `| ${cells.join(' | ')} |`)
  const table = fc
    .array(row, { minLength: 1, maxLength: 9 })
    .map(([head, ...rows]) => [head, '| --- | ---: |', ...rows].join('\n'))
  const block = fc.oneof(paragraph, paragraph, heading, list, quote, table, anyFence(), anyFence(), fc.constant('---'))
  const document = fc.tuple(
    fc.array(fc.tuple(block, fc.constantFrom('\n\n', '\n\n', '\n', '\n\n\n')), { minLength: 1, maxLength: 8 }),
    fc.option(anyFence().map((fence) => fence.slice(0, fence.lastIndexOf('\n')))),
    fc.constantFrom('\n', '\n', '\r\n'),
  )
  return document.map(([blocks, unclosed, lineBreak]) =>
    `${blocks.flat().join('')}${unclosed ?? ''}`.replaceAll('\n', lineBreak),
  )
}

function anyFence(): fc.Arbitrary<string> {
  const codeLine = fc.oneof(
    fc.constantFrom(
      '',
      '',
      '  return value',
      'const a = `b`',
      '\tindented',
      '  ',
      '}',
      '```',
      '```js',
      '~~~',
      '# no heading',
      '- no item',
    ),
    fc.string({ maxLength: 200, unit: fc.constantFrom('a', ' ', '`', '~', '🎉', ';') }),
  )
  const info = fc.constantFrom('', '', 'ts', 'typescript', ' js title="a b.js"', 'x'.repeat(70))
  return fc
    .record({
      run: fc.constantFrom('```', '```', '````', '~~~', '~~~~~~'),
      indent: fc.nat(3),
      info,
      code: fc.array(codeLine, { maxLength: 25 }),
    })
    .map(({ run, indent, info, code }) => {
      const isCloser = (line: string) => new RegExp(`^ {0,3}${run}${run[0] ?? ''}*[ \\t]*$`).test(line)
      return [`${run}${info}`, ...code.filter((line) => !isCloser(line)), run]
        .map((line) => ' '.repeat(indent) + line)
        .join('\n')
    })
}

function manyOf(piece: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> {
  return fc.array(piece, { maxLength, size: 'max' }).map((pieces) => pieces.join(''))
}
