import { describe, expect, it } from 'vitest'
import type { Steer } from '../../../src/backends/types.js'
import { until } from '../../kit/waiting.js'
import { openTalk } from '../engine/warm/direct-talk.js'
import { captured, createPlace, openStage, type Step } from '../engine/warm/warm-stage.js'
import { threeTurns, told } from '../engine/warm/three-turns.js'

const SESSION = '01a1e430-453d-763c-ab7c-fbf86a0a6a50'

const READY: Step[] = captured('pi', 'turns').slice(0, 2)
/** From the first message to the state afterwards. */
const FIRST_TURN: Step[] = captured('pi', 'interrupt-early').slice(2, 20)

const IS_READY = {
  ...{ id: 'ready', type: 'response', command: 'get_state', success: true },
  data: { sessionId: SESSION },
}

function stateOf(id: string, state: { isStreaming?: boolean; isCompacting?: boolean } = {}): Step[] {
  const data = { sessionId: SESSION, isStreaming: false, isCompacting: false, ...state }
  return [
    { said: { id, type: 'get_state' } },
    { printed: { id, type: 'response', command: 'get_state', success: true, data } },
  ]
}

it('answers turn after turn in one process, each with its own usage and cost', async () => {
  const { turn, process } = await openStage('pi', captured('pi', 'turns'))
  const turns = [await turn('one'), await turn('two', { request: { sessionId: SESSION } }), await turn('three')]
  expect(turns.map(told)).toEqual(threeTurns(SESSION))
  expect(process.isOver).toBe(false)
})

it.each([
  ['while it writes', 'interrupt-text', 'slow', 'output'],
  ['while a tool runs', 'interrupt-tool', 'tool', 'tool_use'],
  ['while it waits to try again', 'retry-interrupt', 'retried', 'notice'],
] as const)('is interrupted by a request %s, and takes the next turn', async (_, what, prompt, stopOn) => {
  const { turn, process } = await openStage('pi', captured('pi', what))
  const { result } = await turn(prompt, { stopOn })
  expect(result).toMatchObject({ isError: true, sessionId: SESSION, failure: { reason: 'cancelled' } })
  const { result: next } = await turn('after')
  expect([next.finalOutput, next.usage?.inputTokens, process.isOver]).toEqual(['Answer to after', 100, false])
})

it('is interrupted once it has begun to work, not earlier, when that would have no effect', async () => {
  const { turn } = await openStage('pi', [...READY, ...captured('pi', 'interrupt-early').slice(20)])
  expect((await turn('early', { stopOn: 'begun' })).result.failure?.reason).toBe('cancelled')
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
})

it('is interrupted when its rounds of tools are used up, which are counted per message', async () => {
  const { turn } = await openStage('pi', captured('pi', 'max-turns'), { config: { maxTurns: 2 } })
  const { result } = await turn('loop')
  expect(result).toMatchObject({ failure: { reason: 'max_turns' }, usage: { inputTokens: 200 } })
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
})

it('compacts its session with a view to what it is told, or says that there is nothing to compact', async () => {
  const { turn } = await openStage('pi', captured('pi', 'compact'))
  const request = { isCommand: true }
  const [first, second] = [await turn('/compact keep the names', { request }), await turn('/compact', { request })]
  expect([first.kinds, first.result.finalOutput, first.result.usage?.inputTokens]).toEqual([
    ['started', 'notice', 'complete'],
    '',
    200,
  ])
  expect(second.result.finalOutput).toBe('Already compacted')
  expect((await turn('after')).result.finalOutput).toBe('A summary')
})

it('is not done while it will try again', async () => {
  const { turn } = await openStage('pi', captured('pi', 'retry'))
  const { result, kinds } = await turn('retried')
  expect([result.finalOutput, kinds]).toEqual(['Answer after retry', ['started', 'notice', 'output', 'complete']])
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
})

it('is not done while it summarises to try again', async () => {
  const { turn } = await openStage('pi', captured('pi', 'overflow'))
  await turn('one')
  expect((await turn('long')).result.finalOutput).toBe('Answer after summary')
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
})

it('summarises before it works, without an answer to that being taken for the end', async () => {
  const { turn } = await openStage('pi', [
    ...READY,
    ...FIRST_TURN.slice(0, 1),
    { printed: { type: 'compaction_start', reason: 'threshold' } },
    { printed: { type: 'compaction_end', reason: 'threshold', aborted: false, willRetry: false } },
    ...stateOf('state-1'),
    ...FIRST_TURN.slice(1, 2),
    ...stateOf('state-2', { isStreaming: true }),
    ...FIRST_TURN.slice(3, 7),
    ...FIRST_TURN.slice(8, -2),
    ...stateOf('state-3'),
  ])
  const { result, kinds } = await turn('one')
  expect([result.finalOutput, kinds]).toEqual(['Answer to one', ['started', 'notice', 'output', 'complete']])
})

