import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createPrintingBackend,
  createStage,
  DELICATE_PROMPTS,
  recordDelicatePrompts,
  record,
  recordStart,
  runTurn,
} from '../fake-cli.js'
import { inWords } from '../golden/captures.js'

const SESSION = 'db688cd7-e787-4602-b893-06e158e20212'

const OWN_SETTINGS = {
  maxAttempts: 3,
  enableAutoUpdate: false,
  enableAutoUpdateNotification: false,
  sessionRetention: { enabled: false },
}
const FIXED = ['--output-format', 'stream-json', '--approval-mode', 'yolo']

describe('Gemini CLI is started', () => {
  it('with the streaming format, no questions asked, a home of its own, and the prompt on stdin', async () => {
    const stage = createStage()
    const { files, ...start } = await recordStart('gemini', { prompt: 'hi' }, {}, stage)
    expect(start).toEqual({
      argv: FIXED,
      stdin: 'hi',
      cwd: stage.workingDir,
      environment: {
        PATH: process.env['PATH'],
        HOME: stage.home,
        PWD: stage.workingDir,
        GEMINI_CLI_HOME: '<run>',
        GEMINI_CLI_NO_RELAUNCH: 'true',
        GEMINI_CLI_TRUST_WORKSPACE: 'true',
        TMPDIR: '<run>',
      },
      isMarked: true,
      isRemoved: true,
    })
    expect({ ...files, '.gemini/settings.json': JSON.parse(files['.gemini/settings.json'] ?? '') as unknown }).toEqual({
      '.gemini/settings.json': {
        general: OWN_SETTINGS,
        model: { maxSessionTurns: 25 },
      },
      '.gemini/tmp': `-> ${stage.home}/.gemini/tmp`,
      '.gemini/history': `-> ${stage.home}/.gemini/history`,
    })
  })

  it('with its own variables and none of the gateway', async () => {
    const own = { GEMINI_API_KEY: 'key', GOOGLE_CLOUD_PROJECT: 'p' }
    const others = {
      DISCORD_TOKEN: 't',
      ANTHROPIC_API_KEY: 't',
      FOO: 't',
      GEMINI_CLI_TRUST_WORKSPACE: 'false',
      TMPDIR: '/x',
    }
    const stage = createStage()
    const { environment } = await recordStart('gemini', {}, { environment: { ...own, ...others } }, stage)
    expect(environment).toEqual({
      ...own,
      PATH: process.env['PATH'],
      HOME: stage.home,
      PWD: stage.workingDir,
      GEMINI_CLI_HOME: '<run>',
      GEMINI_CLI_NO_RELAUNCH: 'true',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      TMPDIR: '<run>',
    })
  })

  it('with the session and the model of the request', async () => {
    const { argv } = await recordStart('gemini', { sessionId: SESSION, model: 'gemini-2.5-flash' })
    expect(argv).toEqual([...FIXED, '--model', 'gemini-2.5-flash', '--resume', SESSION])
  })

  it('with a policy that allows only the listed tools', async () => {
    const { argv, files } = await recordStart('gemini', { allowedTools: ['read_file', 'run_shell_command(git log)'] })
    expect({ argv: argv.slice(FIXED.length), policy: files['policy.toml'] }).toEqual({
      argv: ['--admin-policy', '<run>/policy.toml'],
      policy: `[[rule]]
toolName = "*"
decision = "deny"
priority = 900

[[rule]]
toolName = "read_file"
decision = "allow"
priority = 950
allowRedirection = true

[[rule]]
toolName = "run_shell_command"
decision = "allow"
priority = 950
allowRedirection = true
commandPrefix = "git log"

`,
    })
  })

  it.each([
    [7, { maxSessionTurns: 7 }],
    [0, undefined],
  ])('with the limit of %i turns in its settings', async (maxTurns, model) => {
    const { files } = await recordStart('gemini', { maxTurns })
    const settings = JSON.parse(files['.gemini/settings.json'] ?? '') as { model?: unknown }
    expect(settings.model).toEqual(model)
  })

  it('with the system prompt in its memory, its imports switched off', async () => {
    const systemPrompt = '@note.txt and @./x\n@/etc/hostname, me@example.com, @ 1 ${AvailableTools}'
    const { stdin, files } = await recordStart('gemini', { prompt: 'hi', systemPrompt })
    expect({ stdin, memory: files['.gemini/GEMINI.md'] }).toEqual({
      stdin: 'hi',
      memory: '\\@note.txt and \\@./x\n\\@/etc/hostname, me@example.com, @ 1 ${AvailableTools}',
    })
  })

  it('with a prompt that is whole, whatever it looks like', async () => {
    expect(await recordDelicatePrompts('gemini')).toEqual({
      ...DELICATE_PROMPTS,
      'a command': ' /help',
      'a path': ' /etc/hosts is a file',
      // Each `@` without a backslash would be looked up as a file, even inside a word.
      'a file': String.raw`\@/etc/hostname`,
      'files among words': String.raw`see \@note.txt, (\@a) or me\@example.com`,
    })
  })
})

