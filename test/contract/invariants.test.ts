import { describe, expect, it } from 'vitest'
import type { AgentEvent, AgentEventBody, AgentResult } from '../../src/backends/types.js'
import { brokenInvariants } from './invariants.js'

const WELL: AgentResult = { isError: false, finalOutput: '', durationMs: 0 }
const LOST = { reason: 'session_lost', message: '', report: '' } as const
const started: AgentEventBody = { type: 'started' }
const complete = (result = WELL): AgentEventBody => ({ type: 'complete', result })
const use = (toolId: string): AgentEventBody => ({ type: 'tool_use', toolId, toolName: 'x', toolInput: {} })
const close = (toolId: string): AgentEventBody => ({
  type: 'tool_result',
  toolId,
  toolName: 'x',
  content: '',
  isError: false,
})

describe('brokenInvariants', () => {
  it.each<[string, AgentEventBody[], string[]]>([
    ['nothing in a good run', [started, use('a'), use('b'), close('b'), close('a'), complete()], []],
    ['nothing in a run that never started', [complete()], []],
    ['no event at all', [], ['complete is not once and last']],
    ['no complete', [started], ['complete is not once and last']],
    ['two completes', [complete(), complete()], ['complete is not once and last']],
    ['started twice', [started, started, complete()], ['started is not once and first']],
    ['started late', [use('a'), started, close('a'), complete()], ['started is not once and first']],
    ['an open tool', [use('a'), close('b'), complete()], ['tool a is never closed']],
    ['a tool opened twice', [use('a'), use('a'), close('a'), complete()], ['tool a is used again while it is open']],
    [
      'a result at odds with itself',
      [complete({ ...WELL, isError: true })],
      ['isError and failure contradict each other', 'isError and finalOutput contradict each other'],
    ],
    [
      'a lost session with an id',
      [complete({ isError: true, durationMs: 0, failure: LOST, sessionId: 'x' })],
      ['a lost session has an id'],
    ],
  ])('finds %s', (_, bodies, broken) => {
    expect(brokenInvariants(bodies.map((body, timestamp) => ({ ...body, timestamp })))).toEqual(broken)
  })

  it('finds time that goes backwards', () => {
    const events: AgentEvent[] = [
      { type: 'started', timestamp: 2 },
      { type: 'complete', result: WELL, timestamp: 1 },
    ]
    expect(brokenInvariants(events)).toEqual(['event 1 (complete) is older than the one before it'])
  })
})
