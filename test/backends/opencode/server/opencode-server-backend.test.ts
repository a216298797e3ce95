import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CliBackend } from '../../../../src/backends/engine/cli-backend.js'
import { OpenCodeBackend } from '../../../../src/backends/opencode/backend.js'
import type { AgentEvent, AgentRequest, Steer } from '../../../../src/backends/types.js'
import { DELICATE_PROMPTS } from '../../fake-cli.js'
import { freePort } from '../../../kit/loopback.js'
import { until } from '../../../kit/waiting.js'
import { type Action, promptOf } from './fake-opencode.js'
import { ServerStage } from './stage.js'
import type { SeenRun } from '../../../kit/seen-run.js'

const START: Action = { do: 'start' }
const HELLO: Action[] = [
  { do: 'say', texts: ['Hello'] },
  { do: 'step', reason: 'stop' },
]
const hello = promptOf(START, ...HELLO)
const hang = promptOf(START, { do: 'say', texts: ['Working'] }, { do: 'hang' })
const RULE = { pattern: '*', action: 'allow' }
const ALL_DENIED = [
  { permission: '*', pattern: '*', action: 'deny' },
  { permission: 'external_directory', ...RULE },
]

describe('a turn', () => {
  it.each(Object.entries(DELICATE_PROMPTS))('brings the prompt as it is: %s', async (_name, prompt) => {
    const stage = await ServerStage.open()
    await stage.see({ prompt })
    const [asked] = stage.asked('POST', /message$/)
    expect(asked?.body['parts']).toEqual([{ type: 'text', id: expect.stringMatching(/^prt_\w+$/), text: prompt }])
  })

  it('names directory, title, model and system prompt', async () => {
    const stage = await ServerStage.open()
    await stage.see({ prompt: hello, systemPrompt: 'Be brief.', model: 'openrouter/some/model' })
    const [created] = stage.asked('POST', /^\/session$/)
    const [asked] = stage.asked('POST', /message$/)
    expect([created?.directory, created?.body['title'], asked?.body['model'], asked?.body['system']]).toEqual([
      stage.workingDir,
      'Aetheel',
      { providerID: 'openrouter', modelID: 'some/model' },
      'Be brief.',
    ])
  })

  it('says which model answers', async () => {
    const stage = await ServerStage.open()
    const { events } = await stage.see({ prompt: hello })
    expect(events[0]).toMatchObject({ type: 'started', sessionId: 'ses_1111111111111111', model: 'fake/model' })
  })

  it('costs two requests, one in an existing session, on a persistent connection', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const { result } = await stage.see({ prompt: hello }, { backend })
    await stage.see({ prompt: hello, sessionId: result.sessionId ?? '' }, { backend })
    expect(stage.server.received.map(({ method, path }) => `${method} ${path.replace(/ses_\d+/, ':id')}`)).toEqual([
      'GET /global/event',
      'POST /session',
      'POST /session/:id/message',
      'POST /session/:id/message',
    ])
  })

  it('ends once even if idle is reported twice, and the second report does not end the next turn', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const sessionId = 'ses_known'
    const late = promptOf({ do: 'idle' }, START, { do: 'idle' }, ...HELLO)
    const turns = [await stage.see({ prompt: hello, sessionId }, { backend })]
    turns.push(await stage.see({ prompt: late, sessionId }, { backend }))
    expect(turns.map(({ types, output }) => [types, output])).toEqual([
      ['started output complete', 'Hello'],
      ['started output complete', 'Hello'],
    ])
  })

  it('is ended by either of the two signs of idleness', async () => {
    const stage = await ServerStage.open()
    const signs: Action[] = [
      { do: 'raw', type: 'session.idle', properties: {} },
      { do: 'raw', type: 'session.status', properties: { status: { type: 'idle' } } },
    ]
    const answers = signs.map((sign) => stage.see({ prompt: promptOf(START, ...HELLO, sign, { do: 'hang' }) }))
    expect((await Promise.all(answers)).map(({ result }) => result.finalOutput)).toEqual(['Hello', 'Hello'])
  })

  it('takes a model that is tried again as a notice', async () => {
    const stage = await ServerStage.open()
    const retry = (attempt: number): Action => ({ do: 'retry', attempt, message: 'Overloaded' })
    const { notices, output } = await stage.see({ prompt: promptOf(START, retry(1), retry(1), retry(2), ...HELLO) })
    expect({ notices, output }).toEqual({
      notices: ['Overloaded (OpenCode is retrying, attempt 1)', 'Overloaded (OpenCode is retrying, attempt 2)'],
      output: 'Hello',
    })
  })

  it('reports an unknown kind of event once, and ignores known noise', async () => {
    const stage = await ServerStage.open()
    const raw = (type: string): Action => ({ do: 'raw', type, properties: {} })
    const strange = [raw('session.dreamt'), raw('session.dreamt'), raw('session.diff'), raw('session.next.prompted')]
    const { notices } = await stage.see({ prompt: promptOf(START, ...strange, ...HELLO) })
    expect(notices).toEqual(['The agent sent an unknown event: session.dreamt'])
  })

  it('goes to the one-shot backend with a command or in a pod', async () => {
    const stage = await ServerStage.open()
    const requests: AgentRequest[] = []
    const oneShot = {
      async *run(request: AgentRequest): AsyncGenerator<AgentEvent> {
        requests.push(request)
        yield { type: 'complete', timestamp: 0, result: { isError: false, finalOutput: '', durationMs: 0 } }
      },
    } as unknown as CliBackend
    const backend = stage.backend({}, {}, oneShot)
    const asked = [
      { prompt: 'a', command: { args: ['--agent', 'plan'] } },
      { prompt: 'b', pod: { name: 'c' } },
    ]
    for (const request of asked) await stage.see(request, { backend })
    expect([requests, stage.server.received]).toEqual([asked, []])
  })
})

