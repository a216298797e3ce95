import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openWarmProcess } from '../../../src/backends/engine/warm/warm-process.js'
import type { JsonObject } from '../../../src/backends/engine/jsonl.js'
import { until } from '../../kit/waiting.js'
import { openTalk, type Talk } from '../engine/warm/direct-talk.js'
import { captured, createPlace, openStage, type Step } from '../engine/warm/warm-stage.js'

const HOOKS_UNHEARD = 'a warm Gemini CLI does not run these hooks: BeforeTool'
const MODEL = { config: { model: 'gemini-2.5-flash' } }
const A = '74f03041-0000-4000-8000-00000000000a'
const B = '9e6fb419-0000-4000-8000-00000000000b'

function sessionIn(exchange: Step[]): string {
  return /"sessionId":"([^"]+)"/.exec(JSON.stringify(exchange))?.[1] ?? ''
}

const update = (sessionId: string, told: JsonObject): JsonObject => ({
  jsonrpc: '2.0',
  method: 'session/update',
  params: { sessionId, update: told },
})
const wrote = (sessionId: string, text: string): JsonObject =>
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
const ended = (id: number, stopReason = 'end_turn'): JsonObject => ({ jsonrpc: '2.0', id, result: { stopReason } })
const toolEnded = (sessionId: string, toolCallId: string, status = 'completed'): JsonObject =>
  update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId, status, title: 'ls', content: [] })
const texts = ({ events }: { events: object[] }): unknown[] =>
  events.flatMap((event) => ('content' in event ? event.content : []))
const promptsOf = (messages: JsonObject[]): unknown[] =>
  messages.map(({ params }) => (params as { prompt?: Array<{ text: string }> }).prompt?.[0]?.text)

/** With two new sessions and no prompt yet. The next request is number 4. */
async function openSessions(): Promise<Talk> {
  const talk = openTalk('gemini')
  await talk.hear({ id: 1, result: {} })
  for (const [id, sessionId] of [A, B].entries()) {
    const turn = talk.begin('never asked')
    await talk.said()
    turn.live.interrupt()
    await talk.hear({ id: id + 2, result: { sessionId, models: { currentModelId: 'auto' } } })
  }
  await talk.said()
  return talk
}

it('answers turn after turn of a session, each with its own usage', async () => {
  const exchange = captured('gemini', 'turns')
  const { turn, process } = await openStage('gemini', exchange, MODEL)
  const sessionId = sessionIn(exchange)
  const turns = [
    await turn('one'),
    await turn('two', { request: { sessionId } }),
    await turn('three', { request: { sessionId, systemPrompt: 'Be brief.' } }),
  ]
  expect(turns.map(({ kinds }) => kinds)).toEqual([
    ['started', 'output', 'complete'],
    ['started', 'tool_use', 'tool_result', 'output', 'complete'],
    ['started', 'output', 'complete'],
  ])
  expect(
    turns.map(({ result }) => [result.finalOutput, result.usage?.inputTokens, result.usage?.outputTokens]),
  ).toEqual([
    ['Hello 0', 120, 7],
    ['After tool.', 240, 14],
    ['Hello 3', 120, 7],
  ])
  expect(turns[1]?.events[1]).toMatchObject({
    toolName: 'run_shell_command',
    toolInput: { title: 'echo out; exit 3' },
  })
  expect(process.isOver).toBe(false)
})

it.each([
  ['is not kept warm if it would not run the hooks of the operator', 'home', false, HOOKS_UNHEARD],
  ['is not kept warm if it would not run the hooks of a project', 'work', false, HOOKS_UNHEARD],
  ['is kept warm in an untrusted project, whose hooks are not run anyway', 'work', true, 'opened'],
])('%s', async (_, owner, isUntrusted, outcome) => {
  const { stage, backend, driver } = await openStage('gemini', [], MODEL)
  const hooks = { BeforeTool: [{ hooks: [{ type: 'command', command: 'guard' }] }], BeforeAgent: [] }
  mkdirSync(join(stage.home, '..', owner, '.gemini'), { recursive: true })
  stage.write(join(owner, '.gemini/settings.json'), JSON.stringify({ hooks }))
  const opening = openWarmProcess(backend.cli, driver, { prompt: '', isUntrusted }, new AbortController().signal)
  const opened = opening.then(
    async (process) => {
      process.stop()
      await process.ended
      return 'opened'
    },
    (error: Error) => error.message,
  )
  expect(await opened).toBe(outcome)
})

