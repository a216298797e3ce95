import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tailOf } from '../../../src/channels/discord/tail.js'
import { hasLoneSurrogate } from './samples.js'

const RUNS = { numRuns: 1_000 }
/** `…` and a line break; a reopened fence of up to 100 characters, and a line break; the same to close it. */
const MORE = 2 + 101 + 101

describe('the end of a text', () => {
  it.each([
    ['a short text as it is', 'One\nTwo', 20, 'One\nTwo'],
    ['a text that just fits', '1234567890', 10, '1234567890'],
    ['the last whole lines of a longer one', 'One\nTwo\nThree\nFour', 9, '…\nFour'],
    ['the last of one long line', '1234567890', 4, '…\n7890'],
    ['the last of one long line that has ended', '1234567890\n', 4, '…\n890\n'],
    ['whole characters', '🙂🙂🙂', 3, '…\n🙂'],
    ['an open fence closed', 'Look:\n```js\nconst a = 1', 99, 'Look:\n```js\nconst a = 1\n```'],
    ['a longer fence closed with a longer one', '````md\n```js\na\n```', 99, '````md\n```js\na\n```\n````'],
    ['a fence of tildes closed with tildes', '~~~\n```', 99, '~~~\n```\n~~~'],
    ['a fence that was cut opened again', '```js\none()\ntwo()\nthree()', 14, '…\n```js\ntwo()\nthree()\n```'],
    ['the end of a fence that was cut', '```js\none()\ntwo()\n```\nDone', 14, '…\n```js\n```\nDone'],
    ['a closed fence before it left out', '```js\none()\n```\nAll of this\nis done', 10, '…\nis done'],
    ['code within a line as it is', 'A ``` b and ```c``` d', 99, 'A ``` b and ```c``` d'],
    ['nothing of nothing', '', 10, ''],
  ])('is %s', (_, text, limit, tail) => {
    expect(tailOf(text, limit)).toBe(tail)
  })

  it('has a bounded length and closed fences, whatever is written', () => {
    fc.assert(
      fc.property(anyMarkdown, fc.integer({ min: 1, max: 200 }), (text, limit) => {
        const tail = tailOf(text, limit)
        expect([tail.length <= limit + MORE, openFenceOf(tail)]).toEqual([true, undefined])
      }),
      RUNS,
    )
  })

  it('has whole characters, whatever is written', () => {
    fc.assert(
      fc.property(anyMarkdown, fc.integer({ min: 1, max: 200 }), (text, limit) => {
        expect(hasLoneSurrogate(tailOf(text, limit))).toBe(false)
      }),
      RUNS,
    )
  })

  it('is the text itself when that is short and its fences are closed', () => {
    fc.assert(
      fc.property(anyMarkdown, (text) => {
        fc.pre(openFenceOf(text) === undefined)
        expect(tailOf(text, text.length)).toBe(text)
      }),
      RUNS,
    )
  })

  it('ends as the text does, except for a closing fence', () => {
    fc.assert(
      fc.property(anyMarkdown, fc.integer({ min: 1, max: 200 }), (text, limit) => {
        const tail = tailOf(text, limit)
        const lastLine = text.slice(-limit).split('\n').at(-1) ?? ''
        const whole = lastLine.replace(/^[\udc00-\udfff]/, '')
        expect(tail.endsWith(whole) || tail.replace(/\n(`{3,}|~{3,})$/, '').endsWith(whole)).toBe(true)
      }),
      RUNS,
    )
  })
})

/** The marker of the fence left open at the end: by CommonMark, except for lists and quotations. */
function openFenceOf(text: string): string | undefined {
  let open: string | undefined
  for (const line of text.split('\n')) {
    const fence = /^ {0,3}(?<marker>`{3,}|~{3,})(?<info>.*)$/.exec(line)?.groups
    if (!fence) continue
    const { marker = '', info = '' } = fence
    const isOpening = !(marker.startsWith('`') && info.includes('`'))
    const isClosing = open !== undefined && marker[0] === open[0] && marker.length >= open.length && info.trim() === ''
    if (isClosing) open = undefined
    else if (open === undefined && isOpening) open = marker
  }
  return open
}

const anyWord = fc.oneof(
  fc.stringMatching(/^[a-z ]{0,12}$/),
  fc.constantFrom('`', '``', '```', '````', '~~~', '🙂', '👩‍👩‍👧', 'é', '- ', '> ', '   ', '\t'),
)
const anyLine = fc.oneof(
  { weight: 6, arbitrary: fc.array(anyWord, { maxLength: 6 }).map((words) => words.join('')) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.constantFrom('', ' ', '   ', '    '),
        fc.constantFrom('```', '````', '~~~', '~~~~~'),
        fc.constantFrom('', 'js', ' ', ' a`b', ' ```'),
      )
      .map((parts) => parts.join('')),
  },
  // A fence with a line longer than any meaningful one.
  { weight: 1, arbitrary: fc.integer({ min: 85, max: 110 }).map((count) => `\`\`\`${'x'.repeat(count)}🙂🙂`) },
)
const anyMarkdown = fc.array(anyLine, { maxLength: 30 }).map((lines) => lines.join('\n'))