describe('tools', () => {
  it('are all available except questions, even after a turn that was limited to some', async () => {
    const stage = await ServerStage.open()
    const { result } = await stage.see({ prompt: hello })
    const { sessionId = '' } = result
    const session = stage.server.sessions.get(sessionId)
    const free = [{ permission: 'question', pattern: '*', action: 'deny' }]
    const rules = [session?.permission]
    for (const allowedTools of [['read', 'write'], []]) {
      await stage.see({ prompt: hello, sessionId, allowedTools })
      rules.push(session?.permission)
    }
    const some = [...ALL_DENIED, { permission: 'read', ...RULE }, { permission: 'edit', ...RULE }]
    expect(rules).toEqual([free, some, free])
  })

  it('are sent only if the session may have other rules', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const sessionId = 'ses_known'
    const lists = [[], [], ['read'], ['read'], [], [], ['bash(ls)'], []]
    for (const allowedTools of lists) await stage.see({ prompt: hello, sessionId, allowedTools }, { backend })
    const free = { question: false }
    const some = { '*': false, external_directory: true, read: true }
    expect(stage.asked('POST', /message$/).map(({ body }) => body['tools'])).toEqual([
      ...[free, undefined, some, some, free, undefined],
      // Other rules, and what replaces them.
      ...[undefined, free],
    ])
  })

  it('are sent again after a turn that failed', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const failing = promptOf(START, { do: 'error', error: { name: 'UnknownError', data: { message: 'No' } } })
    for (const prompt of [failing, hello]) await stage.see({ prompt, sessionId: 'ses_known' }, { backend })
    expect(stage.asked('POST', /message$/).map(({ body }) => body['tools'])).toEqual([
      { question: false },
      { question: false },
    ])
  })

  it('are kept to certain calls by rules of the session, which are not added twice', async () => {
    const stage = await ServerStage.open()
    const allowedTools = ['bash(git log*)', 'bash(git diff*)']
    const { result } = await stage.see({ prompt: hello, allowedTools })
    const { sessionId = '' } = result
    const bash = (pattern: string, action = 'allow') => ({ permission: 'bash', pattern, action })
    const rules = [...ALL_DENIED, bash('*', 'deny'), bash('git log*'), bash('git diff*')]
    const free = { permission: 'question', pattern: '*', action: 'deny' }
    const seen = [stage.server.sessions.get(sessionId)?.permission]
    for (const tools of [allowedTools, [], allowedTools]) {
      await stage.see({ prompt: hello, sessionId, allowedTools: tools })
      seen.push(stage.server.sessions.get(sessionId)?.permission)
    }
    expect(seen).toEqual([rules, rules, [free], [free, ...rules]])
  })

  const ask = (permission: string, patterns: string[], inChild = false): Action => ({
    do: 'ask',
    permission,
    patterns,
    inChild,
  })

  it('that ask are allowed, even those of a sub-agent', async () => {
    const stage = await ServerStage.open()
    const asks = [ask('external_directory', ['/etc/*']), ask('bash', ['ls'], true)]
    const { output } = await stage.see({ prompt: promptOf(START, ...asks, ...HELLO) })
    expect([output, stage.server.answers]).toEqual(['Hello', ['once', 'once']])
  })

  it('that ask are refused when they are not among those allowed', async () => {
    const stage = await ServerStage.open()
    const asks = [ask('webfetch', ['https://a.example']), ask('bash', ['git log -1']), ask('bash', ['git push'])]
    const request = { prompt: promptOf(START, ...asks, ...HELLO), allowedTools: ['bash(git log*)'] }
    const { notices } = await stage.see(request)
    expect([stage.server.answers, notices]).toEqual([
      ['reject', 'once', 'reject'],
      [
        'The agent asked for webfetch (https://a.example), which is not among its allowed tools.',
        'The agent asked for bash (git push), which is not among its allowed tools.',
      ],
    ])
  })

  it.each([false, true])('that ask while no events come are answered afterwards (sub-agent: %s)', async (inChild) => {
    const stage = await ServerStage.open()
    const prompt = promptOf(START, { do: 'cut', untilBack: false }, ask('bash', ['ls'], inChild), ...HELLO)
    const { output } = await stage.see({ prompt })
    expect([output, stage.server.answers]).toEqual(['Hello', ['once']])
  })

  it.each([false, true])('that ask for a sub-agent of an earlier turn are answered (no events: %s)', async (isCut) => {
    const stage = await ServerStage.open()
    stage.server.addSession('ses_known')
    stage.server.addSession('ses_helper', 'ses_known')
    stage.server.addSession('ses_helper_of_helper', 'ses_helper')
    const cut: Action[] = isCut ? [{ do: 'cut', untilBack: false }] : []
    const asked: Action = { do: 'ask', permission: 'bash', patterns: ['ls'], inSession: 'ses_helper_of_helper' }
    const { output } = await stage.see({ prompt: promptOf(START, ...cut, asked, ...HELLO), sessionId: 'ses_known' })
    expect([output, stage.server.answers]).toEqual(['Hello', ['once']])
  })

  it('that ask are answered in a session that the tool of a sub-agent names', async () => {
    const stage = await ServerStage.open()
    stage.server.addSession('ses_adopted')
    const part = { id: 'prt_task', type: 'tool', tool: 'task', state: { metadata: { sessionId: 'ses_adopted' } } }
    const task: Action = { do: 'raw', type: 'message.part.updated', properties: { part } }
    const asked: Action = { do: 'ask', permission: 'bash', patterns: ['ls'], inSession: 'ses_adopted' }
    const { output } = await stage.see({ prompt: promptOf(START, task, asked, ...HELLO) })
    expect([output, stage.server.answers]).toEqual(['Hello', ['once']])
  })

  it('that ask in the session of somebody else are not answered', async () => {
    const stage = await ServerStage.open()
    stage.server.addSession('ses_foreign')
    const asked: Action = { do: 'ask', permission: 'bash', patterns: ['ls'], inSession: 'ses_foreign' }
    const controller = new AbortController()
    const seen = stage.see({ prompt: promptOf(START, asked) }, { signal: controller.signal })
    await until(() => stage.asked('GET', /ses_foreign$/).length > 0, 'the look at the session')
    controller.abort()
    await seen
    expect(stage.server.answers).toEqual([])
  })

  it('that ask are answered once more when the answer was not taken', async () => {
    const stage = await ServerStage.open()
    let failures = 2
    stage.server.isBrokenFor = (path) => path.endsWith('/reply') && (failures -= 1) >= 0
    const { output } = await stage.see({ prompt: promptOf(START, ask('bash', ['ls']), ...HELLO) })
    expect([output, stage.server.answers]).toEqual(['Hello', ['once']])
  })

  it('that ask in a way that nobody understands are refused, and nothing else breaks', async () => {
    const stage = await ServerStage.open()
    const raw = (type: string, properties: object): Action => ({ do: 'raw', type, properties })
    const strange = ['permission', 'question'].flatMap((kind) => [
      raw(`${kind}.asked`, {}),
      raw(`${kind}.asked`, { id: `${kind}_1`, permission: 7, patterns: 'ls', questions: [null, 7, { question: {} }] }),
      raw(`${kind}.asked`, { id: `${kind}_2`, patterns: [null], questions: null }),
    ])
    const { output } = await stage.see({ prompt: promptOf(START, ...strange, ...HELLO) })
    const replies = () => [...stage.asked('POST', /^\/permission/), ...stage.asked('POST', /^\/question/)]
    await until(() => replies().length === 4, 'all replies')
    expect([output, replies().map(({ path, body }) => [path, body])]).toEqual([
      'Hello',
      [
        ['/permission/permission_1/reply', { reply: 'reject' }],
        ['/permission/permission_2/reply', { reply: 'reject' }],
        ['/question/question_1/reject', {}],
        ['/question/question_2/reject', {}],
      ],
    ])
  })

  it.each([false, true])('that ask a person are told nobody is there (while no events come: %s)', async (isCut) => {
    const stage = await ServerStage.open()
    const cut: Action[] = isCut ? [{ do: 'cut', untilBack: false }] : []
    const { notices, result } = await stage.see({
      prompt: promptOf(START, ...cut, { do: 'question', question: 'Red or blue?' }),
    })
    const notice = 'The agent asked a question that nobody can answer here: Red or blue?'
    expect({ notices, failure: result.failure, answers: stage.server.answers }).toMatchObject({
      notices: [notice],
      failure: { reason: 'no_result', message: `OpenCode ended without an answer. ${notice}` },
      answers: ['reject'],
    })
  })
})

