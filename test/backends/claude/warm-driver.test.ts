import { existsSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { JsonObject } from '../../../src/backends/engine/jsonl.js'
import { until } from '../../kit/waiting.js'
import { captured, createPlace, openStage, type Step } from '../engine/warm/warm-stage.js'
import { threeTurns, told } from '../engine/warm/three-turns.js'

const SESSION = '6488a900-9deb-456e-98ea-de230d1950c5'

/** The start of every exchange. */
const READY: Step[] = captured('claude', 'turns').slice(0, 2)
/** From the first message to its result. */
const FIRST_TURN: Step[] = captured('claude', 'turns').slice(2, 14)

it('answers turn after turn in one process, each with its own usage and cost', async () => {
  const { turn, process } = await openStage('claude', captured('claude', 'turns'))
  const turns = [await turn('one'), await turn('two'), await turn('three')]
  expect(turns.map(told)).toEqual(threeTurns(SESSION))
  expect(process.isOver).toBe(false)
})

it.each([
  ['while it writes', 'text', 'slow', 'output'],
  ['while a tool runs', 'tool', 'tool', 'tool_use'],
] as const)('is interrupted by a request %s, and takes the next turn', async (_, what, prompt, stopOn) => {
  const { turn, process } = await openStage('claude', captured('claude', `interrupt-${what}`))
  const { result } = await turn(prompt, { stopOn })
  expect(result).toMatchObject({ isError: true, sessionId: SESSION, failure: { reason: 'cancelled' } })
  const { result: next } = await turn('after')
  expect([next.finalOutput, next.usage?.inputTokens, process.isOver]).toEqual(['Answer to after', 100, false])
})

it('is interrupted even before it has begun to work', async () => {
  const { turn } = await openStage('claude', captured('claude', 'interrupt-early'))
  await turn('one')
  const { result, kinds } = await turn('early', { stopOn: 'begun' })
  expect([result.failure?.reason, kinds]).toEqual(['cancelled', ['error', 'complete']])
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
})

it('is not done before a late interrupt is answered, which would hit the next turn', async () => {
  const { driver, backend } = await openStage('claude', READY)
  const said: JsonObject[] = []
  const connection = driver.connect((message) => said.push(message), createPlace(), {})
  const turn = backend.cli.turnOf({ prompt: 'one' })
  const translation = backend.cli.definition.translation(() => {}, turn)
  const live = connection.begin(turn, translation)
  let isDone = false
  void live.done.then(() => {
    isDone = true
  })
  live.interrupt()
  const id = said.at(-1)?.['request_id']
  connection.receive({ type: 'result', subtype: 'success', result: 'done' })
  await setImmediate()
  expect([isDone, translation.verdict]).toEqual([false, { isError: false, text: 'done' }])
  connection.receive({ type: 'control_response', response: { subtype: 'success', request_id: id } })
  await live.done
})

it('counts its turns per message', async () => {
  const { turn } = await openStage('claude', captured('claude', 'max-turns'))
  const { result } = await turn('loop')
  expect(result).toMatchObject({
    failure: { reason: 'max_turns', message: 'Reached maximum number of turns (2)' },
    usage: { inputTokens: 200 },
  })
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
})

it.each([
  ['error-then-answer', 'broken', { reason: 'refused', message: 'API Error: 400 scripted error' }],
  ['retries', 'limited', { reason: 'rate_limit', message: 'API Error: Request rejected (429) · scripted error' }],
])('continues after an error of the model server: %s', async (what, prompt, failure) => {
  const { turn, process } = await openStage('claude', captured('claude', what))
  expect((await turn(prompt)).result.failure).toMatchObject(failure)
  expect((await turn('after')).result.finalOutput).toBe('Answer to after')
  expect(process.isOver).toBe(false)
})

it('exits if it does not know the session, which is lost', async () => {
  const request = { sessionId: '00000000-0000-4000-8000-000000000000' }
  const { turn, process } = await openStage('claude', captured('claude', 'unknown-session'), { request })
  const { result, isProcessLost } = await turn('hi', { request })
  expect([result.failure?.reason, result.sessionId, isProcessLost]).toEqual(['session_lost', undefined, false])
  expect(process.isOver).toBe(true)
})

it('is interrupted if it speaks unasked, which is not the next answer', async () => {
  const unasked: Step[] = captured('claude', 'interrupt-early').slice(17, 21)
  const { turn, process, stage } = await openStage('claude', [
    ...READY,
    ...FIRST_TURN,
    { run: 'while [ ! -e go ]; do sleep 0.02; done' },
    ...unasked.slice(0, 1),
    { said: { type: 'control_request', request: { subtype: 'interrupt' } } },
    { run: 'touch interrupted' },
    { said: { type: 'user', message: { role: 'user', content: 'one' } } },
    { printed: { type: 'assistant', message: { content: [{ type: 'text', text: 'Unasked.' }] } } },
    ...unasked.slice(1),
    { printed: { type: 'control_response', response: { subtype: 'success', request_id: 'interrupt-2' } } },
    ...FIRST_TURN.slice(1),
  ])
  await turn('one')
  stage.write('work/go', '')
  await until(() => existsSync(`${stage.workingDir}/interrupted`), 'the interrupt')
  const { result, kinds } = await turn('one')
  expect([result.finalOutput, kinds]).toEqual(['Answer to one', ['started', 'output', 'complete']])
  expect(process.isOver).toBe(false)
})

it('does not wait for an answer to what it asks', async () => {
  const { turn } = await openStage('claude', [
    ...READY,
    ...FIRST_TURN.slice(0, 2),
    { printed: { type: 'control_request', request_id: 'q', request: { subtype: 'can_use_tool' } } },
    { said: { type: 'control_response', response: { subtype: 'error', request_id: 'q' } } },
    ...FIRST_TURN.slice(2),
  ])
  expect((await turn('one')).result.finalOutput).toBe('Answer to one')
})

it('does not begin if the process never listens', async () => {
  const refusal = { subtype: 'error', request_id: 'initialize-1', error: 'Unsupported' }
  const { turn, process } = await openStage('claude', [
    ...READY.slice(0, 1),
    { printed: { type: 'control_response', response: refusal } },
  ])
  const { result, isProcessLost } = await turn('one')
  expect([result.failure?.message, isProcessLost]).toEqual(['Claude Code did not become ready: Unsupported', true])
  await process.ended
})

it.each([
  ['a command', '/help', ' /help'],
  ['lines', 'a\n{"type":"user"}\r\n\u2028b', 'a\n{"type":"user"}\r\n\u2028b'],
  ['NUL', 'a\0b', 'a\0b'],
  ['an option', '--help', '--help'],
])('is told %s in one line, as a message', async (_, prompt, arrived) => {
  const { turn } = await openStage('claude', [
    ...READY,
    { said: { type: 'user', message: { role: 'user', content: arrived } } },
    ...FIRST_TURN.slice(1),
  ])
  expect((await turn(prompt)).result.finalOutput).toBe('Answer to one')
})

it('is started as for one turn, but with input open', async () => {
  const { driver, backend } = await openStage('claude', READY)
  const place = createPlace()
  const turn = backend.cli.turnOf({ prompt: 'hi', systemPrompt: 'Be brief.', model: 'opus', maxTurns: 7 })
  const { args, environment } = await driver.launch(turn, place, new AbortController().signal, {})
  expect(args).toEqual([
    ...['--output-format', 'stream-json', '--verbose', '--include-partial-messages'],
    ...['--input-format', 'stream-json', '-p', '--max-turns', '7', '--model', 'opus', '--dangerously-skip-permissions'],
    ...['--append-system-prompt-file', `${place.files.path}/system-prompt.md`],
  ])
  expect(environment).toEqual({
    CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
    CLAUDE_CODE_DISABLE_CRON: '1',
  })
})

it('takes a turn of another message, but not of another model, tools, limit, prompt or directory', async () => {
  const { driver, backend } = await openStage('claude', READY)
  const keyOf = (change: object) => driver.keyOf(backend.cli.turnOf({ prompt: 'hi', ...change }))
  expect(keyOf({ prompt: 'other', sessionId: SESSION })).toBe(keyOf({}))
  const others = [{ model: 'opus' }, { allowedTools: ['Read'] }, { maxTurns: 1 }, { systemPrompt: 'x' }]
  const keys = [{}, ...others, { workingDir: '/' }, { isUntrusted: true }].map(keyOf)
  expect(new Set(keys).size).toBe(keys.length)
})
