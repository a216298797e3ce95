import { expect, it } from 'vitest'
import type { JsonObject } from '../../../src/backends/engine/jsonl.js'
import type { Steer } from '../../../src/backends/types.js'
import { until } from '../../kit/waiting.js'
import { createStage } from '../fake-cli.js'
import { openTalk } from '../engine/warm/direct-talk.js'
import { captured, createPlace, openStage, type Step } from '../engine/warm/warm-stage.js'

const MODEL = { config: { model: 'gpt-5.5' } }
const A = '01a1e452-0000-7000-8000-00000000000a'
const B = '01a1e452-0000-7000-8000-00000000000b'

/** The id of the first thread loaded in an exchange. */
function threadIn(exchange: Step[]): string {
  const loaded = exchange.find((step) => JSON.stringify(step).includes('"result":{"thread"'))
  return /"thread":\{"id":"([^"]+)"/.exec(JSON.stringify(loaded))?.[1] ?? ''
}

const loadedAs = (id: number, thread: string): JsonObject => ({
  id,
  result: { thread: { id: thread }, model: 'gpt-5.5' },
})
const startedIn = (threadId: string, turn: string): JsonObject => ({
  method: 'turn/started',
  params: { threadId, turn: { id: turn, status: 'inProgress' } },
})
const wroteIn = (threadId: string, turnId: string, delta: string): JsonObject => ({
  method: 'item/agentMessage/delta',
  params: { threadId, turnId, itemId: 'msg', delta },
})
const completedIn = (threadId: string, turn: string, status = 'completed'): JsonObject => ({
  method: 'turn/completed',
  params: { threadId, turn: { id: turn, status } },
})
const methods = (messages: JsonObject[]): unknown[] => messages.map(({ method }) => method)

/** With two loaded threads, after a turn in each. */
async function openThreads() {
  const talk = openTalk('codex')
  await talk.hear({ id: 1, result: {} })
  const turns = [A, B].map((thread) => talk.begin('first', { sessionId: thread }))
  await talk.hear(loadedAs(2, A), loadedAs(3, B))
  await talk.hear(startedIn(A, 'a1'), completedIn(A, 'a1'), startedIn(B, 'b1'), completedIn(B, 'b1'))
  await talk.hear({ id: 4, result: {} }, { id: 5, result: {} })
  await Promise.all(turns.map(({ live }) => live.done))
  await talk.said()
  return talk
}

it('answers turn after turn of a thread, as it writes, each with its own usage', async () => {
  const exchange = captured('codex', 'turns')
  const { turn, process } = await openStage('codex', exchange, MODEL)
  const request = { sessionId: threadIn(exchange) }
  const turns = [
    await turn('one'),
    await turn('two', { request }),
    await turn('three', { request: { ...request, systemPrompt: 'Be brief.' } }),
  ]
  expect(turns.map(({ kinds }) => kinds)).toEqual([
    ['started', 'output', 'complete'],
    ['started', 'tool_use', 'tool_result', 'output', 'complete'],
    ['started', 'output', 'complete'],
  ])
  expect(
    turns.map(({ result }) => [result.finalOutput, result.usage?.totalTokens, result.sessionUsage?.totalTokens]),
  ).toEqual([
    ['Hello 0', 130, 130],
    ['After tool.', 260, 390],
    ['Hello 3', 130, 520],
  ])
  expect(turns[0]?.result.usage).toEqual({
    inputTokens: 100,
    outputTokens: 10,
    cacheReadTokens: 20,
    cacheWriteTokens: 0,
    reasoningTokens: 3,
    totalTokens: 130,
  })
  expect(process.isOver).toBe(false)
})

it('compacts a thread, whose next turn has usage of its own', async () => {
  const exchange = captured('codex', 'compact')
  const { turn } = await openStage('codex', exchange)
  const request = { sessionId: threadIn(exchange) }
  await turn('one')
  const compacted = await turn('/compact keep the names', { request: { ...request, isCommand: true } })
  expect([compacted.events.slice(0, 2), compacted.result.finalOutput, compacted.result.usage?.totalTokens]).toEqual([
    [
      expect.objectContaining({ type: 'started' }),
      expect.objectContaining({ content: 'Codex cannot be told what to keep when it compacts a session.' }),
    ],
    '',
    130,
  ])
  const next = await turn('two', { request })
  expect([next.result.finalOutput, next.result.usage?.totalTokens]).toEqual(['A summary', 130])
})