describe('after a gap', () => {
  it.each([/\/message$/, /^\/session\/status$/])('is read again until the server answers: %s', async (path) => {
    const stage = await ServerStage.open()
    let failures = 2
    stage.server.isBrokenFor = (asked, method) => method === 'GET' && path.test(asked) && (failures -= 1) >= 0
    const { output, result } = await stage.see({ prompt: promptOf(START, { do: 'cut', untilBack: false }, ...HELLO) })
    expect([output, result.isError]).toEqual(['Hello', false])
  })

  it('is read once more, since events may flow later than the server says', async () => {
    const stage = await ServerStage.open()
    const gap: Action[] = [{ do: 'mute' }, { do: 'cut', untilBack: true }, { do: 'await-look' }]
    const { output } = await stage.see({ prompt: promptOf(START, ...gap, ...HELLO) })
    expect(output).toEqual('Hello')
  })
})

describe('two prompts in one session', () => {
  it('are sent one after the other, in order', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const turns = ['one', 'two', 'three'].map((text) => {
      const prompt = promptOf(START, { do: 'say', texts: [text] }, { do: 'step', reason: 'stop' })
      return stage.see({ prompt, sessionId: 'ses_known' }, { backend })
    })
    const outputs = (await Promise.all(turns)).map(({ output }) => output)
    const ends = await Promise.all(turns.map(async (turn) => (await turn).events.at(-1)?.timestamp ?? 0))
    expect([outputs, ends.toSorted((a, b) => a - b)]).toEqual([['one', 'two', 'three'], ends])
  })

  it('are sent one after the other, even if the session is new', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const controller = new AbortController()
    let second: Promise<SeenRun> | undefined
    let sentMeanwhile = 0
    const onEvent = async (event: AgentEvent) => {
      if (event.type === 'started') {
        second = stage.see({ prompt: hello, sessionId: event.sessionId ?? '' }, { backend })
      } else if (event.type === 'output') {
        sentMeanwhile = stage.asked('POST', /message$/).length
        controller.abort()
      }
    }
    await stage.see({ prompt: hang }, { backend, signal: controller.signal, onEvent })
    expect([(await second)?.output, sentMeanwhile]).toEqual(['Hello', 1])
  })

  it('wait only as long as somebody wants the second', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const [first, second] = [new AbortController(), new AbortController()]
    const sessionId = 'ses_known'
    const working = stage.see({ prompt: hang, sessionId }, { backend, signal: first.signal })
    await until(() => stage.asked('POST', /message$/).length === 1, 'the first prompt')
    const waiting = stage.see({ prompt: hello, sessionId }, { backend, signal: second.signal })
    const third = stage.see({ prompt: hello, sessionId }, { backend })
    second.abort()
    const { result } = await waiting
    expect([result.failure?.reason, stage.asked('POST', /message$/).length]).toEqual(['cancelled', 1])
    first.abort()
    await working
    expect((await third).output).toEqual('Hello')
  })

  it('count the waiting of the second', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const controller = new AbortController()
    const sessionId = 'ses_known'
    const working = stage.see({ prompt: hang, sessionId }, { backend, signal: controller.signal })
    const { result } = await stage.see({ prompt: hello, sessionId, timeoutMs: 200 }, { backend })
    controller.abort()
    await working
    expect(result.failure).toMatchObject({ reason: 'timeout', message: 'The agent did not finish within 0.2 s.' })
  })
})

