import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonObject, JsonReader, stripAnsi } from '../../../src/backends/engine/jsonl.js'

/** What was read, in order: objects as they are, text as strings. */
function read(lines: string[], maxCharacters = Infinity): Array<JsonObject | string> {
  const found: Array<JsonObject | string> = []
  const reader = new JsonReader(
    { object: (value) => found.push(value), text: (line) => found.push(line) },
    maxCharacters,
  )
  for (const line of lines) reader.line(line)
  reader.end()
  return found
}

describe('a line', () => {
  it.each<[what: string, lines: string[], found: Array<JsonObject | string>]>([
    ['with an object', ['{"a":1}'], [{ a: 1 }]],
    ['with blanks around an object', ['  {"a":1}\t '], [{ a: 1 }]],
    ['that ends in CR', ['{"a":1}\r'], [{ a: 1 }]],
    ['that begins with a byte order mark', ['\uFEFF{"a":1}'], [{ a: 1 }]],
    ['in colour', ['\u001B[1m\u001B[32m{"a":1}\u001B[0m'], [{ a: 1 }]],
    ['after the title of a terminal', ['\u001B]0;title\u0007{"a":1}'], [{ a: 1 }]],
    ['with U+2028 in a string', ['{"a":"x\u2028y"}'], [{ a: 'x\u2028y' }]],
    ['with colour codes in a string', ['{"a":"\\u001B[1mx"}'], [{ a: '\u001B[1mx' }]],
    ['with an array', ['[{"a":1},{"b":2}]'], [{ a: 1 }, { b: 2 }]],
    ['with an empty array', ['[]'], []],
    ['with an array that holds more than objects', ['[{"a":1},2]'], ['[{"a":1},2]', { a: 1 }]],
    ['with a number', ['42'], ['42']],
    ['with a number in colour', ['\u001B[33m42\u001B[0m'], ['42']],
    ['with a string', ['"hello"'], ['"hello"']],
    ['with null', ['null'], ['null']],
    ['that is blank', ['', '   ', '\t', '\r', '\uFEFF'], []],
    ['of garbage', ['Reading additional input from stdin...'], ['Reading additional input from stdin...']],
    ['of garbage in colour', ['\u001B[31mError:\u001B[0m no'], ['Error: no']],
    ['that only begins like an array', ["[STARTUP] Phase 'cleanup_ops'"], ["[STARTUP] Phase 'cleanup_ops'"]],
    ['that only begins like an object', ['{not json}'], ['{not json}']],
    ['with two objects', ['{"a":1}{"b":2}'], ['{"a":1}{"b":2}']],
    ['that is cut off inside a string', ['{"a":"xy'], ['{"a":"xy']],
    ['that is cut off after a comma', ['{"a":1,'], ['{"a":1,']],
  ])('%s is read', (_, lines, found) => {
    expect(read(lines)).toEqual(found)
  })
})

describe('a document over many lines', () => {
  it.each<[what: string, lines: string[], found: Array<JsonObject | string>]>([
    ['of an object', ['{', '  "a": {', '    "b": [1, 2]', '  }', '}'], [{ a: { b: [1, 2] } }]],
    ['of an array', ['[', '  {"a": 1},', '  {"b": 2}', ']'], [{ a: 1 }, { b: 2 }]],
    ['with CR at each end', ['[\r', '  {"a": 1}\r', ']\r'], [{ a: 1 }]],
    ['with blank lines', ['{', '', '  "a": 1', '   ', '}'], [{ a: 1 }]],
    ['with brackets in strings', ['{', '  "a": "}]{[",', '  "b": "\\""', '}'], [{ a: '}]{[', b: '"' }]],
    ['after a byte order mark', ['\uFEFF{', '"a": 1', '}'], [{ a: 1 }]],
    ['between lines', ['{"x":1}', '{', '"a": 1', '}', '{"y":2}'], [{ x: 1 }, { a: 1 }, { y: 2 }]],
    ['between garbage', ['begin', '[', '{"a":1}', ']', 'end'], ['begin', { a: 1 }, 'end']],
  ])('%s is read', (_, lines, found) => {
    expect(read(lines)).toEqual(found)
  })

  it.each<[what: string, lines: string[], found: Array<JsonObject | string>]>([
    ['after a bracket', ['[', '{"a":1}', '{"b":2}'], ['[', { a: 1 }, { b: 2 }]],
    ['after a brace', ['{', '{"a":1}', '{"b":2}'], ['{', { a: 1 }, { b: 2 }]],
    ['after a key', ['{"x":', '{"a":1}', '{"b":2}'], ['{"x":', { a: 1 }, { b: 2 }]],
    ['after a comma', ['{"x":1,', '{"a":1}'], ['{"x":1,', { a: 1 }]],
    ['after some elements', ['[', '{"a":1},', 'Killed', '{"b":2}'], ['[', '{"a":1},', 'Killed', { b: 2 }]],
    ['by the end of the output', ['{', '"a": 1'], ['{', '"a": 1']],
    ['by the end, with whole values in it', ['[', '{"a":1}'], ['[', { a: 1 }]],
  ])('that is cut off %s does not swallow what follows', (_, lines, found) => {
    expect(read(lines)).toEqual(found)
  })

  it('is given up when it grows beyond the limit, and its lines stand for themselves', () => {
    expect(read(['[', '{"a":1},', '{"b":2},', '{"c":3}', ']'], 20)).toEqual([
      '[',
      '{"a":1},',
      '{"b":2},',
      { c: 3 },
      ']',
    ])
  })
})