describe('of what the operator has for Gemini CLI', () => {
  function createHome(files: Record<string, string>) {
    const stage = createStage()
    mkdirSync(join(stage.home, '.gemini'))
    for (const [name, content] of Object.entries(files)) writeFileSync(join(stage.home, '.gemini', name), content)
    return stage
  }

  it("everything is there for the run, the operator's settings and memory first", async () => {
    const stage = createHome({
      'settings.json': `{
        // The key of the team
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"maxAttempts": 10, "vimMode": true},
      }`,
      'GEMINI.md': 'Speak German. @style.md',
      'oauth_creds.json': '{}',
    })
    const { files } = await recordStart('gemini', { systemPrompt: 'Be brief.' }, {}, stage)
    expect({ ...files, '.gemini/settings.json': JSON.parse(files['.gemini/settings.json'] ?? '') as unknown }).toEqual({
      '.gemini/settings.json': {
        security: { auth: { selectedType: 'gemini-api-key' } },
        general: { ...OWN_SETTINGS, vimMode: true },
        model: { maxSessionTurns: 25 },
      },
      '.gemini/GEMINI.md': 'Speak German. @style.md\n\nBe brief.',
      '.gemini/oauth_creds.json': `-> ${stage.home}/.gemini/oauth_creds.json`,
      '.gemini/tmp': `-> ${stage.home}/.gemini/tmp`,
      '.gemini/history': `-> ${stage.home}/.gemini/history`,
    })
  })

  it('nothing is changed or removed', async () => {
    const stage = createHome({ 'settings.json': '{}', 'GEMINI.md': 'Speak German.', 'oauth_creds.json': '{}' })
    await recordStart('gemini', { systemPrompt: 'Be brief.' }, {}, stage)
    expect(readdirSync(join(stage.home, '.gemini')).toSorted()).toEqual([
      ...['GEMINI.md', 'history', 'oauth_creds.json', 'settings.json', 'tmp'],
    ])
  })

  it('the configured home is used', async () => {
    const stage = createStage()
    const named = join(stage.home, 'named')
    await recordStart('gemini', {}, { environment: { GEMINI_CLI_HOME: named } }, stage)
    expect([existsSync(join(named, '.gemini', 'tmp')), existsSync(join(stage.home, '.gemini'))]).toEqual([true, false])
  })

  it.each(['{', '[]', 'null'])(
    'settings that cannot be read, such as %s, are a failure that names them',
    async (text) => {
      const stage = createHome({ 'settings.json': text })
      const { start, result } = await record('gemini', {}, {}, stage)
      expect({ start, failure: result.failure }).toMatchObject({
        failure: { reason: 'spawn', message: expect.stringContaining(join(stage.home, '.gemini', 'settings.json')) },
      })
    },
  )
})

