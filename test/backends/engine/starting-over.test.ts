import { expect, it } from 'vitest'
import { AttemptStream, saysSessionLost } from '../../../src/backends/engine/starting-over.js'
import type { AgentEvent, AgentEventBody } from '../../../src/backends/types.js'

const LOST: AgentEventBody[] = [
  { type: 'error', content: 'gone', reason: 'session_lost' },
  { type: 'complete', result: { isError: true, durationMs: 0 } },
]

it('tells of the session of a later attempt although an earlier one had a notice, and separates their texts by a blank line', () => {
  const stream = new AttemptStream()
  let timestamp = 0
  const passed = (...events: AgentEventBody[]): AgentEvent[] =>
    events.flatMap((event) => stream.pass({ ...event, timestamp: (timestamp += 1) }, saysSessionLost))
  const text = (content: string): AgentEventBody => ({ type: 'output', content, stream: 'stdout' })
  const first = passed({ type: 'notice', content: 'looking' }, ...LOST)
  const second = [
    ...stream.nextAttempt({ content: 'again' }),
    ...passed({ type: 'started', sessionId: 'new' }, text('one'), ...LOST),
  ]
  const third = [
    ...stream.nextAttempt(undefined),
    ...passed({ type: 'started', sessionId: 'newer' }, text('two'), text(' \n'), ...LOST),
  ]
  const fourth = [...stream.nextAttempt(undefined), ...passed(text('three'), text(' 3'))]
  expect([first, second, third, fourth]).toEqual([
    [],
    [
      { type: 'started', sessionId: 'new', timestamp: 4 },
      { type: 'notice', content: 'looking', timestamp: 4 },
      { type: 'notice', content: 'again', timestamp: 4 },
      { ...text('one'), timestamp: 5 },
    ],
    [
      { ...text('\n\ntwo'), timestamp: 9 },
      { ...text(' \n'), timestamp: 10 },
    ],
    // The texts of one attempt have no gap after a line either.
    [
      { ...text('three'), timestamp: 13 },
      { ...text(' 3'), timestamp: 14 },
    ],
  ])
})
