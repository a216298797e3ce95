import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isWebAddress, readMediaTokens } from '../../src/media/media-tokens.js'

const RUNS = { numRuns: 500 }

/** Lines that matter to the reader, and any other. */
const anyLine = fc.oneof(
  fc.string({ unit: 'binary' }).map((line) => line.replaceAll('\n', '')),
  fc.constantFrom('', ' ', '\r', 'prose', '```', '```ts', '~~~~', '~~~', '    ```', '``` a`b', '> MEDIA:/quoted.png'),
  fc.constantFrom(
    'MEDIA:/a.png',
    'MEDIA: "b c.png"',
    'MEDIA:https://host/a.png',
    'MEDIA:https://host/a b',
    'MEDIA:a.png MEDIA:b.png',
    'MEDIA: some words',
    'MEDIA:',
    ' MEDIA:/a.png',
    'MEDIA:x\r',
  ),
)
const anyText = fc.array(anyLine, { maxLength: 12 }).map((lines) => lines.join('\n'))

describe('readMediaTokens', () => {
  // The inputs on which a well-known parser lost prose, broke the layout or leaked files, and their results here. What is
  // accepted by mistake, such as a path followed by a full stop or words, is refused by name when it is opened: the
  // person is told, and nothing is lost silently.
  it.each<[input: string, text: string, media: string[]]>([
    ['The MEDIA: tag is nice', 'The MEDIA: tag is nice', []],
    ['see MEDIA:/tmp/a.png.', 'see MEDIA:/tmp/a.png.', []],
    ['MEDIA:`/tmp/a.png` ', '', ['/tmp/a.png']],
    ['MEDIA: "./x y.png"', '', ['./x y.png']],
    [
      'hi\n\nMEDIA:/a.png /b.png extra words\n\n  indented  code',
      'hi\n\n  indented  code',
      ['/a.png /b.png extra words'],
    ],
    ['```\nMEDIA:/etc/passwd\n```', '```\nMEDIA:/etc/passwd\n```', []],
    ['xMEDIA:/a.png', 'xMEDIA:/a.png', []],
    ['MEDIA:file:///tmp/a.png', '', ['/tmp/a.png']],
    ['MEDIA:~/a.png\nMEDIA:../a.png', '', ['~/a.png', '../a.png']],
    ['MEDIA:./../../etc/passwd', '', ['./../../etc/passwd']],
    ['media:http://h/a.png)', 'media:http://h/a.png)', []],
    ['[MEDIA:/a.png]', '[MEDIA:/a.png]', []],
    ['MEDIA:', 'MEDIA:', []],
    ['MEDIA:/a.png MEDIA:/b.png', '', ['/a.png', '/b.png']],
    ['a\n\nb', 'a\n\nb', []],
    ['MEDIA:/tmp/a.png.', '', ['/tmp/a.png.']],
    ['MEDIA: http://h/a.png', '', ['http://h/a.png']],
    ['MEDIA: the word, and what it means', 'MEDIA: the word, and what it means', []],
  ])('reads %j as the text %j', (input, text, media) => {
    expect(readMediaTokens(input)).toEqual({ text, media })
  })

  it.each<[what: string, input: string, media: string[]]>([
    ['a bare path', 'MEDIA:out/chart.png', ['out/chart.png']],
    ['a bare path with spaces in it and around it', 'MEDIA:  my chart.png \t', ['my chart.png']],
    ['double quotes', 'MEDIA:"a b.png"', ['a b.png']],
    ['single quotes', "MEDIA: 'a b.png'", ['a b.png']],
    ['backticks', 'MEDIA: `a b.png`', ['a b.png']],
    ['a quote inside the name', "MEDIA:Ann's notes.txt", ["Ann's notes.txt"]],
    ['an encoded file address', 'MEDIA:file:///tmp/a%20b.png', ['/tmp/a b.png']],
    ['a file address with a plain percent sign', 'MEDIA:file:///tmp/100%.png', ['/tmp/100%.png']],
    ['several lines', 'MEDIA:a.png\nMEDIA:b.png', ['a.png', 'b.png']],
    [
      'several on one line',
      'MEDIA:a.png\tMEDIA: "b c.png" MEDIA:https://host/d',
      ['a.png', 'b c.png', 'https://host/d'],
    ],
    ['a name of several words in quotes', 'MEDIA:"my notes"', ['my notes']],
    ['a name of several words in a directory', 'MEDIA:out/my notes', ['out/my notes']],
    ['a web address', 'MEDIA:https://host/a.png?size=2#top', ['https://host/a.png?size=2#top']],
    ['one in quotes and capitals', 'MEDIA: "HTTP://Host/a.png"', ['HTTP://Host/a.png']],
    ['one with a bracket after it, as it stands', 'MEDIA:http://h/a.png)', ['http://h/a.png)']],
    ['the same file twice', 'MEDIA:a.png\nMEDIA:a.png', ['a.png']],
    ['a line that ends as on Windows', 'MEDIA:a.png\r\n', ['a.png']],
  ])('takes %s', (_, input, media) => {
    expect(readMediaTokens(input)).toEqual({ text: '', media })
  })

  it.each([
    ['words without a file', 'MEDIA: as you can see, nothing.'],
    ['a web address with words after it', 'MEDIA:https://host/a.png is it'],
    ['a web address without a host', 'MEDIA:https://'],
    ['several of which one is not clear', 'MEDIA:a.png MEDIA:"b.png'],
    ['another scheme', 'MEDIA:ftp://host/a.png'],
    ['no path in a file address', 'MEDIA:file://'],
    ['an empty path in quotes', 'MEDIA:""'],
    ['blanks in quotes', 'MEDIA:" "'],
    ['a quote that is not closed', 'MEDIA:"a b.png'],
    ['words after a quoted path', 'MEDIA:"a.png" and "b.png"'],
    ['another case', 'media:a.png'],
    ['a blank before the colon', 'MEDIA :a.png'],
    ['an indented line', '  MEDIA:a.png'],
    ['a list', '- MEDIA:a.png'],
    ['a quotation', '> MEDIA:a.png'],
    ['code within a line', '`MEDIA:a.png`'],
    ['a path longer than any', `MEDIA:${'a'.repeat(4097)}`],
    ['a fence of tildes', '~~~\nMEDIA:a.png\n~~~'],
    ['an indented fence with a language', '   ```ts\nMEDIA:a.png\n   ```'],
    ['a fence that is not closed', '```\nMEDIA:a.png'],
    ['a fence inside a longer one', '````md\n```\nMEDIA:a.png\n```\n````'],
    ['a fence that a marker with words does not close', '```\n``` no\nMEDIA:a.png\n```'],
    ['a fence that other marks do not close', '```\n~~~\nMEDIA:a.png\n```'],
    ['a fence with ends of lines as on Windows', '```ts\r\nMEDIA:a.png\r\n```\r\n'],
  ])('leaves visible: %s', (_, text) => {
    expect(readMediaTokens(text)).toEqual({ text, media: [] })
  })

  it.each<[what: string, input: string, text: string]>([
    ['at the end of a line', 'Here:\nMEDIA:a.png', 'Here:'],
    ['at the end of a paragraph', 'Here:\n\nMEDIA:a.png', 'Here:'],
    ['before a last end of line', 'Here:\nMEDIA:a.png\n', 'Here:\n'],
    ['after a paragraph, before a last end of line', 'Here:\n\nMEDIA:a.png\n', 'Here:\n'],
    ['at the beginning', 'MEDIA:a.png\n\nThere.', 'There.'],
    ['between paragraphs', 'a\n\nMEDIA:a.png\n\nb', 'a\n\nb'],
    ['between lines', 'a\nMEDIA:a.png\nb', 'a\nb'],
    ['after a line, before a paragraph', 'a\nMEDIA:a.png\n\nb', 'a\n\nb'],
    ['several, blank lines between them', 'a\n\nMEDIA:a.png\n\nMEDIA:b.png\n\nb', 'a\n\nb'],
    ['in blank lines that were doubled before', 'a\n\n\nMEDIA:a.png\n\n\nb', 'a\n\n\n\nb'],
    ['with ends of lines as on Windows', 'a\r\n\r\nMEDIA:a.png\r\n\r\nb', 'a\r\n\r\nb'],
    ['at the end, as on Windows', 'a\r\nMEDIA:a.png', 'a'],
    ['after a closed fence', '```\ncode\n```\nMEDIA:a.png\n', '```\ncode\n```\n'],
    ['after code within a line', '```a```\nMEDIA:a.png', '```a```'],
    ['after an indented block, which is no fence', '    ```\nMEDIA:a.png', '    ```'],
  ])('leaves the text as it was around a line %s', (_, input, text) => {
    expect(readMediaTokens(input).text).toEqual(text)
  })

  it('never throws, and only removes lines', () => {
    fc.assert(
      fc.property(anyText, (input) => {
        const lines = input.split('\n').map((line) => line.trimEnd())
        let from = 0
        const added = readMediaTokens(input)
          .text.split('\n')
          .filter((line) => {
            const at = lines.indexOf(line.trimEnd(), from)
            if (at >= 0) from = at + 1
            return at < 0 && line !== ''
          })
        expect(added).toEqual([])
      }),
      RUNS,
    )
  })

  it('keeps every non-empty line that names no file', () => {
    fc.assert(
      fc.property(anyText, (input) => {
        const solid = (text: string) => text.split('\n').filter((line) => line.trim() !== '')
        const { text } = readMediaTokens(input)
        const lost = solid(input).length - solid(text).length
        expect(lost).toBeLessThanOrEqual(solid(input).filter((line) => line.startsWith('MEDIA:')).length)
      }),
      RUNS,
    )
  })

  it('returns a text without such a line unchanged', () => {
    fc.assert(
      fc.property(anyText, (input) => {
        const text = input.replaceAll(/^MEDIA:/gm, 'media:')
        expect(readMediaTokens(text)).toEqual({ text, media: [] })
      }),
      RUNS,
    )
  })

  it('finds nothing more in its own output', () => {
    fc.assert(
      fc.property(anyText, (input) => {
        const { text } = readMediaTokens(input)
        expect(readMediaTokens(text)).toEqual({ text, media: [] })
      }),
      RUNS,
    )
  })

  it('tells addresses from paths', () => {
    const { media } = readMediaTokens('MEDIA:https://host/a\nMEDIA:file:///a%20b\nMEDIA:HTTP://host\nMEDIA:http:/a')
    expect(media.map((item) => [item, isWebAddress(item)])).toEqual([
      ['https://host/a', true],
      ['/a b', false],
      ['HTTP://host', true],
      ['http:/a', false],
    ])
  })
})
