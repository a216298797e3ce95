import { describe, expect, it } from 'vitest'
import { type RunEvent, RunModel } from '../../web/src/run-model.js'

const AT = '2026-11-16T12:00:00.000Z'
const LATER = '2026-11-16T12:00:02.000Z'

function modelOf(events: Array<Pick<RunEvent, 'name' | 'data'> & { at?: string }>): RunModel {
  const model = new RunModel()
  events.forEach((event, index) => model.apply({ id: index + 1, at: AT, ...event }))
  return model
}

const text = (line: string) => ({ name: 'output' as const, data: { line, stream: 'stdout' } })

describe('a run', () => {
  it('has its texts joined, and its tools with their results', () => {
    const { blocks, model, result, end } = modelOf([
      { name: 'started', data: { model: 'opus' } },
      { name: 'thinking', data: { content: 'Hm' } },
      { name: 'thinking', data: { content: 'm.' } },
      text('I '),
      text('look.'),
      { name: 'tool_use', data: { tool: 'Bash', input: { command: 'ls' }, tool_id: 't1' } },
      { name: 'tool_result', at: LATER, data: { output: 'a', tool: 'Bash', tool_id: 't1', is_error: false } },
      { name: 'notice', data: { message: 'Tried again.' } },
      { name: 'error', data: { error: 'Away', reason: 'exit' } },
      { name: 'agent_complete', data: { is_error: true, duration_ms: 3 } },
      { name: 'complete', data: { status: 'failed', duration_ms: 3 } },
      { name: 'notice', data: { message: 'For developers.', is_technical: true } },
    ])
    expect([blocks, model, result, end]).toEqual([
      [
        { kind: 'thinking', key: 2, text: 'Hmm.' },
        { kind: 'text', key: 4, text: 'I look.' },
        {
          kind: 'tool',
          key: 6,
          toolId: 't1',
          tool: 'Bash',
          input: { command: 'ls' },
          startedAt: Date.parse(AT),
          result: { output: 'a', isError: false, endedAt: Date.parse(LATER) },
        },
        { kind: 'notice', key: 8, text: 'Tried again.' },
        { kind: 'error', key: 9, text: 'Away' },
      ],
      'opus',
      { is_error: true, duration_ms: 3 },
      { status: 'failed', duration_ms: 3 },
    ])
  })

  it('takes each event once', () => {
    const model = modelOf([text('a'), text('b')])
    model.apply({ id: 2, at: AT, ...text('b') })
    expect(model.blocks).toEqual([{ kind: 'text', key: 1, text: 'ab' }])
  })

  it('keeps only the last blocks and characters', () => {
    const notices = modelOf(
      Array.from({ length: 5000 }, (_, index) => ({ name: 'notice', data: { message: String(index) } })),
    )
    const long = modelOf(Array.from({ length: 50 }, () => text('x'.repeat(10_000))))
    const [block] = long.blocks
    expect([notices.blocks.length, notices.dropped, block && 'text' in block && block.text.length]).toEqual([
      200, 4800, 400_000,
    ])
  })
})
