import { expect, it } from 'vitest'
import { TurnPrinter } from '../../src/cli/turn-printer.js'

const at = (timestamp: number) => ({ toolName: 'Bash', timestamp })

it('prints a tool as one line, and a new one if something came between', () => {
  let printed = ''
  const output = { write: (text: string) => (printed += text) !== '' }
  const printer = new TurnPrinter(output, output, () => 0)
  const uses = (toolId: string, command: string): void =>
    printer.show({ type: 'tool_use', toolId, toolInput: { command }, ...at(0) })
  const ends = (toolId: string, content: string, isError: boolean, timestamp: number): void =>
    printer.show({ type: 'tool_result', toolId, content, isError, ...at(timestamp) })
  uses('one', 'npm test\nls')
  ends('one', 'ok', false, 12_000)
  uses('two', 'sleep 9')
  uses('three', 'no')
  ends('three', 'no: not\nfound', true, 0)
  ends('two', '', false, 75_000)
  uses('four', 'ls')
  printer.show({ type: 'output', content: 'Done', stream: 'stdout', timestamp: 0 })
  printer.note('! Since 13:50 UTC')
  expect(printed.replace(/\d\d:\d\d$/m, 'then')).toBe(
    [
      '→ Bash npm test  ✓ 12s',
      '→ Bash sleep 9',
      '→ Bash no  ✗ 0s: no: not found',
      '→ Bash sleep 9  ✓ 1:15',
      '→ Bash ls',
      'Done',
      '! Since then',
      '',
    ].join('\n'),
  )
})

it('prints notices for people, and leaves out those for developers', () => {
  const printed: string[] = []
  const output = { write: (text: string) => printed.push(text) > 0 }
  const printer = new TurnPrinter(output, output, () => 0)
  printer.show({ type: 'notice', content: 'The conversation was compacted.', timestamp: 0 })
  printer.show({ type: 'notice', content: 'An event of an unknown kind', isTechnical: true, timestamp: 0 })
  expect(printed).toEqual(['! The conversation was compacted.\n'])
})
