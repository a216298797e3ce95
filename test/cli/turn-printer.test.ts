import { expect, it } from 'vitest'
import { TurnPrinter } from '../../src/cli/turn-printer.js'

it('prints notices for people, and leaves out those for developers', () => {
  const printed: string[] = []
  const output = { write: (text: string) => printed.push(text) > 0 }
  const printer = new TurnPrinter(output, output)
  printer.show({ type: 'notice', content: 'The conversation was compacted.', timestamp: 0 })
  printer.show({ type: 'notice', content: 'An event of an unknown kind', isTechnical: true, timestamp: 0 })
  expect(printed).toEqual(['! The conversation was compacted.\n'])
})
