import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BoundedText } from '../../src/processes/bounded-text.js'

const KEPT = 8 * 1024

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
