import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Screen } from '../../../src/cli/chat/screen.js'
import { painter, span } from '../../../src/cli/chat/styled-text.js'
import { EmulatedTerminal } from '../../kit/emulated-terminal.js'

const words = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd', ' e', '漢', '👍'), maxLength: 30 })

const steps = fc.array(
  fc.oneof(
    fc.record({
      finished: fc.array(words, { maxLength: 4 }),
      live: fc.array(fc.string({ unit: fc.constantFrom('x', 'y', ' z'), maxLength: 70, size: 'max' }), {
        minLength: 1,
        maxLength: 5,
      }),
      cursor: fc.nat(4),
    }),
    fc.record({ columns: fc.integer({ min: 20, max: 60 }) }),
  ),
  { maxLength: 20 },
)

it('keeps what is finished and shows the latest rest below it, whatever the size of the window becomes', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const terminal = new EmulatedTerminal(40, 60)
      const output = { columns: 40, rows: 60, write: (text: string) => terminal.write(text) }
      const screen = new Screen(output, painter(true))
      const kept: string[] = []
      let last: string[] = ['']
      const draw = (finished: string[], cursor: number): void => {
        const row = Math.min(cursor, last.length - 1)
        screen.draw(
          finished.map((text) => [span(text, 'bold')]),
          {
            rows: last.map((text) => [span(text)]),
            cursor: { row, column: Math.min(cursor * 12, (last[row] ?? '').length) },
          },
        )
      }
      for (const step of all) {
        if ('columns' in step) {
          output.columns = step.columns
          terminal.resize(step.columns, 60)
        } else {
          kept.push(...step.finished)
          last = step.live
          draw(step.finished, step.cursor)
        }
      }
      screen.draw([], { rows: [[span('end')]], cursor: { row: 0, column: 3 } })
      expect([terminal.text, terminal.unknown]).toEqual([[...kept, 'end'].join('\n').trimEnd(), []])
    }),
  )
})

it('shows the last rows of what is higher than the window, none wider than it', () => {
  const terminal = new EmulatedTerminal(20, 5)
  const screen = new Screen({ columns: 20, rows: 5, write: (text: string) => terminal.write(text) }, painter(false))
  const rows = Array.from({ length: 12 }, (_, index) => [span(`${index} ${'x'.repeat(30)}`)])
  for (const last of ['a', 'b']) screen.draw([], { rows: [...rows, [span(last)]], cursor: { row: 12, column: 1 } })
  expect(terminal.text).toBe(
    ['8', '9', '10', '11']
      .map((name) => `${`${name} ${'x'.repeat(30)}`.slice(0, 19)}…`)
      .join('\n')
      .concat('\nb'),
  )
})