describe('a compaction', () => {
  it('is done with the model of the session, and costs what it did', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const { sessionId = '' } = (await stage.see({ prompt: hello }, { backend })).result
    const { types, result } = await stage.see({ prompt: '/compact', isCommand: true, sessionId }, { backend })
    const [asked] = stage.asked('POST', /summarize$/)
    const next = await stage.see({ prompt: hello, sessionId }, { backend })
    expect([types, result.finalOutput, result.usage?.inputTokens, asked?.body, next.output]).toEqual([
      'started complete',
      '',
      70,
      { providerID: 'fake', modelID: 'model' },
      'Hello',
    ])
  })

  it('of a session in which nothing was said is not asked for', async () => {
    const stage = await ServerStage.open()
    const { result } = await stage.see({ prompt: '/compact', isCommand: true, sessionId: 'ses_known' })
    expect([result.finalOutput, stage.asked('POST', /summarize$/)]).toEqual(['There is nothing to compact.', []])
  })

  it('fails with the reason why there is no summary', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const { sessionId = '' } = (await stage.see({ prompt: hello }, { backend })).result
    stage.server.summaryError = { name: 'APIError', data: { message: 'The key is not valid.', statusCode: 401 } }
    const { result } = await stage.see({ prompt: '/compact', isCommand: true, sessionId }, { backend })
    expect([result.failure?.reason, result.failure?.message]).toEqual(['auth', 'The key is not valid.'])
  })

  it('is stopped at once', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const controller = new AbortController()
    const { sessionId = '' } = (await stage.see({ prompt: hello }, { backend })).result
    stage.server.maySummarize = new Promise(() => {})
    const compacting = stage.see(
      { prompt: '/compact', isCommand: true, sessionId },
      { backend, signal: controller.signal },
    )
    await until(() => stage.asked('POST', /summarize$/).length === 1, 'the request')
    controller.abort()
    const { result } = await compacting
    const next = await stage.see({ prompt: hello, sessionId }, { backend })
    expect([result.failure?.reason, next.output]).toEqual(['cancelled', 'Hello'])
  })
})

