import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chunkMarkdown } from '../../src/channels/chunk.js'

const RUNS = { numRuns: 1000 }
const FAMILY = '👩‍👩‍👧‍👦'

describe('chunkMarkdown, of any text', () => {
  const anyLimit = fc.oneof(fc.integer({ min: 50, max: 120 }), fc.integer({ min: 50, max: 2000 }))
  const texts = {
    'whole Markdown': anyMarkdown(),
    'pieces of Markdown': anyPieces().filter((text) => !hasDeepMarker(text)),
    'any characters': anyCharacters(),
  }
  // Rare in random texts: the rest of a code line that would close the fence inside its list item only.
  const rareText = `1. item\n   \`\`\`\`\`\nA sentence.${' '.repeat(71)}${'`'.repeat(40)}`
  const examples: Array<[string, number]> = [[rareText, 50]]
  it.each(Object.entries(texts))('cuts within the limit, balanced, none blank, nothing lost: %s', (_, anyText) => {
    fc.assert(
      fc.property(anyText, anyLimit, (text, limit) => {
        const parts = chunkMarkdown(text, limit)
        const wrong = parts.filter((part) => part.length > limit || part.trim() === '' || openFence(linesOf(part)))
        expect([wrong, rejoin(parts, text, limit)]).toEqual([[], text])
      }),
      { ...RUNS, examples },
    )
  })
})

it('cuts within the limit, none blank, nothing lost, even with fences in lists and quotes', () => {
  const anyText = fc.tuple(anyPieces('- ', '1. ', '> ', '> - ', '    '), fc.integer({ min: 50, max: 300 }))
  fc.assert(
    fc.property(anyText, ([text, limit]) => {
      const parts = chunkMarkdown(text, limit)
      const wrong = parts.filter((part) => part.length > limit || part.trim() === '')
      expect([wrong, missingFrom(parts.join(''), text)]).toEqual([[], ''])
    }),
    RUNS,
  )
})