it('reports a tool as one-shot does', async () => {
  const exchange = captured('codex', 'turns')
  const { turn } = await openStage('codex', exchange, MODEL)
  await turn('one')
  const { events } = await turn('two', { request: { sessionId: threadIn(exchange) } })
  expect(events.slice(1, 3)).toEqual([
    {
      type: 'tool_use',
      toolId: 'call_2',
      toolName: 'command_execution',
      toolInput: { command: "/bin/bash -lc 'echo out; exit 3'" },
      timestamp: expect.any(Number),
    },
    {
      type: 'tool_result',
      toolId: 'call_2',
      toolName: 'command_execution',
      content: 'out\n',
      isError: true,
      metadata: { exitCode: 3 },
      timestamp: expect.any(Number),
    },
  ])
})

it.each([
  ['while it writes', 'interrupt-text', 'slow', 'output'],
  ['while a command runs, which is ended then', 'interrupt-tool', 'tool', 'tool_use'],
] as const)('is interrupted %s, and takes the next turn', async (_, what, prompt, stopOn) => {
  const exchange = captured('codex', what)
  const { turn, process } = await openStage('codex', exchange, MODEL)
  const sessionId = threadIn(exchange)
  const { result, events } = await turn(prompt, { stopOn })
  expect(result).toMatchObject({ isError: true, sessionId, failure: { reason: 'cancelled' } })
  expect(events.filter(({ type }) => type === 'tool_use')).toHaveLength(
    events.filter(({ type }) => type === 'tool_result').length,
  )
  const next = await turn('after', { request: { sessionId } })
  expect([next.result.finalOutput, next.kinds, process.isOver]).toEqual([
    'Hello 1',
    ['started', 'output', 'complete'],
    false,
  ])
})

it('is interrupted once the turn has started, not earlier, when that would be refused', async () => {
  const talk = await openThreads()
  const turn = talk.begin('early', { sessionId: A })
  expect(methods(await talk.said())).toEqual(['turn/start'])
  turn.live.interrupt()
  await talk.hear({ id: 6, result: { turn: { id: 'a2' } } })
  expect([await talk.said(), await turn.isDone()]).toEqual([[], false])
  await talk.hear(startedIn(A, 'a2'))
  expect(await talk.said()).toEqual([{ id: 7, method: 'turn/interrupt', params: { threadId: A, turnId: 'a2' } }])
  await talk.hear(completedIn(A, 'a2', 'interrupted'))
  expect(await turn.isDone()).toBe(true)
})

it("reports each retry, and fails with the last one's message", async () => {
  const { turn } = await openStage('codex', captured('codex', 'retry'), MODEL)
  const { result, kinds } = await turn('refused')
  expect(kinds).toEqual(['started', ...Array.from({ length: 5 }, () => 'notice'), 'error', 'complete'])
  expect(result.failure).toMatchObject({
    reason: 'auth',
    message: 'unexpected status 401 Unauthorized: scripted 401, url: http://127.0.0.1:1/v1/responses',
  })
})

it("takes the model server's status as the reason, whatever its message", async () => {
  const talk = await openThreads()
  const turn = talk.begin('limited', { sessionId: A })
  const error = {
    message: 'Come back later.',
    codexErrorInfo: { responseTooManyFailedAttempts: { httpStatusCode: 429 } },
  }
  await talk.hear(startedIn(A, 'a2'), { id: 6, result: {} })
  await talk.hear({ method: 'turn/completed', params: { threadId: A, turn: { id: 'a2', status: 'failed', error } } })
  expect(turn.translation.verdict).toEqual({ isError: true, message: 'Come back later.', status: 429 })
})

it('that does not know the thread says so, and takes another turn', async () => {
  const { turn } = await openStage('codex', captured('codex', 'unknown-session'), MODEL)
  const lost = await turn('hi', { request: { sessionId: '01a1e428-debf-7513-8e98-f4f87c0ebdc7' } })
  expect([lost.result.failure?.reason, lost.isProcessLost]).toEqual(['session_lost', false])
  expect((await turn('new')).result.finalOutput).toBe('Hello 0')
})