describe('a turn that is ended', () => {
  it('is over when its tools are', async () => {
    const stage = await ServerStage.open()
    const controller = new AbortController()
    const prompt = promptOf(START, { do: 'tool', id: 'one', command: 'sleep 9' }, { do: 'hang' })
    const onEvent = ({ type }: AgentEvent) => type === 'tool_use' && controller.abort()
    const { types, result } = await stage.see({ prompt }, { signal: controller.signal, onEvent })
    const [session] = stage.server.sessions.values()
    expect([types, result.failure?.reason, session?.abort, stage.asked('POST', /abort$/).length]).toEqual([
      'started tool_use tool_result error complete',
      'cancelled',
      undefined,
      1,
    ])
  })

  it('does not begin later, and the next one in its session waits for that', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const { server } = stage
    const controller = new AbortController()
    let takePrompts = () => {}
    server.mayTakePrompts = new Promise((resolve) => {
      takePrompts = resolve
    })
    const sessionId = 'ses_known'
    const cancelled = stage.see({ prompt: hang, sessionId }, { backend, signal: controller.signal })
    await until(() => stage.asked('POST', /message$/).length === 1, 'the prompt')
    controller.abort()
    const { result } = await cancelled
    const next = stage.see({ prompt: hello, sessionId }, { backend })
    takePrompts()
    const { output } = await next
    expect([result.failure?.reason, output, server.sessions.get(sessionId)?.abort]).toEqual([
      'cancelled',
      'Hello',
      undefined,
    ])
  })

  it('by somebody else on the server was cancelled', async () => {
    const stage = await ServerStage.open()
    const onEvent = ({ type }: AgentEvent) => {
      if (type === 'output') void stage.server.sessions.get('ses_1111111111111111')?.abort?.()
    }
    const { result } = await stage.see({ prompt: hang }, { onEvent })
    expect(result.failure).toMatchObject({ reason: 'cancelled', message: 'The turn was aborted on the server.' })
  })
})

