import { describe, expect, it } from 'vitest'
import type { AgentRequest } from '../../../src/backends/types.js'
import {
  createPrintingBackend,
  createStage,
  DELICATE_PROMPTS,
  recordDelicatePrompts,
  record,
  recordStart,
  runTurn,
  type Start,
} from '../fake-cli.js'
import { inWords, readCapture } from '../golden/captures.js'
import { recordingLog } from '../../kit/log.js'

const SESSION = '01a1e0fc-0f97-7400-8c79-14e24c555679'
const OTHER_SESSION = '00000000-0000-4000-8000-000000000000'

const FIXED = [
  '--skip-git-repo-check',
  ...['-c', 'check_for_update_on_startup=false'],
  ...['--disable', 'unbounded_connection_retries'],
]

describe('Codex is started', () => {
  it('with JSON lines, no questions asked, and the prompt on stdin', async () => {
    const stage = createStage()
    expect(await recordStart('codex', { prompt: 'hi' }, {}, stage)).toEqual({
      argv: [
        ...['exec', '--json', '--dangerously-bypass-approvals-and-sandbox', '--cd', stage.workingDir],
        ...FIXED,
        '-',
      ],
      stdin: 'hi',
      cwd: stage.workingDir,
      environment: { PATH: process.env['PATH'], HOME: stage.home, PWD: stage.workingDir },
      isMarked: true,
      files: {},
      isRemoved: true,
    })
  })

  it('with its own variables and none of the gateway', async () => {
    const own = { OPENAI_API_KEY: 'key', CODEX_HOME: '/c' }
    const others = { DISCORD_TOKEN: 't', AETHEEL_TOKEN: 't', ANTHROPIC_API_KEY: 't', IS_SANDBOX: '1', FOO: 't' }
    const stage = createStage()
    const { environment } = await recordStart('codex', {}, { environment: { ...own, ...others } }, stage)
    expect(environment).toEqual({ ...own, PATH: process.env['PATH'], HOME: stage.home, PWD: stage.workingDir })
  })

  it('with everything before the session, which it would refuse after it', async () => {
    const stage = createStage()
    const { argv } = await recordStart('codex', { sessionId: SESSION, model: 'gpt-5.5' }, {}, stage)
    expect(argv).toEqual([
      ...['exec', '--json', '--dangerously-bypass-approvals-and-sandbox', '--cd', stage.workingDir],
      ...['--model', 'gpt-5.5', ...FIXED, 'resume', SESSION, '-'],
    ])
  })

  it('with a prompt that is whole, whatever it looks like', async () => {
    expect(await recordDelicatePrompts('codex')).toEqual(DELICATE_PROMPTS)
  })

  it('without options it cannot honour, with one warning for each', async () => {
    const log = recordingLog()
    const { argv } = await recordStart('codex', { allowedTools: ['shell'], maxTurns: 3 }, { dependencies: { log } })
    expect({ argv: argv.slice(5), warnings: log.warnings }).toEqual({
      argv: [...FIXED, '-'],
      warnings: [
        ['backend.option-ignored', { backend: 'codex', option: 'maxTurns', value: 3 }],
        ['backend.option-ignored', { backend: 'codex', option: 'allowedTools', value: ['shell'] }],
      ],
    })
  })
})

