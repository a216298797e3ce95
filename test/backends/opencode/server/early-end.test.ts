import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { until } from '../../../kit/waiting.js'
import { type Action, type Message, promptOf } from './fake-opencode.js'
import { ServerStage } from './stage.js'

const START: Action = { do: 'start' }
const STOP: Action = { do: 'step', reason: 'stop' }
const hello = promptOf(START, { do: 'say', texts: ['Hello'] }, STOP)

/** Anything that followed would have done so by then. */
const SOON_MS = 100

/** A server whose sessions become idle only when released. */
async function open(): Promise<{ stage: ServerStage; becomeIdle(): void; answers: Message[] }> {
  const stage = await ServerStage.open()
  let becomeIdle = () => {}
  stage.server.mayBecomeIdle = new Promise((resolve) => {
    becomeIdle = resolve
  })
  const answers: Message[] = []
  stage.server.answerOf = (message) => {
    answers.push(message)
    return message
  }
  return { stage, becomeIdle, answers }
}

it('is over with the answer to the prompt, before the session is idle', async () => {
  const { stage, becomeIdle } = await open()
  const { types, output, result } = await stage.see({ prompt: hello })
  becomeIdle()
  expect([types, output, result]).toMatchObject([
    'started output complete',
    'Hello',
    { isError: false, finalOutput: 'Hello', usage: { outputTokens: 12 } },
  ])
})

it('keeps the next prompt of the session waiting until it is idle', async () => {
  const { stage, becomeIdle } = await open()
  const backend = stage.backend()
  const sessionId = 'ses_known'
  await stage.see({ prompt: hello, sessionId }, { backend })
  const next = stage.see({ prompt: hello, sessionId }, { backend })
  await sleep(SOON_MS)
  const sentMeanwhile = stage.asked('POST', /message$/).length
  becomeIdle()
  expect([sentMeanwhile, (await next).types]).toEqual([1, 'started output complete'])
})

it('does not keep it waiting for ever', async () => {
  const { stage, becomeIdle } = await open()
  const backend = stage.backend()
  const sessionId = 'ses_known'
  await stage.see({ prompt: hello, sessionId }, { backend })
  const next = stage.see({ prompt: hello, sessionId }, { backend })
  await until(() => stage.asked('POST', /message$/).length === 2, 'the next prompt')
  becomeIdle()
  expect((await next).output).toEqual('Hello')
})

it.each<[what: string, change: (message: Message) => unknown]>([
  ['tools are to be called', ({ info, parts }) => ({ info: { ...info, finish: 'tool-calls' }, parts })],
  ['a tool was called', ({ info, parts }) => ({ info, parts: [...parts, { id: 'prt_tool', type: 'tool' }] })],
  ['it is a summary', ({ info, parts }) => ({ info: { ...info, summary: true }, parts })],
  ['it is an error', ({ info, parts }) => ({ info: { ...info, error: { name: 'UnknownError' } }, parts })],
  ['it is another message', ({ info, parts }) => ({ info: { ...info, id: 'msg_other' }, parts })],
  ['it is not complete', ({ info, parts }) => ({ info: { ...info, time: { created: info.time.created } }, parts })],
  ['it is no message', () => ({ info: null })],
  ['the connection breaks', () => undefined],
  ['the server breaks', () => new Error('Unexpected server error.')],
])('waits for the events when %s', async (_what, change) => {
  const { stage, becomeIdle } = await open()
  let isAnswered = false
  stage.server.answerOf = (message) => {
    isAnswered = true
    return change(structuredClone(message))
  }
  let isOver = false
  const turn = stage.see({ prompt: hello }).finally(() => {
    isOver = true
  })
  await until(() => isAnswered, 'the answer')
  await sleep(SOON_MS)
  const wasOver = isOver
  becomeIdle()
  const { types, result } = await turn
  expect([wasOver, types, result.finalOutput]).toEqual([false, 'started output complete', 'Hello'])
})

it('waits for the events when a tool has run', async () => {
  const { stage, becomeIdle, answers } = await open()
  const tool: Action[] = [
    { do: 'tool', id: 'one', command: 'ls' },
    { do: 'tool-end', id: 'one', output: '', isError: false },
    { do: 'step', reason: 'tool-calls' },
  ]
  let isOver = false
  const turn = stage.see({ prompt: promptOf(START, ...tool, { do: 'say', texts: ['Hello'] }, STOP) }).finally(() => {
    isOver = true
  })
  await until(() => answers.length === 1, 'the answer')
  await sleep(SOON_MS)
  const wasOver = isOver
  becomeIdle()
  expect([wasOver, (await turn).output]).toEqual([false, 'Hello'])
})

it('reports what the events have not reported yet', async () => {
  const { stage, becomeIdle } = await open()
  stage.server.answerOf = ({ info, parts }) => {
    const messageID = info.id
    const rest = parts.map((part) => (part['type'] === 'text' ? { ...part, text: 'Hello', time: { end: 1 } } : part))
    const step = { id: 'prt_step', messageID, type: 'step-finish', reason: 'stop', tokens: { input: 1, output: 7 } }
    return { info: { ...info, finish: 'stop' }, parts: [...rest, step] }
  }
  const prompt = promptOf(START, { do: 'say', texts: ['Hel'], isUnfinished: true })
  const { output, result } = await stage.see({ prompt })
  becomeIdle()
  expect([output, result]).toMatchObject(['Hello', { finalOutput: 'Hello', usage: { outputTokens: 7 } }])
})

it('says why there is no answer if the server breaks midway', async () => {
  const stage = await ServerStage.open()
  stage.server.answerOf = () => new Error('Unexpected server error.')
  const { result } = await stage.see({ prompt: promptOf(START) })
  expect(result.failure).toMatchObject({
    reason: 'no_result',
    message: 'OpenCode ended without an answer. Unexpected server error.',
  })
})

it('reports a session as lost that the server can no longer read', async () => {
  const stage = await ServerStage.open()
  stage.server.isBrokenFor = (path) => path.endsWith('/message')
  const { result } = await stage.see({ prompt: hello, sessionId: 'ses_known' })
  expect([result.failure, result.sessionId]).toMatchObject([
    { reason: 'session_lost', message: expect.stringContaining('can no longer read the session ses_known') },
    undefined,
  ])
})

it('keeps a session that the server can read, even if a prompt breaks it', async () => {
  const stage = await ServerStage.open()
  stage.server.isBrokenFor = (path, method) => path.endsWith('/message') && method === 'POST'
  const { result } = await stage.see({ prompt: hello, sessionId: 'ses_known' })
  expect([result.failure?.reason, result.sessionId]).toEqual(['exit', 'ses_known'])
})