describe('after an answer', () => {
  async function answered() {
    const { driver, backend } = await openStage('pi', READY)
    const said: unknown[] = []
    const connection = driver.connect(({ id, type, message }) => said.push(message ?? id ?? type), createPlace(), {})
    const hear = (steps: Step[]) => steps.forEach((step) => 'printed' in step && connection.receive(step.printed))
    const begin = (prompt: string) => {
      const turn = backend.cli.turnOf({ prompt })
      const translation = backend.cli.definition.translation(() => {}, turn)
      return { translation, live: connection.begin(turn, translation) }
    }
    hear(READY)
    const { live, translation } = begin('one')
    hear(FIRST_TURN.slice(0, -2))
    await live.done
    expect([translation.verdict, said]).toEqual([
      { isError: false, text: 'Answer to one' },
      ['ready', 'one', 'state-1', 'state-2'],
    ])
    said.length = 0
    return { said, hear, begin }
  }

  const COMPACTION: Step[] = [
    { printed: { type: 'compaction_start', reason: 'threshold' } },
    ...stateOf('state-2', { isCompacting: true }),
    { printed: { type: 'compaction_end', reason: 'threshold', aborted: false, willRetry: false } },
  ]

  it('is prompted again only once it has reported its state', async () => {
    const { said, hear, begin } = await answered()
    begin('two')
    expect(said).toEqual([])
    hear(stateOf('state-2'))
    expect(said).toEqual(['two'])
  })

  it('is asked again only when it has summarised', async () => {
    const { said, hear, begin } = await answered()
    hear(COMPACTION.slice(0, -1))
    begin('two')
    expect(said).toEqual([])
    hear(COMPACTION.slice(-1))
    expect(said).toEqual(['two'])
  })

  it('is not prompted with what was withdrawn while it summarised', async () => {
    const { said, hear, begin } = await answered()
    hear(COMPACTION.slice(0, -1))
    const { live: taken } = begin('two')
    taken.interrupt()
    await taken.done
    hear(COMPACTION.slice(-1))
    begin('three')
    expect(said).toEqual(['three'])
  })
})

it('continues after an error of the model server', async () => {
  const { turn } = await openStage('pi', captured('pi', 'error-then-answer'))
  expect((await turn('broken')).result.failure).toMatchObject({ reason: 'refused', message: '400 scripted error' })
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
})

it('that takes no message says why', async () => {
  const { turn, process } = await openStage('pi', captured('pi', 'no-key'))
  expect((await turn('hi')).result.failure?.reason).toBe('auth')
  expect(process.isOver).toBe(false)
})

it.each([
  ['does not know the session', 'unknown-session'],
  ['does not understand its records', 'reshaped-session'],
])('that %s ends, and the session is lost', async (_what, capture) => {
  const request = { sessionId: '00000000-0000-4000-8000-000000000000' }
  const { turn } = await openStage('pi', captured('pi', capture), { request })
  const { result, isProcessLost } = await turn('hi', { request })
  expect([result.failure?.reason, isProcessLost]).toEqual(['session_lost', false])
})

it('in another session is asked nothing', async () => {
  const { turn } = await openStage('pi', [...READY, ...FIRST_TURN])
  const { result } = await turn('lost', { request: { sessionId: '00000000-0000-4000-8000-000000000000' } })
  expect(result.failure?.reason).toBe('session_lost')
  expect((await turn('one')).result.finalOutput).toBe('Answer to one')
})

it('a message that an extension has taken has no answer, and is not waited for', async () => {
  const taken = { id: 'prompt', type: 'response', command: 'prompt', success: true }
  const { turn } = await openStage('pi', [
    ...READY,
    { said: { id: 'prompt', type: 'prompt', message: 'taken' } },
    { printed: taken },
    ...stateOf('state-1'),
  ])
  expect((await turn('taken')).result.failure?.reason).toBe('no_result')
})

it('an extension that asks something is told that nobody will answer', async () => {
  const question = { type: 'extension_ui_request', id: 'q', method: 'confirm', title: 'Sure?' }
  const notification = { type: 'extension_ui_request', id: 'n', method: 'notify', message: 'Hello' }
  const { turn } = await openStage('pi', [
    ...READY,
    ...FIRST_TURN.slice(0, 3),
    { printed: notification },
    { printed: question },
    { said: { type: 'extension_ui_response', id: 'q', cancelled: true } },
    ...FIRST_TURN.slice(3),
  ])
  const { result, kinds } = await turn('one')
  expect([result.finalOutput, kinds]).toEqual(['Answer to one', ['started', 'output', 'complete']])
})

it('is started as for one turn, but with input open', async () => {
  const { driver, backend } = await openStage('pi', READY)
  const place = createPlace()
  const turn = backend.cli.turnOf({ prompt: 'hi', systemPrompt: 'Be brief.', model: 'opus', sessionId: SESSION })
  const { args } = await driver.launch(turn, place, new AbortController().signal, {})
  expect(args).toEqual([
    ...['--mode', 'rpc', '--model', 'opus', '--session', SESSION],
    ...['--append-system-prompt', `${place.files.path}/system-prompt.md`],
  ])
})

