import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventQueue } from '../../../src/backends/engine/event-queue.js'
import type { AgentEvent, AgentEventBody, AgentResult } from '../../../src/backends/types.js'

const DONE: AgentResult = { isError: false, durationMs: 0, finalOutput: 'done' }
const FAILED: AgentResult = {
  isError: true,
  durationMs: 0,
  failure: { reason: 'exit', message: 'It broke.', report: 'Claude CLI error (exit 1): It broke.' },
}

async function collect(queue: EventQueue): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const event of queue) events.push(event)
  return events
}

/** The events that come out if these go in. */
async function through(bodies: AgentEventBody[], result = DONE): Promise<AgentEvent[]> {
  const queue = new EventQueue(() => 7)
  for (const body of bodies) queue.push(body)
  queue.complete(result)
  return collect(queue)
}

const started: AgentEventBody = { type: 'started', sessionId: 's' }
const output = (content: string): AgentEventBody => ({ type: 'output', content, stream: 'stdout' })
const thinking = (content: string): AgentEventBody => ({ type: 'thinking', content })
const notice = (content: string): AgentEventBody => ({ type: 'notice', content })
const toolUse = (toolId: string, toolName = 'Bash'): AgentEventBody => ({
  type: 'tool_use',
  toolId,
  toolName,
  toolInput: {},
})
const toolResult = (toolId: string, content = '', toolName = ''): AgentEventBody => ({
  type: 'tool_result',
  toolId,
  toolName,
  content,
  isError: false,
})
const complete: AgentEventBody = { type: 'complete', result: DONE }
const stamped = (bodies: AgentEventBody[]) => bodies.map((body) => ({ ...body, timestamp: 7 }))

describe('the events of a run', () => {
  it.each<[what: string, pushed: AgentEventBody[], sent: AgentEventBody[]]>([
    ['come as they were pushed', [started, notice('a'), output('b')], [started, notice('a'), output('b'), complete]],
    ['have text that waits for its reader as one', [output('a'), output('b')], [output('ab'), complete]],
    ['keep kinds of text apart', [output('a'), thinking('b')], [output('a'), thinking('b'), complete]],
    [
      'keep text apart that has something beside it',
      [output('a'), { ...output('b'), metadata: { lines: 1 } }, output('c')],
      [output('a'), { ...output('b'), metadata: { lines: 1 } }, output('c'), complete],
    ],
    ['may be none', [], [complete]],
    ['begin with started, before notices that came earlier', [notice('a'), started], [started, notice('a'), complete]],
    ['keep notices of a run that never started', [notice('a'), notice('b')], [notice('a'), notice('b'), complete]],
    ['have notices before the first event', [notice('a'), output('b')], [notice('a'), output('b'), complete]],
    ['have started only once', [started, output('a'), started], [started, output('a'), complete]],
    ['have no started after something else', [output('a'), started], [output('a'), complete]],
    [
      'name the tool a result belongs to',
      [toolUse('1', 'Read'), toolResult('1', 'x')],
      [toolUse('1', 'Read'), toolResult('1', 'x', 'Read'), complete],
    ],
    [
      'open a tool only once',
      [toolUse('1'), toolUse('1'), toolResult('1')],
      [toolUse('1'), toolResult('1', '', 'Bash'), complete],
    ],
    [
      'close a tool only once',
      [toolUse('1'), toolResult('1', 'a'), toolResult('1', 'b')],
      [toolUse('1'), toolResult('1', 'a', 'Bash'), complete],
    ],
    [
      'close what was left open',
      [toolUse('1'), toolUse('2', 'Read'), toolResult('1')],
      [
        toolUse('1'),
        toolUse('2', 'Read'),
        toolResult('1', '', 'Bash'),
        {
          type: 'tool_result',
          toolId: '2',
          toolName: 'Read',
          content: 'The run ended before the tool did.',
          isError: true,
        },
        complete,
      ],
    ],
  ])('%s', async (_, pushed, sent) => {
    expect(await through(pushed)).toEqual(stamped(sent))
  })

  it('end with what went wrong, then complete', async () => {
    expect(await through([started], FAILED)).toEqual(
      stamped([started, { type: 'error', content: 'It broke.', reason: 'exit' }, { type: 'complete', result: FAILED }]),
    )
  })

  it('are available while more arrive', async () => {
    const queue = new EventQueue(() => 7)
    const events = queue[Symbol.asyncIterator]()
    queue.push(started)
    const first = await events.next()
    const second = events.next()
    queue.push(output('a'))
    queue.complete(DONE)
    expect([first.value, (await second).value, (await events.next()).value, await events.next()]).toEqual([
      ...stamped([started, output('a'), complete]),
      { done: true, value: undefined },
    ])
  })

  it('show the first text at once, and join what follows closely', async () => {
    const queue = new EventQueue(() => 7)
    const events = queue[Symbol.asyncIterator]()
    const first = events.next()
    for (const text of ['a', 'b', 'c']) queue.push(output(text))
    const second = events.next()
    queue.push(output('d'))
    expect([(await first).value, (await second).value]).toEqual(stamped([output('a'), output('bcd')]))
  })

  it('keep the order of the contract whatever is pushed, and lose no text', async () => {
    const toolId = fc.constantFrom('1', '2', '3')
    const anyBody = fc.oneof(
      fc.constant(started),
      fc.string().map(output),
      fc.string().map(notice),
      fc.string().map(thinking),
      toolId.map((id) => toolUse(id)),
      toolId.map((id) => toolResult(id)),
      fc.string().map((content): AgentEventBody => ({ type: 'error', content, reason: 'exit' })),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(anyBody), fc.constantFrom(DONE, FAILED), async (pushed, result) => {
        const events = await through(pushed, result)
        expect({
          started: positions(events, 'started'),
          complete: positions(events, 'complete'),
          toolCalls: callsOf(events).filter((call) => call !== 'use result' && call !== 'result'),
          texts: textsOf(events),
        }).toEqual({
          started: pushed.find((body) => body.type !== 'notice')?.type === 'started' ? [0] : [],
          complete: [events.length - 1],
          toolCalls: [],
          texts: `${textsOf(pushed)}${result.failure?.message ?? ''}`,
        })
      }),
      { numRuns: 500 },
    )
  })
})

function positions(events: AgentEvent[], type: AgentEvent['type']): number[] {
  return events.flatMap((event, index) => (event.type === type ? [index] : []))
}

/** The events of each tool call; a result without a call stands alone. */
function callsOf(events: AgentEvent[]): string[] {
  const calls: Array<{ toolId: string; heard: string }> = []
  for (const event of events) {
    if (event.type === 'tool_use') calls.push({ toolId: event.toolId, heard: 'use' })
    if (event.type === 'tool_result') {
      const call = calls.findLast(({ toolId, heard }) => toolId === event.toolId && heard.startsWith('use'))
      if (call) call.heard += ' result'
      else calls.push({ toolId: event.toolId, heard: 'result' })
    }
  }
  return calls.map(({ heard }) => heard)
}

/** Everything except tools; only `started` may overtake notices. */
function textsOf(events: AgentEventBody[]): string {
  return events.map((event) => ('content' in event && event.type !== 'tool_result' ? event.content : '')).join('')
}