it('is interrupted while it writes, and takes the next turn', async () => {
  const exchange = captured('gemini', 'interrupt-text')
  const { turn, process } = await openStage('gemini', exchange, MODEL)
  const sessionId = sessionIn(exchange)
  expect((await turn('slow', { stopOn: 'output' })).result.failure?.reason).toBe('cancelled')
  const next = await turn('after', { request: { sessionId } })
  expect([next.result.finalOutput, process.isOver]).toEqual(['Hello 1', false])
})

it('reloads a session that was interrupted while a tool ran: its memory has a call without a result', async () => {
  const exchange = captured('gemini', 'interrupt-tool')
  const { turn } = await openStage('gemini', exchange, MODEL)
  const sessionId = sessionIn(exchange)
  expect((await turn('tool', { stopOn: 'tool_use' })).result.failure?.reason).toBe('cancelled')
  const next = await turn('after', { request: { sessionId } })
  expect([next.result.finalOutput, next.kinds]).toEqual(['Hello 1', ['started', 'output', 'complete']])
})

it('keeps the history of a session that it loads out of the answer', async () => {
  const exchange = captured('gemini', 'load').slice(0, -1)
  const sessionId = sessionIn(exchange)
  const answer: Step[] = [{ printed: wrote(sessionId, 'Now.') }, { printed: ended(4) }]
  const { turn } = await openStage('gemini', [...exchange, ...answer], MODEL)
  const { events, result } = await turn('three', { request: { sessionId } })
  expect([events.map(({ type }) => type), result.finalOutput]).toEqual([['started', 'output', 'complete'], 'Now.'])
})

/** A session that began in this minute. */
function freshSession(home: string): { sessionId: string; files: string[] } {
  const chats = join(home, '.gemini/tmp/project/chats')
  mkdirSync(chats, { recursive: true })
  const files = [0, 1].map((minutes) => {
    const minute = new Date(Date.now() + minutes * 60_000).toISOString().slice(0, 16).replace(':', '-')
    return join(chats, `session-${minute}-c0472fda.jsonl`)
  })
  for (const file of files) writeFileSync(file, '')
  return { sessionId: 'c0472fda-0000-4000-8000-000000000000', files }
}

it('does not load a session in the minute in which it began, which would empty it: another way may be tried', async () => {
  const talk = await openSessions()
  const { sessionId } = freshSession(talk.home)
  const turn = talk.begin('hi', { sessionId })
  expect([await turn.isDone(), turn.live.isDeclined, await talk.said()]).toEqual([true, true, []])
})

it('waits for the end of that minute if no other way would ask before a tool', async () => {
  const talk = await openSessions()
  const { sessionId, files } = freshSession(talk.home)
  const turn = talk.begin('hi', { sessionId, approve: async () => ({ isAllowed: true }) })
  expect([await turn.isDone(), await talk.said()]).toEqual([false, []])
  for (const file of files) rmSync(file)
  const said = await until(async () => (await talk.said()).at(0), 'the load')
  expect(said).toMatchObject({ method: 'session/load', params: { sessionId } })
})

it('continues after an error of the model server, whose status is the reason', async () => {
  const { turn } = await openStage('gemini', captured('gemini', 'errors'), MODEL)
  expect((await turn('refused')).result.failure).toMatchObject({ reason: 'auth', message: 'scripted 401' })
  expect((await turn('fine')).result.finalOutput).toBe('Hello 1')
})

