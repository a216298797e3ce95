import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { codeLines, markdownLines } from '../../../src/cli/chat/markdown.js'
import { type MarkdownPart, MarkdownStream } from '../../../src/cli/chat/markdown-stream.js'
import { painter, widthOfLine } from '../../../src/cli/chat/styled-text.js'

const { paint } = painter(true)

function plain(text: string, width: number): string {
  return markdownLines(text, width)
    .map((line) => painter(false).paint(line).trimEnd())
    .join('\n')
}

it('shows what Markdown means', () => {
  const text = `# Why

A **bold** word, \`code\` and [a link](https://x.example), which is wrapped.

1. one
2. two
   - nested
- [x] done

> quoted
> text

| Name | Size |
|------|-----:|
| a    |    1 |
| bcd  |   22 |

---`
  expect(plain(text, 40)).toBe(`# Why

A bold word, code and a link
(https://x.example), which is wrapped.

1. one
2. two
   • nested

• ☑ done

│ quoted
│ text

Name │ Size
─────┼─────
a    │    1
bcd  │   22

────────────────────────────────────────`)
})

it('wraps the cells of a table, and lists them where there is no room for columns', () => {
  const text = '| Name | What it is |\n|---|---|\n| one | a long description of it |'
  const columns = ['Name │ What it is', '─────┼──────────────────', 'one  │ a long', '     │ description of it']
  expect([plain(text, 24).split('\n'), plain(text, 13).split('\n')]).toEqual([
    columns,
    ['Name: one', 'What it is: a', 'long', 'description', 'of it'],
  ])
})

it('colours strings, numbers, words and comments of code', () => {
  const [line = []] = codeLines("const a = 'b' // 1", 'ts', 80)
  expect(paint(line)).toBe("  \u001B[35mconst\u001B[39m a = \u001B[32m'b'\u001B[39m \u001B[2m// 1\u001B[22m")
})

describe('whatever an agent writes', () => {
  const nasty = fc.constantFrom(
    ...['\u001B[2J', '\u001B]0;x\u0007', '\u009B31m', '&#27;[2J', '\r', '\b', '\u202E', '\t', '漢', '👩‍👩‍👧', 'e\u0301'],
    ...[
      '\n',
      '\n\n',
      '```\n',
      '```ts\n',
      '~~~\n',
      '- ',
      '  - ',
      '1. ',
      '> ',
      '# ',
      '| a | b |\n|---|--:|\n',
      '| c |',
      '---\n',
    ],
    ...['**', '*', '`', '~~', '[x](http://y)', '![i](z)', '<b>', '- [ ] ', 'word ', 'a'.repeat(50)],
  )
  const text = fc
    .array(fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 5 })), { maxLength: 40 })
    .map((parts) => parts.join(''))

  it('never reaches the terminal as an escape, and fits', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 10, max: 60 }), (written, width) => {
        for (const line of markdownLines(written, width)) {
          expect(withoutFormats(paint(line))).not.toMatch(/[\p{Cc}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u)
          expect(widthOfLine(line)).toBeLessThanOrEqual(width)
        }
      }),
    )
  })

  it('is cut into the same parts however it comes', () => {
    fc.assert(
      fc.property(text, fc.array(fc.nat(400), { maxLength: 10 }), (written, cuts) => {
        const stream = new MarkdownStream()
        const places = [0, ...cuts.map((cut) => cut % (written.length + 1)).toSorted((a, b) => a - b), written.length]
        const parts = places.slice(1).flatMap((end, index) => stream.push(written.slice(places[index], end)))
        expect([...parts, ...stream.end()]).toEqual(partsOf(written))
      }),
    )
  })

  it('is not lost', () => {
    fc.assert(
      fc.property(text, (written) => {
        const kept = partsOf(written).map((part) =>
          part.kind === 'block' ? part.text : part.kind === 'code' ? part.line : '',
        )
        const isFence = (line: string): boolean => /^ {0,3}(?:`{3,}|~{3,})/.test(line)
        const letters = (lines: string[]): string =>
          lines
            .filter((line) => !isFence(line))
            .join('')
            .replaceAll(/\s/g, '')
        expect(letters(kept.join('\n').split('\n'))).toBe(letters(written.split('\n')))
      }),
    )
  })
})

it('keeps only a bounded rest, so that a long answer takes a time that grows with its length alone', () => {
  const stream = new MarkdownStream()
  const longest = ['- item\n'.repeat(20_000), 'x'.repeat(200_000), '| a | b |\n'.repeat(20_000)].map((written) => {
    let most = 0
    for (let index = 0; index < written.length; index += 1_000) {
      stream.push(written.slice(index, index + 1_000))
      const rest = stream.unfinished()
      most = Math.max(most, rest?.kind === 'block' ? rest.text.length : 0)
    }
    stream.end()
    return most
  })
  for (const length of longest) expect(length).toBeLessThan(30_000)
})

it('gives a code block line by line, and blocks as soon as they end', () => {
  const stream = new MarkdownStream()
  expect([
    stream.push('One\nparagraph.\n\nThen:\n```sh\nls'),
    stream.unfinished(),
    stream.push(' -l\n'),
    stream.push('```\n- a'),
  ]).toEqual([
    [{ kind: 'block', text: 'One\nparagraph.' }, { kind: 'block', text: 'Then:' }, { kind: 'code-start' }],
    { kind: 'code', line: 'ls', language: 'sh' },
    [{ kind: 'code', line: 'ls -l', language: 'sh' }],
    [],
  ])
  expect([stream.push('\n\n  b\n\nEnd'), stream.end()]).toEqual([
    [],
    [
      { kind: 'block', text: '- a\n\n  b' },
      { kind: 'block', text: 'End' },
    ],
  ])
})

it('uses no colour where none is wanted', () => {
  const lines = markdownLines('# A **b** `c`', 40).map((line) => painter(false).paint(line))
  expect(lines).toEqual(lines.map(stripVTControlCharacters))
})

function partsOf(text: string): MarkdownPart[] {
  const stream = new MarkdownStream()
  return [...stream.push(text), ...stream.end()]
}

/** Removes only format codes. */
function withoutFormats(painted: string): string {
  return painted
    .split('\u001B')
    .map((part, index) => (index === 0 ? part : part.replace(/^\[\d+m/, '')))
    .join('')
}