describe('a failure', () => {
  const failing = async (...actions: Action[]) => {
    const stage = await ServerStage.open()
    return (await stage.see({ prompt: promptOf(...actions) })).result
  }
  const error = (name: string, data: object): Action => ({ do: 'error', error: { name, data } })

  it('is the first one reported, in the words of the model server', async () => {
    const trace = error('UnknownError', { message: 'ProviderModelNotFoundError: …\n  at x' })
    const { failure } = await failing(START, error('UnknownError', { message: 'Model not found: a/b.' }), trace)
    const words = 'Model not found: a/b.'
    expect(failure).toEqual({ reason: 'model_unknown', message: words, report: words })
  })

  it.each([
    [401, 'auth'],
    [429, 'rate_limit'],
    [500, 'exit'],
  ])('has a reason by its status: %s', async (statusCode, reason) => {
    const { failure } = await failing(START, error('APIError', { message: 'No', statusCode }))
    expect(failure).toMatchObject({ reason, message: 'No' })
  })

  it('before the turn has begun ends it, too', async () => {
    const stage = await ServerStage.open()
    stage.server.refusal = { name: 'UnknownError', data: { message: 'Agent not found: "x".' } }
    const { result } = await stage.see({ prompt: hello })
    expect(result.failure).toMatchObject({ reason: 'exit', message: 'Agent not found: "x".' })
  })

  it('is a password that is wrong, and what to set', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend({ password: 'guessed' })
    const { result, types } = await stage.see({ prompt: hello }, { backend })
    const { url } = stage.server.endpoint
    const message = `The OpenCode server at ${url} rejected the user name or password (401). Set OPENCODE_USERNAME and OPENCODE_PASSWORD to the values it was started with.`
    expect([result.failure, types, await backend.probe(), await backend.validate()]).toEqual([
      { reason: 'spawn', message, report: message, isLasting: true },
      'error complete',
      { isFound: false, path: stage.server.endpoint.url, problems: [message] },
      false,
    ])
  })

  it('is a server that is not there', async () => {
    const stage = await ServerStage.open()
    const url = `http://127.0.0.1:${await freePort()}`
    const { result } = await stage.see({ prompt: hello }, { backend: stage.backend({ url }) })
    const message = `The OpenCode server at ${url} cannot be reached (ECONNREFUSED). Start it with "opencode serve", or set OPENCODE_URL to its address.`
    expect(result.failure).toEqual({ reason: 'spawn', message, report: message })
  })

  it('is a server that takes connections and never answers, within the time of the turn', async () => {
    const stage = await ServerStage.open()
    const paths = ['/global/event', '/session', '/session/ses_1111111111111111/message']
    for (const path of paths) {
      stage.server.isDeafTo = (asked) => asked === path
      const { result } = await stage.see({ prompt: hello, timeoutMs: 300 })
      expect(result.failure).toMatchObject({ reason: 'timeout', message: 'The agent did not finish within 0.3 s.' })
    }
  })

  it('is a server that does not answer, which does not count as a turn that took too long', async () => {
    const stage = await ServerStage.open()
    stage.server.isDeafTo = (path) => path === '/global/event'
    const { url } = stage.server.endpoint
    const endpoint = { advice: 'The next turn starts another one.' }
    const { result } = await stage.see({ prompt: hello }, { backend: stage.backend(endpoint) })
    const message = `The OpenCode server at ${url} accepts connections but does not answer (GET /global/event). ${endpoint.advice}`
    expect(result.failure).toEqual({ reason: 'spawn', message, report: message })
  })

  it('is a server that is gone for good when the next turn comes: that one has not begun', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    await stage.see({ prompt: hello }, { backend })
    await stage.server.close()
    const { result } = await stage.see({ prompt: hello }, { backend })
    expect(result.failure).toMatchObject({ reason: 'spawn', message: expect.stringMatching(/cannot be reached/) })
  })

  it('is an address where something else answers, which keeps the session', async () => {
    const stage = await ServerStage.open()
    const url = `${stage.server.endpoint.url}/elsewhere`
    const { result } = await stage.see({ prompt: hello, sessionId: 'ses_known' }, { backend: stage.backend({ url }) })
    expect(result.failure).toMatchObject({
      reason: 'exit',
      message: expect.stringContaining('is not an OpenCode server'),
    })
  })

  it('is a server that goes away during the turn', async () => {
    const stage = await ServerStage.open()
    const { url } = stage.server.endpoint
    const prompt = promptOf(START, { do: 'say', texts: ['Working'] }, { do: 'quit' })
    const { result, types } = await stage.see({ prompt })
    expect([result.failure, types]).toMatchObject([
      {
        reason: 'exit',
        message: `The OpenCode server at ${url} went away during the turn. Check its log, or restart it.`,
      },
      'started output error complete',
    ])
  })

  it('is a turn that the server has forgotten', async () => {
    const stage = await ServerStage.open()
    const prompt = promptOf(START, { do: 'say', texts: ['Working'] }, { do: 'forget' }, { do: 'hang' })
    const { result } = await stage.see({ prompt })
    expect(result.failure).toMatchObject({ reason: 'exit', message: expect.stringMatching(/lost the turn/) })
  })

  it('is what a server started by somebody else cannot do', async () => {
    const stage = await ServerStage.open()
    const { url } = stage.server.endpoint
    const advice = 'Set OPENCODE_MANAGED=true, or OPENCODE_ENABLED=false for one process per turn.'
    const asked: Array<Partial<AgentRequest>> = [
      { isUntrusted: true },
      { environment: { TOKEN: 'x' } },
      { secretFiles: [{ variable: 'KEY', content: 'x' }] },
    ]
    const failures = []
    for (const one of asked) failures.push((await stage.see({ prompt: hello, ...one })).result.failure)
    const credentials = `The OpenCode server at ${url} cannot be given credentials for one turn. ${advice}`
    expect(failures.map((failure) => [failure?.reason, failure?.message])).toEqual([
      ['refused', `The OpenCode server at ${url} cannot be restricted for an untrusted project. ${advice}`],
      ['refused', credentials],
      ['refused', credentials],
    ])
  })
})