it('that does not know the session says so, and takes another turn', async () => {
  const { turn } = await openStage('gemini', captured('gemini', 'unknown-session'), MODEL)
  const lost = await turn('hi', { request: { sessionId: '01a1e428-debf-4513-8e98-f4f87c0ebdc7' } })
  expect([lost.result.failure?.reason, lost.isProcessLost]).toEqual(['session_lost', false])
  expect((await turn('new')).result.finalOutput).toBe('Hello 0')
})

it("is interrupted when the model's turns are used up", async () => {
  const { turn } = await openStage('gemini', captured('gemini', 'max-turns'), {
    config: { ...MODEL.config, maxTurns: 2 },
  })
  expect((await turn('loop')).result.failure?.reason).toBe('max_turns')
})

it.each([
  ['ids of its own', ['t_1794832035248_0', 't_1794832035249_1', 't_1794832036020_0'], [], 2],
  ['ids of the model server, told apart by what is said between', ['t__x', 't__y', 't__z'], ['t__z'], 2],
])('counts the calls of one answer of the model as one turn, with %s', async (_, calls, spokenBefore, maxTurns) => {
  const talk = await openSessions()
  const { translation } = talk.begin('hi', { sessionId: A, maxTurns })
  for (const call of calls) {
    expect(translation.mustStop).toBeUndefined()
    if (spokenBefore.includes(call)) await talk.hear(wrote(A, 'Next.'))
    await talk.hear(toolEnded(A, call))
  }
  expect(translation.mustStop?.reason).toBe('max_turns')
})

it('reports a tool that fails before its call was reported', async () => {
  const talk = await openSessions()
  const { events } = talk.begin('hi', { sessionId: A })
  await talk.hear(toolEnded(A, 'read_file__read_file_1794832035248_0', 'failed'))
  expect(events.slice(1)).toMatchObject([
    { type: 'tool_use', toolName: 'read_file' },
    { type: 'tool_result', isError: true },
  ])
})

it('lets turns of one session wait for each other: a second one would cancel the first', async () => {
  const talk = await openSessions()
  const [first, second] = [talk.begin('one', { sessionId: A }), talk.begin('two', { sessionId: A })]
  expect(promptsOf(await talk.said())).toEqual(['one'])
  await talk.hear(wrote(A, 'First.'), ended(4))
  expect([await first.isDone(), promptsOf(await talk.said())]).toEqual([true, ['two']])
  await talk.hear(wrote(A, 'Second.'), ended(5))
  expect([first, second].map(texts)).toEqual([['First.'], ['Second.']])
})

it('keeps two simultaneous sessions apart', async () => {
  const talk = await openSessions()
  const turns = [talk.begin('one', { sessionId: A }), talk.begin('two', { sessionId: B })]
  await talk.hear(wrote(B, 'From B.'), wrote(A, 'From A.'), ended(5))
  expect(await Promise.all(turns.map((turn) => turn.isDone()))).toEqual([false, true])
  await talk.hear(ended(4))
  expect(turns.map(texts)).toEqual([['From A.'], ['From B.']])
})

it('ignores reports of the approval mode, and unsolicited output', async () => {
  const talk = await openSessions()
  await talk.hear(wrote(A, 'Unasked.'))
  const turn = talk.begin('hi', { sessionId: A })
  await talk.hear(wrote(A, '[MODE_UPDATE] yolo'), wrote(A, 'Hello.'), ended(4))
  expect([texts(turn), turn.translation.verdict]).toEqual([['Hello.'], { isError: false, text: 'Hello.' }])
})

it('allows a tool that asks, unless the turn was stopped', async () => {
  const talk = await openSessions()
  const { live } = talk.begin('hi', { sessionId: A })
  const options = [
    { optionId: 'proceed_always', kind: 'allow_always' },
    { optionId: 'proceed_once', kind: 'allow_once' },
    { optionId: 'cancel', kind: 'reject_once' },
  ]
  const question = { jsonrpc: '2.0', method: 'session/request_permission', params: { sessionId: A, options } }
  await talk.said()
  await talk.hear({ ...question, id: 0 })
  live.interrupt()
  await talk.hear({ ...question, id: 1 })
  expect(await talk.said()).toEqual([
    { jsonrpc: '2.0', id: 0, result: { outcome: { outcome: 'selected', optionId: 'proceed_once' } } },
    { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: A } },
    { jsonrpc: '2.0', id: 1, result: { outcome: { outcome: 'cancelled' } } },
  ])
})

