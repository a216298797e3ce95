import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Input, KeyDecoder } from '../../../src/cli/chat/keys.js'

const key = (name: string): Input => ({ kind: 'key', name })
const text = (typed: string): Input => ({ kind: 'text', text: typed })

it.each<[string, Input[]]>([
  ['a\r', [text('a'), key('enter')]],
  ['\n\t\u007F\u0001', [key('newline'), key('tab'), key('backspace'), key('ctrl-a')]],
  ['\u001B[A\u001BOB\u001B[1;5C\u001B\u001B[D', [key('up'), key('down'), key('ctrl-right'), key('alt-left')]],
  ['\u001B[3~\u001B[Z\u001Bb\u001B\u007F', [key('delete'), key('shift-tab'), key('alt-b'), key('alt-backspace')]],
  // From terminals that tell such keys apart; adding 64 means Caps Lock.
  ['\u001B[13;2u\u001B[27;2;13~\u001B\r', [key('newline'), key('newline'), key('newline')]],
  ['\u001B[99;5u\u001B[99;69u\u001B[27u\u001B[106;5u', [key('ctrl-c'), key('ctrl-c'), key('escape'), key('newline')]],
  ['\u001B[57400u\u001B[57414u\u001B[57441;2u', [text('1'), key('enter')]],
  // Unused keys never become text.
  ['\u001B[I\u001B[?62;4c\u001B[12;40R\u001B[[A\u001B[1;2P.', [text('.')]],
  ['\u001B[200~a\r\nb\rc\u001B[31m\u001B[201~d', [{ kind: 'paste', text: 'a\nb\nc\u001B[31m' }, text('d')]],
])('reads %j', (sent, inputs) => {
  expect(new KeyDecoder().push(sent)).toEqual(inputs)
})

it('waits for the rest of a sequence, and takes a lone Escape for the key', () => {
  const decoder = new KeyDecoder()
  const before = decoder.push('\u001B')
  const wasWaiting = decoder.isWaiting
  expect([before, wasWaiting, decoder.flush(), decoder.isWaiting]).toEqual([[], true, [key('escape')], false])
})

it('reads the same however it is cut', () => {
  const pieces = fc.constantFrom(
    ...[
      'a',
      '漢👩‍👩‍👧',
      '\r',
      '\n',
      '\t',
      '\u007F',
      '\u0003',
      '\u001B[A',
      '\u001B[1;5C',
      '\u001BOH',
      '\u001Bf',
      '\u001B\u001B[D',
    ],
    ...[
      '\u001B[13;2u',
      '\u001B[99;69u',
      '\u001B[27;2;13~',
      '\u001B[[B',
      '\u001B[?1;2c',
      '\u001B[200~x\r\ny\u001B[201~',
    ],
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), fc.array(fc.nat(80), { maxLength: 8 }), (sent, cuts) => {
      const whole = sent.join('')
      const decoder = new KeyDecoder()
      const places = [0, ...cuts.map((cut) => cut % (whole.length + 1)).toSorted((a, b) => a - b), whole.length]
      const inputs = places.slice(1).flatMap((end, index) => decoder.push(whole.slice(places[index], end)))
      expect(joined(inputs)).toEqual(joined(new KeyDecoder().push(whole)))
    }),
  )
})

/** Text typed at once may come in pieces. */
function joined(inputs: Input[]): Input[] {
  const result: Input[] = []
  for (const input of inputs) {
    const last = result.at(-1)
    if (input.kind === 'text' && last?.kind === 'text') result[result.length - 1] = text(last.text + input.text)
    else result.push(input)
  }
  return result
}