describe('Codex is given the system prompt', () => {
  const systemPrompt = 'Be "brief".\n\\ $HOME `id` \'x\' é 🦆'
  const context = `<gateway_instructions>\n${systemPrompt}\n</gateway_instructions>`

  /** Starts Codex and runs its hook with this event. */
  async function startWith(event: object, request: Partial<AgentRequest> = {}): Promise<Start> {
    const options = { environment: { FAKE_HOOK_EVENT: JSON.stringify(event) } }
    return recordStart('codex', { systemPrompt, ...request }, options)
  }

  it('by a hook that trusts only itself and leaves nothing behind', async () => {
    const { argv, stdin, environment, files, isRemoved } = await recordStart('codex', { prompt: 'hi', systemPrompt })
    expect({
      argv: argv.slice(5 + FIXED.length),
      stdin,
      directory: environment['AETHEEL_INSTRUCTIONS'],
      isRemoved,
    }).toEqual({
      argv: [
        ...['--enable', 'hooks'],
        ...['-c', expect.stringMatching(/^hooks\.SessionStart=\[\{hooks=\[\{type="command",command=".+"/)],
        ...['-c', expect.stringMatching(/^hooks\.state=\{.*trusted_hash="sha256:[0-9a-f]{64}"\}\}$/)],
        '-',
      ],
      stdin: 'hi',
      directory: '<run>',
      isRemoved: true,
    })
    expect(JSON.parse(files['answer'] ?? '')).toEqual({
      hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: context },
    })
  })

  it('with the same arguments for any text, so that their hash is stable', async () => {
    const [one, two] = await Promise.all([
      recordStart('codex', { systemPrompt: 'One' }, {}, createStage()),
      recordStart('codex', { systemPrompt: 'Two' }, {}, createStage()),
    ])
    expect(one.argv.slice(5)).toEqual(two.argv.slice(5))
  })

  it('when a session starts', async () => {
    const { hookOutput = '' } = await startWith({ source: 'startup', transcript_path: null })
    expect(JSON.parse(hookOutput)).toEqual({
      hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: context },
    })
  })

  it.each<[what: string, transcript: string[], isGiven: boolean]>([
    ['not again when the last one it got is the same', ['<gateway_instructions>\nOld', context], false],
    ['when the last one it got is another', [context, '<gateway_instructions>\nOld\n</gateway_instructions>'], true],
    ['when it never got one', ['hello'], true],
    ['when the person only spoke of it', [systemPrompt], true],
  ])('on resume %s', async (_, texts, isGiven) => {
    const stage = createStage()
    const lines = texts.map((text) => JSON.stringify({ type: 'response_item', payload: { content: [{ text }] } }))
    const transcript = stage.write('rollout.jsonl', `${lines.join('\n')}\n`)
    const { hookOutput } = await startWith({ source: 'resume', transcript_path: transcript }, { sessionId: SESSION })
    expect(hookOutput !== '').toBe(isGiven)
  })

  it('on resume if its transcript cannot be read', async () => {
    const { hookOutput } = await startWith({ source: 'resume', transcript_path: '/nowhere' }, { sessionId: SESSION })
    expect(hookOutput).not.toBe('')
  })

  it.each<[what: string, options: object, notices: string[]]>([
    ['says nothing when the hook ran', { environment: { FAKE_HOOK_EVENT: '{"source":"startup"}' } }, []],
    ['tells when the hook never ran', {}, ['This version of Codex ignored the system prompt and used only its own.']],
  ])('and %s', async (_, options, notices) => {
    const { events } = await record('codex', { systemPrompt }, options)
    expect(events.flatMap((event) => (event.type === 'notice' ? [event.content] : []))).toEqual(notices)
  })
})

describe('Codex is not started', () => {
  it.each(['-', '--last', 'not-a-uuid', `${SESSION} `, `-${SESSION}`])(
    'for the session %j, which cannot be one of its own',
    async (sessionId) => {
      const { start, result } = await record('codex', { sessionId })
      const message = `${JSON.stringify(sessionId)} is not a valid session id for Codex.`
      expect({ start, result }).toEqual({
        start: undefined,
        result: { isError: true, durationMs: 0, failure: { reason: 'session_lost', message, report: message } },
      })
    },
  )

  it.each([
    ['letters', 'x', 1_048_577],
    ['characters outside the first plane', '🦆', 1_048_577],
  ])('for a prompt of too many %s', async (_, character, count) => {
    const { start, result } = await record('codex', { prompt: character.repeat(count) })
    const message = `The prompt is too long for Codex: ${count} of at most 1048576 characters.`
    expect({ isStarted: start !== undefined, failure: result.failure }).toEqual({
      isStarted: false,
      failure: { reason: 'refused', message, report: message },
    })
  })

  it('but accepts as many characters as it can take, whatever their size in bytes', async () => {
    const { stdin } = await recordStart('codex', { prompt: '🦆'.repeat(1_048_576) })
    expect(Buffer.byteLength(stdin)).toBe(4 * 1_048_576)
  })
})

describe('from the output of Codex', () => {
  async function see(lines: unknown[], request: Partial<AgentRequest> = {}) {
    const stdout = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const turn = await runTurn(createPrintingBackend('codex', { stdout }), request)
    return { events: inWords(turn.events, turn.result), result: turn.result }
  }

  const threadStarted = { type: 'thread.started', thread_id: SESSION }
  const message = (text: string) => ({ type: 'item.completed', item: { id: 'item_9', type: 'agent_message', text } })
  const completed = { type: 'turn.completed', usage: { input_tokens: 10, cached_input_tokens: 4, output_tokens: 3 } }

  const lost = {
    sessionId: undefined,
    failure: {
      reason: 'session_lost',
      message: `The agent could not find the session ${OTHER_SESSION}.`,
      report: `The agent could not find the session ${OTHER_SESSION}.`,
    },
  }

  it('another thread than the requested one is a failure', async () => {
    const { stdout } = readCapture('codex', 'resume-not-a-uuid-starts-new-thread.jsonl')
    const { result } = await runTurn(createPrintingBackend('codex', { stdout }), { sessionId: OTHER_SESSION })
    expect({ sessionId: result.sessionId, failure: result.failure }).toEqual(lost)
  })

  it('a message from another session than the requested one is a failure', async () => {
    const line = { type: 'message', role: 'assistant', content: 'Hello', session_id: SESSION }
    const { result } = await see([line], { sessionId: OTHER_SESSION })
    expect({ sessionId: result.sessionId, failure: result.failure }).toEqual(lost)
  })

  it('the requested thread is found however its id is spelled', async () => {
    const { result } = await see([threadStarted, message('Hello'), completed], { sessionId: SESSION.toUpperCase() })
    expect(result).toMatchObject({ isError: false, sessionId: SESSION, finalOutput: 'Hello' })
  })

  it('tools of every kind are shown with their input and result', async () => {
    const search = { id: 'item_0', type: 'web_search', query: 'ducks' }
    const call = { id: 'item_1', type: 'mcp_tool_call', server: 'tiny', tool: 'echo', arguments: { text: 'hi' } }
    const { events } = await see([
      threadStarted,
      { type: 'item.completed', item: search },
      { type: 'item.started', item: { ...call, result: null, error: null, status: 'in_progress' } },
      { type: 'item.updated', item: { ...call, status: 'in_progress' } },
      { type: 'item.completed', item: { ...call, result: { content: ['hi'] }, error: null, status: 'completed' } },
      message('Done'),
      completed,
    ])
    expect(events).toEqual([
      'started <session>',
      'tool_use #1 web_search {"query":"ducks"}',
      'tool_result #1 web_search ok ""',
      'tool_use #2 mcp_tool_call {"server":"tiny","tool":"echo","arguments":{"text":"hi"}}',
      'tool_result #2 mcp_tool_call ok "{\\"content\\":[\\"hi\\"]}"',
      'output "Done"',
      'complete',
    ])
  })

  it('a failed call of an MCP tool is shown with its error', async () => {
    const call = { id: 'item_1', type: 'mcp_tool_call', server: 'tiny', tool: 'boom', arguments: {} }
    const failed = { ...call, result: null, error: { message: 'It broke' }, status: 'failed' }
    const { events } = await see([{ type: 'item.completed', item: failed }, message('Done'), completed])
    expect(events[1]).toMatch(/^tool_result #1 mcp_tool_call failed .*It broke/)
  })

  it('a tool that still runs at the end is closed', async () => {
    const item = {
      id: 'item_0',
      type: 'command_execution',
      command: 'sleep 99',
      exit_code: null,
      status: 'in_progress',
    }
    const { events } = await see([threadStarted, { type: 'item.started', item }, message('Done'), completed])
    expect(events).toEqual([
      'started <session>',
      'tool_use #1 command_execution {"command":"sleep 99"}',
      'output "Done"',
      'tool_result #1 command_execution failed "The run ended before the tool did."',
      'complete',
    ])
  })

  it('a plan is nothing to show', async () => {
    const item = { id: 'item_0', type: 'todo_list', items: [{ text: 'a', completed: false }] }
    const { events } = await see([
      { type: 'item.started', item },
      { type: 'item.completed', item },
      message('Done'),
      completed,
    ])
    expect(events).toEqual(['output "Done"', 'complete'])
  })

  it('a successful retry is a notice', async () => {
    const retry = { type: 'error', message: 'Reconnecting... 2/5 (stream closed)' }
    const { events, result } = await see([threadStarted, retry, message('Hello'), completed])
    expect({ events, answer: result.finalOutput }).toEqual({
      events: ['started <session>', 'notice Reconnecting... 2/5 (stream closed)', 'output "Hello"', 'complete'],
      answer: 'Hello',
    })
  })

  it('an end without a message is an answer, and blank', async () => {
    expect((await see([threadStarted, completed])).result).toMatchObject({ isError: false, finalOutput: '' })
  })

  it('a message in parts is one answer', async () => {
    const line = { type: 'message', role: 'assistant', content: [{ text: 'Hel' }, { text: 'lo' }, {}] }
    expect((await see([line])).result.finalOutput).toBe('Hello')
  })
})