describe('the backend', () => {
  it('can do everything a request asks for', async () => {
    const stage = await ServerStage.open()
    const config = { cliPath: '', workingDir: '', queryTimeoutMs: 1, allowedTools: [], maxTurns: 25 }
    expect(stage.backend({}, {}, new OpenCodeBackend(config)).capabilities()).toEqual({
      provider: 'opencode',
      supportsSessionContinuation: true,
      supportsModelSelection: true,
      supportsToolControl: true,
      supportsMaxTurns: true,
      supportsStreaming: true,
      supportsCommands: false,
      supportsCompact: true,
      remembersPausedTurns: true,
      supportedModels: [],
      maxPromptLength: 0,
    })
  })

  it('knows the version of its server, and not how that is logged in', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    const { url } = stage.server.endpoint
    expect([await backend.probe(), await backend.validate()]).toEqual([
      {
        isFound: true,
        path: url,
        version: '1.18.33',
        problems: [],
        mode: 'live',
        login: { state: 'unknown', why: `The server at ${url} has its own logins.`, fix: 'opencode auth login' },
      },
      true,
    ])
  })

  it('hides the password in whatever the server says', async () => {
    const stage = await ServerStage.open()
    const { password } = stage.server.endpoint
    stage.server.problem = `It was ${password}`
    const { result } = await stage.see({ prompt: hello })
    expect(result.failure).toMatchObject({ reason: 'exit', message: 'It was [secret]' })
  })

  it('leaves no connection when it is stopped', async () => {
    const stage = await ServerStage.open()
    const backend = stage.backend()
    await stage.see({ prompt: hello }, { backend })
    const before = stage.server.listeners
    await backend.stop()
    await until(() => stage.server.listeners === 0, 'the end of the connection')
    expect(before).toEqual(1)
  })
})