it('gives one session another system prompt before its turn, and no other session', async () => {
  const talk = await openSessions()
  const instructions = () => readFileSync(join(talk.directory, '.gemini/GEMINI.md'), 'utf8')
  const first = talk.begin('one', { sessionId: A, systemPrompt: 'Be brief.' })
  talk.begin('two', { sessionId: B, systemPrompt: 'Be long.' })
  expect([promptsOf(await talk.said()), instructions()]).toEqual([['/memory refresh'], 'Be brief.'])
  await talk.hear(wrote(A, 'Memory reloaded.'), ended(4))
  expect([new Set(promptsOf(await talk.said())), instructions()]).toEqual([
    new Set(['one', '/memory refresh']),
    'Be long.',
  ])
  await talk.hear(wrote(A, 'Hello.'), ended(5), ended(6))
  expect([texts(first), promptsOf(await talk.said())]).toEqual([['Hello.'], ['two']])
})

it('returns to its own model for a turn that names none', async () => {
  const talk = await openSessions()
  talk.begin('one', { sessionId: A, model: 'gemini-2.5-pro' })
  const toModel = (modelId: string) => [{ method: 'session/set_model', params: { modelId } }]
  expect(await talk.said()).toMatchObject(toModel('gemini-2.5-pro'))
  await talk.hear({ id: 4, result: {} })
  await talk.hear(wrote(A, 'Hello.'), ended(5))
  await talk.said()
  talk.begin('two', { sessionId: A })
  expect(await talk.said()).toMatchObject(toModel('auto'))
})

it.each([
  ['/help', String.raw`\/help`],
  [' \n/help', String.raw`\ ` + '\n/help'],
  ['$help', String.raw`\$help`],
  ['see @note.txt or /help', 'see @note.txt or /help'],
])('keeps %j from being a command', async (prompt, expected) => {
  const talk = await openSessions()
  talk.begin(prompt, { sessionId: A })
  expect(promptsOf(await talk.said())).toEqual([expected])
})

it.each([
  ['end_turn', 'exit', 'The model gave no answer.'],
  ['max_tokens', 'exit', 'The conversation is too long for the model.'],
  ['max_turn_requests', 'max_turns', 'Gemini CLI got stuck in a loop, or reached its maximum number of turns.'],
  ['refusal', 'exit', 'The turn ended without an answer: refusal.'],
])('fails when a turn ends with %s and no answer', async (stopReason, reason, message) => {
  const exchange = captured('gemini', 'errors').slice(0, 8)
  const { turn } = await openStage('gemini', [...exchange, { printed: ended(4, stopReason) }], MODEL)
  expect((await turn('refused')).result.failure).toMatchObject({ reason, message })
})

it('is started for the sessions of one directory, and counts no turns itself', async () => {
  const { driver, backend, stage } = await openStage('gemini', [])
  const place = createPlace(stage.home)
  const { path } = place.files
  const turn = backend.cli.turnOf({ prompt: 'hi', allowedTools: ['read_file'] })
  const { args } = await driver.launch(turn, place, new AbortController().signal, {})
  expect(args).toEqual(['--acp', '--approval-mode', 'yolo', '--admin-policy', join(path, 'policy.toml')])
  const settings = JSON.parse(readFileSync(join(path, '.gemini/settings.json'), 'utf8')) as JsonObject
  expect(settings['model']).toEqual({ maxSessionTurns: -1 })

  const keyOf = (change: object) => driver.keyOf(backend.cli.turnOf({ prompt: 'hi', ...change }))
  expect(keyOf({ model: 'x', systemPrompt: 'y', sessionId: A, maxTurns: 3 })).toBe(keyOf({}))
  const keys = [{}, { workingDir: '/' }, { isUntrusted: true }, { allowedTools: ['read_file'] }].map(keyOf)
  expect(new Set(keys).size).toBe(keys.length)
})