describe('chunkMarkdown', () => {
  it('leaves a fitting text alone, and returns nothing for an empty one', () => {
    expect(['  a\n\nb \n', '', ' \n\u00A0\t'].map((text) => chunkMarkdown(text, 50))).toEqual([['  a\n\nb \n'], [], []])
  })

  it('cuts between paragraphs, else between lines, else after a sentence, else at a space, else anywhere', () => {
    const cases = [
      `${words(30)}\n${words(5)}\n\n${words(20)}`,
      `${words(30)}\n${words(15)}\n${words(10)}`,
      `${words(30)}. Word ${words(10)}, e.g. ${words(20)}`,
      `${words(45)} ${'y'.repeat(12)}`,
      'x'.repeat(60),
    ]
    expect(cases.map((text) => chunkMarkdown(text, 50))).toEqual([
      [`${words(30)}\n${words(5)}`, words(20)],
      [`${words(30)}\n${words(15)}`, words(10)],
      [`${words(30)}.`, `Word ${words(10)}, e.g. ${words(20)}`],
      [words(45), 'y'.repeat(12)],
      ['x'.repeat(50), 'x'.repeat(10)],
    ])
  })

  it('fills a part rather than leave it nearly empty, if what follows must be cut anyway', () => {
    const texts = [`Short.\n\n${words(48)}`, `Short.\n\n${words(70)}`]
    expect(texts.map((text) => chunkMarkdown(text, 50).map(({ length }) => length))).toEqual([
      [6, 48],
      [47, 30],
    ])
  })

  it('fills a part with the beginning of a word that no part holds', () => {
    const cases = [`Here: ${'x'.repeat(90)}`, `Intro\nHere: ${'x'.repeat(90)}`, `Here: ${'x'.repeat(49)}`]
    expect(cases.map((text) => chunkMarkdown(text, 50))).toEqual([
      [`Here: ${'x'.repeat(44)}`, 'x'.repeat(46)],
      [`Intro\nHere: ${'x'.repeat(38)}`, 'x'.repeat(50), 'xx'],
      ['Here:', 'x'.repeat(49)],
    ])
  })

  it('does not leave a heading or an announcement behind', () => {
    const text = `${words(20)}\n\n## Title\n\nRun this:\n\n${words(30)}`
    expect(chunkMarkdown(text, 52)).toEqual([words(20), `## Title\n\nRun this:\n\n${words(30)}`])
  })

  it('closes a fence that it cuts, and reopens it', () => {
    const code = ['  if (a) {', '    b()', '  }', '', '  if (c) {', '    d()', '  }']
    const fences = [
      ['```ts', '```'],
      ['~~~~ts title=a', '~~~~'],
      ['   ```', '   ```'],
    ] as const
    expect(
      fences.map(([open, close]) => chunkMarkdown(`Code:\n${[open, ...code, close].join('\n')}\nEnd.`, 50)),
    ).toEqual(
      fences.map(([open, close]) => [
        `Code:\n${[open, ...code.slice(0, 4), close].join('\n')}`,
        `${[open, ...code.slice(4), close].join('\n')}\nEnd.`,
      ]),
    )
  })

  it('closes a fence that was left open, even if no cut is needed', () => {
    expect(['```ts\nlet a\n', 'Text\n~~~'].map((text) => chunkMarkdown(text, 50))).toEqual([
      ['```ts\nlet a\n```'],
      ['Text\n~~~\n~~~'],
    ])
  })

  it('takes a shorter fence in a longer one for code', () => {
    const inner = `\`\`\`js\n${words(20)}\n\`\`\``
    expect(chunkMarkdown(`\`\`\`\`md\n${inner}\n\n${inner}\n\`\`\`\``, 50)).toEqual([
      `\`\`\`\`md\n${inner}\n\n\`\`\`\``,
      `\`\`\`\`md\n${inner}\n\`\`\`\``,
    ])
  })

  it('keeps a fence whole if possible', () => {
    const fence = `\`\`\`\n${words(30)}\n\`\`\``
    expect(chunkMarkdown(`${words(12)}\n${fence}\n${words(8)}`, 50)).toEqual([words(12), `${fence}\n${words(8)}`])
  })

  it('reopens a fence in a list or in a quote', () => {
    const block = (first: string, lead: string, ...lines: string[]) =>
      [first, ...[...lines, '```'].map((line) => `${lead}${line}`)].join('\n')
    const code = ['const a = 1', 'const b = 2', 'const c = 3', 'const d = 4'] as const
    const [a, b, c, d] = code
    const texts = [
      block('1. Item\n   - nested\n\n     ```ts', '     ', ...code),
      block('- ```ts', '  ', ...code),
      block('> ```ts', '> ', ...code),
    ]
    expect(texts.map((text) => chunkMarkdown(text, 60))).toEqual([
      [
        block('1. Item\n   - nested\n\n     ```ts', '     ', a),
        block('     ```ts', '     ', b, c),
        block('     ```ts', '     ', d),
      ],
      [block('- ```ts', '  ', a, b, c), block('  ```ts', '  ', d)],
      [block('> ```ts', '> ', a, b, c), block('> ```ts', '> ', d)],
    ])
  })

  it('cuts an info string that is longer than a part, and continues with the code', () => {
    const parts = chunkMarkdown(`\`\`\`${'i'.repeat(60)}\ncode\n\`\`\``, 50)
    expect(parts).toEqual([`\`\`\`${'i'.repeat(43)}\n\`\`\``, `\`\`\`\n${'i'.repeat(17)}\ncode\n\`\`\``])
  })

  it('makes few parts of endless markers', () => {
    const texts = ['`'.repeat(9_999), `x ${'~'.repeat(9_999)}`, `\`\`\`\n${'`'.repeat(9_999)}x\n\`\`\``]
    expect(texts.map((text) => chunkMarkdown(text, 2000).length)).toEqual([11, 12, 7])
  })

  it('keeps items of a list whole, and nested ones before it cuts their text', () => {
    const list = `- ${words(20)}\n- ${words(10)}\n  ${words(10)}\n- ${words(12)}\n  - ${words(14)}\n    ${words(9)}\n  - ${words(14)}`
    expect(chunkMarkdown(list, 50)).toEqual([
      `- ${words(20)}\n- ${words(10)}\n  ${words(10)}`,
      `- ${words(12)}\n  - ${words(14)}\n    ${words(9)}`,
      `  - ${words(14)}`,
    ])
  })

  it('does not cut inline code or a link if there is another place', () => {
    const texts = [
      `${words(30)} \`a b c d e f g h i j k\` ${words(5)}`,
      `${words(30)} [a b c d](https://example.com/a) b`,
    ]
    expect(texts.map((text) => chunkMarkdown(text, 50))).toEqual([
      [words(30), `\`a b c d e f g h i j k\` ${words(5)}`],
      [words(30), '[a b c d](https://example.com/a) b'],
    ])
  })

  it('does not make a list, a heading or a fence of words in a sentence', () => {
    const texts = [`${words(43)} - andmore of it`, `${words(43)} # andmore of it`, `${words(43)} \`\`\`a\`\`\` of it`]
    expect(texts.map((text) => chunkMarkdown(text, 50)[0]?.length)).toEqual([45, 45, 39])
  })

  it('does not cut a character as a person sees it', () => {
    const texts = ['🎉', FAMILY, '🇩🇪', 'e\u0301'].map((character) => `x${character.repeat(40)}`)
    const parts = texts.map((text) => chunkMarkdown(text, 50)[0])
    expect(parts).toEqual([
      `x${'🎉'.repeat(24)}`,
      `x${FAMILY.repeat(4)}`,
      `x${'🇩🇪'.repeat(12)}`,
      `x${'e\u0301'.repeat(24)}`,
    ])
  })

  it('does not slow down with the length of the text', () => {
    const texts = [`${words(40)}. `, '`', '```\n', '\n', '- a\n  b\n', 'x', '.', '[a](', `${FAMILY} `]
    const started = process.cpuUsage()
    for (const text of texts) chunkMarkdown(`\`${text.repeat(1_000_000 / text.length)}x`, 2000)
    // A second each would be too slow, and a quadratic step takes minutes.
    expect(process.cpuUsage(started).user / 1_000_000).toBeLessThan(20)
  })
})

/** A line of the given length. */
function words(length: number): string {
  return 'abcd '.repeat(length).slice(0, length - 1) + 'z'
}

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

/** Parses fences as CommonMark does, ignoring lists and quotes. Fences with a longer marker are text. */
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
 * Reassembles the parts: returns `text` if they are a valid split of it, otherwise the valid beginning. A part consists
 * of the opening line of the fence it begins in, the next piece of the text, and the closing line of the fence it would
 * leave open. Between two pieces a line break may be dropped inside a fence, white space elsewhere.
 */
function rejoin(parts: string[], text: string, limit: number): string {
  // A marker longer than a third of a part leaves room for nothing else.
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
  // A closing line may look like what follows in the text, so a part can be read in more than one way.
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

/** The possible pieces of a part: with its last line, or without if that only closes a fence. */
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

function anyPieces(...more: string[]): fc.Arbitrary<string> {
  const markers = ['```', '~~~', '`````', '~', '`', '``', '`'.repeat(40), '~'.repeat(90)]
  const breaks = ['\n', '\n\n', '\r\n', '\n   ', '\n\t', ' ', '  ', ' '.repeat(70), '\n'.repeat(70)]
  const words = ['ts', 'word', 'A sentence. ', '- item', '1. item', '> quote', '# ', 'é', FAMILY, 'x'.repeat(60)]
  const piece = fc.oneof(...[markers, breaks, [...words, ...more]].map((pieces) => fc.constantFrom(...pieces)))
  return manyOf(piece, 80)
}

/** Whether `linesOf` would misread a line because it is in a list. */
function hasDeepMarker(text: string): boolean {
  return /^(?:[ \t]*\t| {4})[ \t]*(?:`{3}|~{3})/m.test(text)
}

/** What remains of a text after matching its characters in another, in order and ignoring white space. */
function missingFrom(other: string, text: string): string {
  const wanted = text.replace(/\s/g, '')
  let found = 0
  for (let index = 0; index < other.length; index += 1) if (other[index] === wanted[found]) found += 1
  return wanted.slice(found)
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
