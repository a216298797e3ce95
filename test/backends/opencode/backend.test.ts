import { chmodSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { AgentRequest } from '../../../src/backends/types.js'
import {
  createFakeBackend,
  createPrintingBackend,
  createStage,
  DELICATE_PROMPTS,
  recordDelicatePrompts,
  type Options,
  record,
  recordStart,
  runTurn,
} from '../fake-cli.js'
import { inWords } from '../golden/captures.js'

const SESSION = 'ses_e1f1a9d60ffel6WX6OnCmK9A2b'

const FIXED = ['--thinking', '--auto', '--title', 'Aetheel']

describe('OpenCode is started', () => {
  it('with JSON events, no questions asked, and the prompt on stdin', async () => {
    const stage = createStage()
    expect(await recordStart('opencode', { prompt: 'hi' }, {}, stage)).toEqual({
      argv: ['run', '--format', 'json', ...FIXED, '--dir', stage.workingDir],
      stdin: 'hi',
      cwd: stage.workingDir,
      environment: {
        PATH: process.env['PATH'],
        HOME: stage.home,
        PWD: stage.workingDir,
        OPENCODE_CONFIG_CONTENT: '{}',
        OPENCODE_DISABLE_AUTOUPDATE: '1',
      },
      isMarked: true,
      files: {},
      isRemoved: true,
    })
  })

  it('with the variables of every provider and none of the gateway', async () => {
    const own = { OPENCODE_CONFIG: '/c', ANTHROPIC_API_KEY: 'a', OPENAI_API_KEY: 'o', AWS_PROFILE: 'p' }
    const others = { DISCORD_TOKEN: 't', OPENCODE_PASSWORD: 't', OPENCODE_URL: 'u', FOO: 't', PWD: '/elsewhere' }
    const stage = createStage()
    const { environment } = await recordStart('opencode', {}, { environment: { ...own, ...others } }, stage)
    expect(environment).toEqual({
      ...own,
      PATH: process.env['PATH'],
      HOME: stage.home,
      PWD: stage.workingDir,
      OPENCODE_CONFIG_CONTENT: '{}',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
    })
  })

  it('with the session and the model of the request', async () => {
    const stage = createStage()
    const { argv } = await recordStart('opencode', { sessionId: SESSION, model: 'mock/m1' }, {}, stage)
    expect(argv).toEqual([
      ...['run', '--format', 'json', '--model', 'mock/m1', '--session', SESSION, '--continue'],
      ...['--thinking', '--print-logs', '--log-level', 'ERROR', ...FIXED.slice(1), '--dir', stage.workingDir],
    ])
  })

  it('with the whole name of a model of which the request has the name alone, or not at all', async () => {
    const stage = createStage()
    const cli = stage.write(
      'opencode',
      `#!/bin/sh
if [ "$1" = models ]; then
  printf 'mock/m1\\nacme/gpt-4o\\nother/gpt-4o\\n'
else
  printf '{"type":"result","text":"%s"}\\n' "$5"
fi
`,
    )
    chmodSync(cli, 0o755)
    const backend = createFakeBackend('opencode', cli, stage)
    const run = async (request: Partial<AgentRequest>) => (await runTurn(backend, request)).result
    expect([
      (await run({ model: 'gpt-4o' })).finalOutput,
      (await run({ model: 'unlisted/gpt-4o' })).finalOutput,
      (await run({ model: 'gpt-4' })).failure,
    ]).toEqual([
      'acme/gpt-4o',
      'unlisted/gpt-4o',
      expect.objectContaining({ reason: 'model_unknown', message: expect.stringMatching(/"gpt-4".*acme\/gpt-4o/) }),
    ])
  })

  it('with a prompt that is whole, whatever it looks like', async () => {
    expect(await recordDelicatePrompts('opencode')).toEqual(DELICATE_PROMPTS)
  })
})

describe('OpenCode is given settings', () => {
  async function settingsFor(request: Partial<AgentRequest>, operator?: string) {
    const options: Options = operator === undefined ? {} : { environment: { OPENCODE_CONFIG_CONTENT: operator } }
    const { argv, environment, files } = await recordStart('opencode', request, options)
    const settings = JSON.parse(environment['OPENCODE_CONFIG_CONTENT'] ?? '') as unknown
    return { agent: argv[argv.indexOf('--agent') + 1], isAgentNamed: argv.includes('--agent'), settings, files }
  }

  it('with the system prompt among the instructions, in a file', async () => {
    const { isAgentNamed, settings, files } = await settingsFor({ systemPrompt: 'Be brief.' })
    expect({ isAgentNamed, settings, files }).toEqual({
      isAgentNamed: false,
      settings: { instructions: ['<run>/system-prompt.md'] },
      files: { 'system-prompt.md': 'Be brief.' },
    })
  })

  it('that override those of the operator, which may have comments', async () => {
    const operator = '{"instructions": ["/team.md"], /* ours */ "share": "disabled", "agent": {"mine": {"steps": 3}}}'
    const { settings } = await settingsFor({ systemPrompt: 'Be brief.', allowedTools: ['read'] }, operator)
    expect(settings).toEqual({
      instructions: ['/team.md', '<run>/system-prompt.md'],
      share: 'disabled',
      agent: {
        mine: { steps: 3 },
        aetheel: { mode: 'primary', permission: { '*': 'deny', external_directory: 'allow', read: 'allow' } },
      },
    })
  })

  it.each<[tools: string[], permission: object]>([
    [['read'], { '*': 'deny', external_directory: 'allow', read: 'allow' }],
    [['write', 'bash'], { '*': 'deny', external_directory: 'allow', edit: 'allow', bash: 'allow' }],
    [
      ['bash(git log*)', 'bash(git show*)'],
      { '*': 'deny', external_directory: 'allow', bash: { '*': 'deny', 'git log*': 'allow', 'git show*': 'allow' } },
    ],
    [['bash(git log*)', 'bash'], { '*': 'deny', external_directory: 'allow', bash: 'allow' }],
    [['bash', 'bash(git log*)'], { '*': 'deny', external_directory: 'allow', bash: 'allow' }],
  ])('with an agent that may use only %j, denials first', async (allowedTools, permission) => {
    const { agent, settings } = await settingsFor({ allowedTools })
    expect({ agent, settings: JSON.stringify(settings) }).toEqual({
      agent: 'aetheel',
      settings: JSON.stringify({ agent: { aetheel: { mode: 'primary', permission } } }),
    })
  })

  it('or is not started if those of the operator cannot be read', async () => {
    const { start, result } = await record('opencode', {}, { environment: { OPENCODE_CONFIG_CONTENT: '{bad' } })
    expect({ start, failure: result.failure }).toMatchObject({ failure: { reason: 'spawn' } })
  })
})

describe('OpenCode is not started', () => {
  it.each(['-', 'ses_', '--session', 'latest', `${SESSION} `, `-${SESSION}`, 'ses_a b', 'ses_ä'])(
    'for the session %j, which cannot be one of its own',
    async (sessionId) => {
      const { start, result } = await record('opencode', { sessionId })
      const message = `${JSON.stringify(sessionId)} is not a valid session id for OpenCode.`
      expect({ start, result }).toEqual({
        start: undefined,
        result: { isError: true, durationMs: 0, failure: { reason: 'session_lost', message, report: message } },
      })
    },
  )
})

describe('from the output of OpenCode', () => {
  async function see(
    lines: Array<{ type: string; part?: object; error?: object }>,
    request: Partial<AgentRequest> = {},
  ) {
    const stdout = lines.map((line) => `${JSON.stringify({ ...line, sessionID: SESSION })}\n`).join('')
    const turn = await runTurn(createPrintingBackend('opencode', { stdout }), request)
    return { events: inWords(turn.events, turn.result), result: turn.result }
  }

  const text = (content: string) => ({ type: 'text', part: { text: content } })
  const finish = (reason: string) => ({ type: 'step_finish', part: { reason } })
  const tool = (name: string, state: object) => ({ type: 'tool_use', part: { tool: name, callID: '1', state } })
  const error = (message: string) => ({ type: 'error', error: { name: 'APIError', data: { message } } })

  it('a turn that ended with an unanswerable question is a failure', async () => {
    const rejected = tool('bash', {
      status: 'error',
      input: { command: 'ls /' },
      error: 'The user rejected permission',
    })
    const { events, result } = await see([text('Let me look.'), rejected, finish('tool-calls')])
    expect({ events, failure: result.failure }).toEqual({
      events: [
        'started <session>',
        'output "Let me look."',
        'tool_use #1 bash {"command":"ls /"}',
        'tool_result #1 bash failed "The user rejected permission"',
        'error no_result',
        'complete',
      ],
      failure: {
        reason: 'no_result',
        message: 'OpenCode ended without an answer.',
        report: 'Failed to parse CLI output',
      },
    })
  })

  it('a denied tool is shown by its own name', async () => {
    const invalid = tool('invalid', {
      status: 'completed',
      input: { tool: 'webfetch', error: 'No.' },
      output: 'No such tool',
    })
    const { events } = await see([invalid, finish('tool-calls'), text('I may not.'), finish('stop')])
    expect(events).toEqual([
      'started <session>',
      'tool_use #1 webfetch {"tool":"webfetch","error":"No."}',
      'tool_result #1 webfetch failed "No such tool"',
      'output "I may not."',
      'complete',
    ])
  })

  it('only what was said after the last tool is the answer', async () => {
    const { result } = await see([text('Let me look.'), finish('tool-calls'), text('One'), text('Two'), finish('stop')])
    expect(result.finalOutput).toBe('One\n\nTwo')
  })

  it('an error counts, whatever comes after it', async () => {
    const { result } = await see([error('It broke'), text('Hello'), finish('stop')])
    expect(result.failure).toEqual({ reason: 'exit', message: 'It broke', report: 'It broke' })
  })

  it('an error without a message is reported by its name', async () => {
    expect((await see([{ type: 'error', error: { name: 'MessageAbortedError' } }])).result.failure?.message).toBe(
      'MessageAbortedError',
    )
  })

  describe('rounds of tools are counted', () => {
    it('and the run is ended when the limit is reached', async () => {
      const lines = [finish('tool-calls'), finish('tool-calls'), text('More'), finish('stop')]
      const { result } = await see(lines, { maxTurns: 2 })
      const message = 'Reached the maximum number of turns (2).'
      expect({ isError: result.isError, sessionId: result.sessionId, failure: result.failure }).toEqual({
        isError: true,
        sessionId: SESSION,
        failure: { reason: 'max_turns', message, report: message },
      })
    })

    it.each([3, 0])('and nothing happens within the limit of %i', async (maxTurns) => {
      const lines = [finish('tool-calls'), finish('tool-calls'), text('Done'), finish('stop')]
      expect((await see(lines, { maxTurns })).result).toMatchObject({ isError: false, finalOutput: 'Done' })
    })
  })
})
