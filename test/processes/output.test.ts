import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BoundedText, LineSplitter, type OutputLimits } from '../../src/processes/output.js'

const KEPT = 8 * 1024
const WIDE: OutputLimits = { lineBytes: 1_000_000, totalBytes: 1_000_000 }

describe('LineSplitter', () => {
  it('returns the same lines wherever the bytes are split', () => {
    const bytes = fc.array(fc.oneof(fc.uint8Array({ maxLength: 9 }), fc.constant(Uint8Array.of(10)), text()))
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(60)), (parts, cuts) => {
        const whole = Buffer.concat(parts)
        expect(split(cut(whole, cuts))).toEqual({ lines: linesOf(whole), problems: [] })
      }),
      { numRuns: 200 },
    )
  })

  it('returns the last line without its newline, and none for an empty text', () => {
    const outputs = ['', '\n', 'a', 'a\n', '\n\n', 'a\r\nb']
    expect(outputs.map((output) => split([Buffer.from(output)]).lines)).toEqual([
      [],
      [''],
      ['a'],
      ['a'],
      ['', ''],
      ['a\r', 'b'],
    ])
  })

  it('returns the used part of a line by its first and last bytes, with the full length, wherever it is cut', () => {
    const seen = [[], [8], [3, 6, 9]].map((cuts) => {
      const lines: Array<[string, number]> = []
      const shorten = (beginning: Buffer, end: Buffer): string | undefined =>
        beginning.toString().startsWith('né') && end.toString().endsWith('!') ? 'short' : undefined
      const tell = (line: string, bytes: number): void => void lines.push([line, bytes])
      const splitter = new LineSplitter(WIDE, tell, expect.fail, shorten)
      for (const chunk of cut(Buffer.from('née long!\nlong\n\n'), cuts)) splitter.push(chunk)
      return lines
    })
    const whole = [
      ['long', 4],
      ['', 0],
    ]
    expect(seen).toEqual(seen.map(() => [['short', 10], ...whole]))
  })

  it('accepts a line of exactly the limit', () => {
    const limits = { lineBytes: 3, totalBytes: 100 }
    expect(split([Buffer.from('éx\nabc')], limits)).toEqual({ lines: ['éx', 'abc'], problems: [] })
  })

  it('stops at a line beyond the limit, wherever it is cut, and reports it once', () => {
    const limits = { lineBytes: 3 * 1024 * 1024, totalBytes: Infinity }
    const output = Buffer.concat([
      Buffer.from('ok\n'),
      Buffer.alloc(limits.lineBytes + 1, 'x'),
      Buffer.from('\nmore\n'),
    ])
    const cuts = [[], [5], [limits.lineBytes], [limits.lineBytes + 4]]
    const seen = cuts.map((at) => split([...cut(output, at), Buffer.from('and more\n')], limits))
    expect(seen).toEqual(cuts.map(() => ({ lines: ['ok'], problems: ['more than 3 MiB on one line'] })))
  })

  it('stops at the total limit of all lines, and reports it once', () => {
    const limits = { lineBytes: 100, totalBytes: 2 * 1024 * 1024 }
    const chunk = Buffer.from(`${'x'.repeat(63)}\n`.repeat(16 * 1024))
    const { lines, problems } = split([chunk, chunk, chunk, chunk], limits)
    expect([lines.length, problems]).toEqual([32 * 1024, ['more than 2 MiB in total']])
  })
})

function split(chunks: Buffer[], limits = WIDE): { lines: string[]; problems: string[] } {
  const lines: string[] = []
  const problems: string[] = []
  const splitter = new LineSplitter(
    limits,
    (line) => lines.push(line),
    (problem) => problems.push(problem),
  )
  for (const chunk of chunks) splitter.push(chunk)
  splitter.end()
  return { lines, problems }
}

function cut(whole: Buffer, cuts: number[]): Buffer[] {
  const at = [0, ...cuts.filter((position) => position < whole.length).toSorted((a, b) => a - b), whole.length]
  return at.slice(1).map((end, index) => whole.subarray(at[index], end))
}

function linesOf(whole: Buffer): string[] {
  const lines: string[] = []
  let start = 0
  for (const [index, byte] of whole.entries()) {
    if (byte !== 10) continue
    lines.push(whole.subarray(start, index).toString())
    start = index + 1
  }
  return start < whole.length ? [...lines, whole.subarray(start).toString()] : lines
}

/** Characters of more than one byte. */
function text(): fc.Arbitrary<Uint8Array> {
  return fc.string({ unit: 'binary', maxLength: 5 }).map((characters) => Buffer.from(characters))
}

describe('BoundedText', () => {
  it('keeps a text of up to twice its size whole, however it arrives', () => {
    const parts = fc.array(fc.string({ maxLength: KEPT / 2 }), { maxLength: 4 })
    fc.assert(
      fc.property(parts, (texts) => {
        expect(bounded(texts)).toEqual(texts.join(''))
      }),
    )
  })

  it('keeps beginning and end of a longer one and says how much is missing', () => {
    const parts = fc.array(fc.nat(20_000), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(parts, (lengths) => {
        const texts = lengths.map((length, index) => String(index).repeat(length))
        const whole = texts.join('')
        const missing = whole.length - 2 * KEPT
        const expected = `${whole.slice(0, KEPT)}\n[… ${missing} characters …]\n${whole.slice(-KEPT)}`
        expect(bounded(texts)).toEqual(missing > 0 ? expected : whole)
      }),
    )
  })
})

function bounded(texts: string[]): string {
  const text = new BoundedText()
  for (const part of texts) text.append(part)
  return text.toString()
}