describe('whatever is printed', () => {
  const anyObject = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue())
  /** A line that is neither JSON nor the start of a document. */
  const garbage = fc
    .string({ unit: 'binary', minLength: 1 })
    .map((text) => `# ${text.replaceAll('\u001B', ' ').replaceAll(/[\n\r]/g, ' ')}`)

  it('as lines among garbage, the objects come out in order, and the garbage as text', () => {
    const anyLine = fc.oneof(
      anyObject.map((value) => ({ line: JSON.stringify(value), found: [value] })),
      fc.array(anyObject).map((values) => ({ line: JSON.stringify(values), found: values })),
      garbage.map((line) => ({ line, found: [line] })),
    )
    fc.assert(
      fc.property(fc.array(anyLine), (printed) => {
        const lines = printed.map(({ line }) => line)
        expect(read(lines)).toEqual(reparsed(printed.flatMap(({ found }) => found as unknown[])))
      }),
    )
  })

  it('as one document over many lines between garbage, the objects come out in order', () => {
    const indentation = fc.constantFrom(1, 2, '\t')
    fc.assert(
      fc.property(fc.array(anyObject), indentation, garbage, garbage, (objects, indent, before, after) => {
        const lines = [before, ...JSON.stringify(objects, undefined, indent).split('\n'), after]
        expect(read(lines)).toEqual(reparsed([before, ...objects, after]))
      }),
    )
  })

  it('cut off anywhere, the objects on the lines after it come out', () => {
    fc.assert(
      fc.property(anyObject, fc.nat(), fc.array(anyObject, { minLength: 2 }), (cut, at, objects) => {
        const document = JSON.stringify([cut, cut], undefined, 1)
        const beginning = document.slice(0, at % document.length).split('\n')
        const lines = [...beginning, ...objects.map((object) => JSON.stringify(object))]
        expect(read(lines).slice(-objects.length)).toEqual(reparsed(objects))
      }),
    )
  })

  it('nothing throws', () => {
    const fragment = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"a"',
      '\\',
      '1',
      '-',
      '1e',
      'null',
      ' ',
      '\uFEFF',
    )
    const anyLine = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(fragment).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(fc.array(anyLine), (lines) => {
        expect(() => read(lines)).not.toThrow()
      }),
      { numRuns: 1000 },
    )
  })

  it.each<[what: string, line: string]>([
    ['nested a hundred thousand deep', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['open a hundred thousand deep', '['.repeat(100_000)],
    ['a long string that is cut off', `{"a":"${'x'.repeat(16_000_000)}`],
    ['a long string of escapes that is cut off', `{"a":"${String.raw`\n`.repeat(8_000_000)}`],
  ])('%s is one text', (_, line) => {
    expect(read([line])).toHaveLength(1)
  })
})

it('colour codes and titles are stripped, the text between them stays', () => {
  expect(stripAnsi('\u001B[1;31mred\u001B[0m \u001B]8;;https://example.com\u001B\\link\u001B]8;;\u001B\\ [1] ok')).toBe(
    'red link [1] ok',
  )
})

/** After a JSON round trip: -0 becomes 0, and `__proto__` an ordinary key. */
function reparsed(values: unknown[]): unknown[] {
  return JSON.parse(JSON.stringify(values)) as unknown[]
}