describe('Gemini CLI is not started', () => {
  it.each(['-', 'latest', '1', `${SESSION} `, `-${SESSION}`])(
    'for the session %j, which cannot be one of its own',
    async (sessionId) => {
      const { start, result } = await record('gemini', { sessionId })
      const message = `${JSON.stringify(sessionId)} is not a valid session id for Gemini.`
      expect({ start, result }).toEqual({
        start: undefined,
        result: { isError: true, durationMs: 0, failure: { reason: 'session_lost', message, report: message } },
      })
    },
  )

  it.each([
    ['in letters', 'x'.repeat(8_388_609), 8_388_609],
    ['in bytes', 'é'.repeat(4_194_305), 8_388_610],
    ['with the escapes it needs', '@'.repeat(4_194_305), 8_388_610],
  ])('for a prompt that is too long %s', async (_, prompt, bytes) => {
    const { start, result } = await record('gemini', { prompt })
    const message = `The prompt is too long for Gemini: ${bytes} of at most 8388608 bytes.`
    expect({ isStarted: start !== undefined, failure: result.failure }).toEqual({
      isStarted: false,
      failure: { reason: 'refused', message, report: message },
    })
  })
})

describe('from the output of Gemini CLI', () => {
  async function see(...lines: Array<object | string>) {
    const stdout = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')
    const turn = await runTurn(createPrintingBackend('gemini', { stdout }))
    return { events: inWords(turn.events, turn.result), result: turn.result }
  }

  const init = { type: 'init', session_id: SESSION, model: 'auto' }
  const text = (content: string) => ({ type: 'message', role: 'assistant', content, delta: true })
  const success = { type: 'result', status: 'success', stats: {} }

  it('a line of text in between is a notice', async () => {
    const { events } = await see(init, 'Memory is currently empty.', text('Hello'), success)
    expect(events).toEqual([
      'started <session> auto',
      'notice Memory is currently empty.',
      'output "Hello"',
      'complete',
    ])
  })

  it('an empty answer of the model is reported with the error before it', async () => {
    const error = { type: 'error', severity: 'error', message: 'The model returned an empty response.' }
    expect((await see(init, error, { type: 'result', status: 'error', stats: {} })).result.failure).toEqual({
      reason: 'exit',
      message: 'The model returned an empty response.',
      report: 'The model returned an empty response.',
    })
  })

  it('an answer without its result is none, whatever the exit code', async () => {
    expect((await see(init, text('Hello'))).result.failure).toEqual({
      reason: 'no_result',
      message: 'Gemini ended without an answer.',
      report: 'Failed to parse CLI output',
    })
  })

  it('only what was said after the last tool is the answer', async () => {
    const tool = { type: 'tool_use', tool_name: 'read_file', tool_id: '1', parameters: { path: 'a' } }
    const refused = {
      type: 'tool_result',
      tool_id: '1',
      status: 'error',
      error: { type: 'policy_violation', message: 'No.' },
    }
    const { events, result } = await see(
      init,
      text('Let me look. '),
      tool,
      refused,
      text('I may '),
      text('not.'),
      success,
    )
    expect({ events, answer: result.finalOutput }).toEqual({
      events: [
        'started <session> auto',
        'output "Let me look. "',
        'tool_use #1 read_file {"path":"a"}',
        'tool_result #1 read_file failed "No."',
        'output "\\n\\nI may not."',
        'complete',
      ],
      answer: 'I may not.',
    })
  })

  it('an error as one object is the failure', async () => {
    const whole = {
      session_id: SESSION,
      error: { type: 'FatalTurnLimitedError', message: 'Too many turns.', code: 53 },
    }
    const { sessionId, failure } = (await see(whole)).result
    expect({ sessionId, failure }).toEqual({
      sessionId: SESSION,
      failure: { reason: 'max_turns', message: 'Too many turns.', report: 'Too many turns.' },
    })
  })
})