describe('an agent that gets more input while it works', () => {
  /** Works until the file `go` is there. */
  const untilGo = [
    'set -e',
    `echo '${JSON.stringify(START)}'`,
    `echo '${JSON.stringify({ do: 'say', texts: ['Working'] })}'`,
    'while [ ! -e go ]; do sleep 0.02; done',
    `echo '${JSON.stringify({ do: 'step', reason: 'stop' })}'`,
    '',
  ].join('\n')

  async function tell(stage: ServerStage, text: string) {
    let steer: Steer | undefined
    const taken: Array<boolean | undefined> = []
    const onEvent = async ({ type }: AgentEvent): Promise<void> => {
      if (type !== 'output' || taken.length > 0) return
      taken.push(await steer?.(text))
      writeFileSync(join(stage.workingDir, 'go'), '')
    }
    const onSteerable = (given: Steer): void => {
      steer = given
    }
    const { result } = await stage.see({ prompt: untilGo, onSteerable, systemPrompt: 'Be brief.' }, { onEvent })
    return { result, taken, late: await steer?.('too late') }
  }

  it('answers that, too, before the turn is over, even if it was idle in between', async () => {
    const stage = await ServerStage.open()
    const { result, taken, late } = await tell(stage, hello)
    const asked = stage.asked('POST', /(message|prompt_async)$/)
    expect([result.finalOutput, result.usage?.inputTokens, taken, late]).toEqual([
      'Working\n\nHello',
      140,
      [true],
      false,
    ])
    expect(asked.map(({ body }) => body['system'])).toEqual(['Be brief.', 'Be brief.'])
  })

  it('continues without it if the server refuses it', async () => {
    const stage = await ServerStage.open()
    const asked = (): number => stage.asked('POST', /prompt_async$/).length
    stage.server.isBrokenFor = (path) => path.endsWith('prompt_async')
    const { result, taken } = await tell(stage, hello)
    expect([result.finalOutput, taken, asked()]).toEqual(['Working', [false], 1])
  })
})