it('takes a turn of another message or limit, but of no other model, tools, prompt or directory', async () => {
  const { driver, backend } = await openStage('pi', READY)
  const keyOf = (change: object) => driver.keyOf(backend.cli.turnOf({ prompt: 'hi', ...change }))
  expect(keyOf({ prompt: 'other', sessionId: SESSION, maxTurns: 1 })).toBe(keyOf({}))
  const others = [{ model: 'opus' }, { allowedTools: ['read'] }, { systemPrompt: 'x' }]
  const keys = [{}, ...others, { workingDir: '/' }, { isUntrusted: true }].map(keyOf)
  expect(new Set(keys).size).toBe(keys.length)
})

describe('told more while it works', () => {
  it.each([
    ['after a tool', 'steer-tool', 'tool_use', 'Answer 1'],
    ['after an answer, which stays', 'steer-text', 'output', /^Begin w0 .* end\.\n\nAnswer 1$/],
  ] as const)('reads it %s, and answers in the same turn', async (_, what, begun, answer) => {
    const { turn, process } = await openStage('pi', captured('pi', what))
    let steer: Steer | undefined
    const taken: Array<boolean | undefined> = []
    const { result } = await turn('first', {
      request: { onSteerable: (given) => (steer = given) },
      act: async (_run, events) => {
        await until(() => events.some(({ type }) => type === begun), begun)
        taken.push(await steer?.('second'))
      },
    })
    expect(result.finalOutput).toMatch(answer)
    expect([taken, await steer?.('late'), process.isOver]).toEqual([[true], false, false])
  })

  it('has not accepted what it did not read by its end, and takes no other turn, which would read it', async () => {
    const talk = openTalk('pi')
    await talk.hear(IS_READY)
    const { live, isDone } = talk.begin('first')
    const early = live.steer?.('before it reads')
    await talk.hear({ id: 'prompt', type: 'response', command: 'prompt', success: true }, { type: 'agent_start' })
    const before = (await talk.said()).map(({ type }) => type)
    await talk.hear({ type: 'message_start', message: { role: 'user' } })
    const said = await talk.said()
    await talk.hear({ type: 'message_start', message: { role: 'user' } })
    void live.steer?.('too late')
    const message = { role: 'assistant', content: [{ type: 'text', text: 'Done' }], stopReason: 'stop' }
    const wasSpent = live.isSpent
    await talk.hear({ type: 'message_end', message }, { type: 'agent_end' })
    expect([before, said, await early, wasSpent, await isDone(), live.isSpent]).toEqual([
      ['get_state', 'prompt', 'get_state'],
      [{ id: 'steer-1', type: 'steer', message: 'before it reads' }],
      true,
      true,
      true,
      true,
    ])
  })

  it('does not accept what it refuses, nor what it would treat as a command', async () => {
    const talk = openTalk('pi')
    await talk.hear(IS_READY)
    const { live } = talk.begin('first')
    await talk.hear({ type: 'agent_start' }, { type: 'message_start', message: { role: 'user' } })
    const refused = live.steer?.('second')
    await talk.hear({ id: 'steer-1', type: 'response', command: 'steer', success: false, error: 'No' })
    expect([await refused, await live.steer?.('/compact'), live.isSpent]).toEqual([false, false, false])
  })
})

describe('of a line of Pi', () => {
  const partial = { role: 'assistant', content: [{ type: 'text', text: 'All of it, and "partial":{' }] }
  const update = (event: object): string =>
    JSON.stringify({ type: 'message_update', assistantMessageEvent: { ...event, partial }, message: partial })

  it.each([
    ['a word', 'word '],
    ['what looks like the end of it', '","partial":{"role":"assistant","content":[]}}'],
    ['what ends with a backslash', '\\'],
  ])('only what is new is read: %s', async (_, delta) => {
    const { driver } = await openStage('pi', READY)
    const event = { type: 'text_delta', contentIndex: 0, delta }
    const line = Buffer.from(update(event))
    expect(JSON.parse(driver.shorten?.(line, line) ?? '')).toEqual({
      type: 'message_update',
      assistantMessageEvent: event,
    })
  })

  it.each([
    ['of another kind', update({ type: 'text_end', contentIndex: 0, content: 'All' })],
    ['that is cut off', update({ type: 'text_delta', contentIndex: 0, delta: 'a' }).slice(0, -1)],
    ['with hardly a beginning', '{"type":'],
  ])('one %s is left as it is', async (_, line) => {
    const { driver } = await openStage('pi', READY)
    const bytes = Buffer.from(line)
    expect(driver.shorten?.(bytes, bytes)).toBeUndefined()
  })
})