it('whose record of the thread is damaged reports it as lost', async () => {
  const { turn } = await openStage('codex', captured('codex', 'truncated-session'), MODEL)
  const lost = await turn('hi', { request: { sessionId: '01a1ec44-8b7c-7980-8b3f-d72c02744dc6' } })
  expect([lost.result.failure?.reason, lost.isProcessLost]).toEqual(['session_lost', false])
})

/** Continues a thread whose record contains this. */
async function resumed(record: string) {
  const stage = createStage()
  const exchange = captured('codex', 'instructed')
  const path = stage.write('record.jsonl', record)
  const steps = exchange.map((step) => JSON.parse(JSON.stringify(step).replace(/\/home\/user\/[^"]*/, path)) as Step)
  const { turn } = await openStage('codex', steps, MODEL)
  return turn('four', { request: { sessionId: threadIn(exchange), systemPrompt: 'Be long.' } })
}

const TOLD = String.raw`{"text":"<gateway_instructions>\nBe long.\n</gateway_instructions>"}`

it('continues a thread without its earlier usage, and without a system prompt that it knows', async () => {
  const { result } = await resumed(`{"text":"<gateway_instructions>\\nBe brief.\\n</gateway_instructions>"}\n${TOLD}\n`)
  expect([result.finalOutput, result.usage?.totalTokens, result.sessionUsage?.totalTokens]).toEqual([
    'Hello 3',
    130,
    520,
  ])
})

it.each([
  ['another one', `${TOLD}\n{"text":"<gateway_instructions>\\nBe brief.\\n</gateway_instructions>"}\n`],
  ['a summary', `${TOLD}\n{"type":"compacted"}\n`],
  ['nothing', ''],
])('repeats the system prompt when %s came after it in the thread', async (_, record) => {
  // The exchange does not contain that.
  const { result } = await resumed(record)
  expect(result.failure?.stderr).toContain('"method":"thread/inject_items"')
})

it('returns to its own model for a turn that names none, and counts the tokens of the summary for that', async () => {
  const exchange = captured('codex', 'other-model')
  const { turn } = await openStage('codex', exchange)
  const request = { systemPrompt: 'Be brief.' }
  await turn('one', { request: { ...request, model: 'gpt-5.5' } })
  const { result } = await turn('two', { request: { ...request, sessionId: threadIn(exchange) } })
  expect([result.finalOutput, result.usage?.totalTokens]).toEqual(['Hello 2', 260])
})

it('starts a thread of an untrusted project with settings of its own', async () => {
  const { turn, backend, driver } = await openStage('codex', captured('codex', 'untrusted'), MODEL)
  expect((await turn('one', { request: { isUntrusted: true } })).result.finalOutput).toBe('Hello 0')
  const keyOf = (change: object) => driver.keyOf(backend.cli.turnOf({ prompt: 'hi', ...change }))
  expect(keyOf({ isUntrusted: true })).not.toBe(keyOf({}))
  expect(keyOf({ model: 'x', systemPrompt: 'y', workingDir: '/', sessionId: A, maxTurns: 3 })).toBe(keyOf({}))
})

it('lets turns of one thread wait for each other: a second one would steer the first', async () => {
  const talk = await openThreads()
  const [first, second] = [talk.begin('one', { sessionId: A }), talk.begin('two', { sessionId: A.toUpperCase() })]
  expect(methods(await talk.said())).toEqual(['turn/start'])
  await talk.hear(startedIn(A, 'a2'), { id: 6, result: {} }, wroteIn(A, 'a2', 'First.'), completedIn(A, 'a2'))
  expect([await first.isDone(), methods(await talk.said())]).toEqual([true, ['turn/start']])
  await talk.hear(startedIn(A, 'a3'), { id: 7, result: {} }, wroteIn(A, 'a3', 'Second.'), completedIn(A, 'a3'))
  const texts = [first, second].map(({ events }) =>
    events.flatMap((event) => ('content' in event ? event.content : [])),
  )
  expect(texts).toEqual([['First.'], ['Second.']])
})

it('is not prompted by a turn that was stopped while it waited', async () => {
  const talk = await openThreads()
  const [first, second] = [talk.begin('one', { sessionId: A }), talk.begin('two', { sessionId: A })]
  second.live.interrupt()
  expect([await second.isDone(), methods(await talk.said())]).toEqual([true, ['turn/start']])
  await talk.hear(startedIn(A, 'a2'), { id: 6, result: {} }, completedIn(A, 'a2'))
  expect([await first.isDone(), await talk.said()]).toEqual([true, []])
})

it('keeps two simultaneous threads apart', async () => {
  const talk = await openThreads()
  const turns = [talk.begin('one', { sessionId: A }), talk.begin('two', { sessionId: B })]
  await talk.hear({ id: 6, result: {} }, { id: 7, result: {} }, startedIn(B, 'b2'), startedIn(A, 'a2'))
  await talk.hear(wroteIn(B, 'b2', 'From B.'), wroteIn(A, 'a2', 'From A.'), completedIn(B, 'b2'))
  expect(await Promise.all(turns.map((turn) => turn.isDone()))).toEqual([false, true])
  await talk.hear(completedIn(A, 'a2'))
  expect(turns.map(({ events }) => events.at(-1))).toEqual([
    { type: 'output', content: 'From A.', stream: 'stdout' },
    { type: 'output', content: 'From B.', stream: 'stdout' },
  ])
})

it('ignores late output of an earlier turn', async () => {
  const talk = await openThreads()
  const { events } = talk.begin('one', { sessionId: A })
  await talk.hear(wroteIn(A, 'a1', 'Late.'), startedIn(A, 'a2'), { id: 6, result: {} }, wroteIn(A, 'a1', 'Later.'))
  expect(events.map(({ type }) => type)).toEqual(['started'])
})

it('shows a message that came whole, separated from the one before', async () => {
  const talk = await openThreads()
  const { events, translation } = talk.begin('one', { sessionId: A })
  const item = (id: string, text: string) => ({ threadId: A, turnId: 'a2', item: { type: 'agentMessage', id, text } })
  await talk.hear(startedIn(A, 'a2'), { id: 6, result: {} })
  await talk.hear(
    { method: 'item/started', params: item('m1', 'Whole.') },
    { method: 'item/completed', params: item('m1', 'Whole.') },
  )
  await talk.hear(wroteIn(A, 'a2', 'In '), wroteIn(A, 'a2', 'parts.'), {
    method: 'item/completed',
    params: item('msg', 'In parts.'),
  })
  await talk.hear(completedIn(A, 'a2'))
  expect(events.flatMap((event) => (event.type === 'output' ? event.content : []))).toEqual([
    'Whole.',
    '\n\nIn ',
    'parts.',
  ])
  expect(translation.verdict).toEqual({ isError: false, text: 'In parts.' })
})

it('ends the commands that a turn left running, before the turn is over', async () => {
  const talk = await openThreads()
  const turn = talk.begin('one', { sessionId: A })
  const command = { threadId: A, turnId: 'a2', item: { type: 'commandExecution', id: 'c', command: 'sleep 600' } }
  await talk.hear(startedIn(A, 'a2'), { id: 6, result: {} }, { method: 'item/started', params: command })
  await talk.said()
  await talk.hear(completedIn(A, 'a2'))
  const request = { id: 7, method: 'thread/backgroundTerminals/clean', params: { threadId: A } }
  expect([await talk.said(), await turn.isDone()]).toEqual([[request], false])
  await talk.hear({ id: 7, error: { code: -32_600, message: 'no such request' } })
  expect([await turn.isDone(), turn.translation.verdict?.isError]).toEqual([true, false])
  expect(turn.events.at(-1)).toEqual({
    type: 'notice',
    content: 'A command that is still running could not be stopped: no such request',
  })
})

it('reports the warnings that came while a thread was loaded', async () => {
  const talk = openTalk('codex')
  await talk.hear({ id: 1, result: {} })
  const { events } = talk.begin('one')
  await talk.hear({ method: 'warning', params: { threadId: A, message: 'Model metadata not found.' } }, loadedAs(2, A))
  expect(events).toEqual([
    { type: 'started', sessionId: A },
    { type: 'notice', content: 'Model metadata not found.' },
  ])
})

it('keeps the instructions of the operator before the system prompt', async () => {
  const talk = openTalk('codex')
  await talk.hear({ id: 1, result: {} })
  talk.begin('one', { systemPrompt: 'Be brief.' })
  await talk.hear({ id: 2, result: { config: { developer_instructions: 'Speak German.' } } })
  const [, , , start] = await talk.said()
  expect(start).toMatchObject({
    method: 'thread/start',
    params: { developerInstructions: 'Speak German.\n\n<gateway_instructions>\nBe brief.\n</gateway_instructions>' },
  })
})

it('prompts nothing in a thread other than the requested one', async () => {
  const talk = openTalk('codex')
  await talk.hear({ id: 1, result: {} })
  await talk.said()
  const { translation, isDone } = talk.begin('hi', { sessionId: A })
  const before = methods(await talk.said())
  await talk.hear(loadedAs(2, B))
  const { mustStop } = translation
  expect([before, methods(await talk.said()), await isDone(), mustStop?.reason]).toEqual([
    ['thread/resume'],
    [],
    true,
    'session_lost',
  ])
})

it('answers questions that nobody can answer, so that Codex does not wait', async () => {
  const talk = await openThreads()
  await talk.hear({ id: 0, method: 'item/tool/requestUserInput', params: { threadId: A } })
  expect(await talk.said()).toEqual([{ id: 0, error: { code: -32_601, message: 'Not supported' } }])
})

it('is started for many threads', async () => {
  const { driver, backend } = await openStage('codex', [])
  const { args } = await driver.launch(
    backend.cli.turnOf({ prompt: 'hi' }),
    createPlace(),
    new AbortController().signal,
    {},
  )
  expect(args).toEqual([
    ...['app-server', '-c', 'check_for_update_on_startup=false'],
    ...['--disable', 'unbounded_connection_retries'],
  ])
})

it.each([
  ['a command', 'steer-tool', 'tool_use', ['started', 'tool_use', 'tool_result', 'output', 'complete']],
  ['what it writes, which breaks off', 'steer-text', 'output', ['started', 'output', 'complete']],
] as const)('takes more input after %s, and answers in the same turn', async (_, what, begun, expected) => {
  const { turn, process } = await openStage('codex', captured('codex', what), MODEL)
  let steer: Steer | undefined
  const taken: Array<boolean | undefined> = []
  const { kinds, result } = await turn('first', {
    request: { onSteerable: (given) => (steer = given) },
    act: async (_run, events) => {
      await until(() => events.some(({ type }) => type === begun), begun)
      taken.push(await steer?.('second'))
    },
  })
  expect([kinds, result.finalOutput, taken, await steer?.('late'), process.isOver]).toEqual([
    expected,
    'Answer 1',
    [true],
    false,
    false,
  ])
})

it("takes more input only once its turn has started, and under that turn's id, so that no other begins", async () => {
  const talk = await openThreads()
  const { live } = talk.begin('more', { sessionId: A })
  const second = live.steer?.('second')
  const third = live.steer?.('third')
  const before = methods(await talk.said())
  await talk.hear({ id: 6, result: {} }, startedIn(A, 'a2'))
  const said = await talk.said()
  await talk.hear(
    { id: 7, result: { turnId: 'a2' } },
    { id: 8, error: { code: -32_600, message: 'no active turn to steer' } },
  )
  expect([before, said.map(({ method, params }) => [method, params]), [await second, await third]]).toEqual([
    ['turn/start'],
    ['second', 'third'].map((text) => [
      'turn/steer',
      { threadId: A, expectedTurnId: 'a2', input: [{ type: 'text', text, text_elements: [] }] },
    ]),
    [true, false],
  ])
})

it.each([
  ['kept in memory', 'ephemeral', ['initialize', 'initialized', 'config/read', 'account/login/start']],
  // Otherwise the key would be written into the operator's own home.
  ['not kept in memory', 'file', ['initialize', 'initialized', 'config/read']],
])('logs in by CODEX_API_KEY where that is %s', async (_what, kept, said) => {
  const talk = openTalk('codex', { CODEX_API_KEY: 'sk-codex' })
  const asked = await talk.said()
  await talk.hear({ id: 1, result: {} })
  await talk.hear({ id: 2, result: { config: { cli_auth_credentials_store: kept } } })
  asked.push(...(await talk.said()))
  const login = asked.find(({ method }) => method === 'account/login/start')
  expect([methods(asked), login?.['params']]).toEqual([
    said,
    kept === 'ephemeral' ? { type: 'apiKey', apiKey: 'sk-codex' } : undefined,
  ])
})
