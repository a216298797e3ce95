import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
} from '../fake-cli.js'
import { inWords } from '../golden/captures.js'

const SESSION = '01a1e0f0-9fc2-706a-8db2-85fdf6bf24c6'
const OTHER_SESSION = '00000000-0000-4000-8000-000000000000'

describe('Pi is started', () => {
  it('in its JSON mode with the prompt on stdin', async () => {
    const stage = createStage()
    expect(await recordStart('pi', { prompt: 'hi' }, {}, stage)).toEqual({
      argv: ['-p', '--mode', 'json'],
      stdin: 'hi',
      cwd: stage.workingDir,
      environment: { PATH: process.env['PATH'], HOME: stage.home, PWD: stage.workingDir, PI_OFFLINE: '1' },
      isMarked: true,
      files: {},
      isRemoved: true,
    })
  })

  it('with the variables of every provider and none of the gateway', async () => {
    const own = {
      PI_OFFLINE: '0',
      ANTHROPIC_API_KEY: 'a',
      OPENAI_API_KEY: 'o',
      AWS_PROFILE: 'p',
      OPENCODE_API_KEY: 'k',
    }
    const others = { DISCORD_TOKEN: 't', AETHEEL_TOKEN: 't', OPENCODE_CONFIG: 'c', GITHUB_TOKEN: 't', FOO: 't' }
    const stage = createStage()
    const { environment } = await recordStart('pi', {}, { environment: { ...own, ...others } }, stage)
    expect(environment).toEqual({ ...own, PATH: process.env['PATH'], HOME: stage.home, PWD: stage.workingDir })
  })

  it('with the session, the model and the tools of the request', async () => {
    const request = { sessionId: SESSION, model: 'anthropic/claude-sonnet-4-5:high', allowedTools: ['read', 'grep'] }
    const { argv } = await recordStart('pi', request)
    expect(argv).toEqual([
      ...['-p', '--mode', 'json', '--model', 'anthropic/claude-sonnet-4-5:high'],
      ...['--tools', 'read,grep', '--session', SESSION],
    ])
  })

  it('with the system prompt in a file that is gone afterwards', async () => {
    const { argv, stdin, files, isRemoved } = await recordStart('pi', { prompt: 'hi', systemPrompt: 'Be brief.' })
    expect({ file: argv.slice(3), stdin, files, isRemoved }).toEqual({
      file: ['--append-system-prompt', '<run>/system-prompt.md'],
      stdin: 'hi',
      files: { 'system-prompt.md': 'Be brief.' },
      isRemoved: true,
    })
  })

  it.each([
    ['in his home', (home: string) => join(home, '.pi', 'agent'), undefined],
    ['elsewhere', (home: string) => join(home, 'elsewhere'), 'PI_CODING_AGENT_DIR'],
  ])("with the operator's own additions %s before ours", async (_, directoryIn, variable) => {
    const stage = createStage()
    const directory = directoryIn(stage.home)
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'APPEND_SYSTEM.md'), 'Speak German.')
    const options = { environment: variable === undefined ? {} : { [variable]: directory } }
    const { argv } = await recordStart('pi', { systemPrompt: 'Be brief.' }, options, stage)
    expect(argv.slice(3)).toEqual([
      ...['--append-system-prompt', join(directory, 'APPEND_SYSTEM.md')],
      ...['--append-system-prompt', '<run>/system-prompt.md'],
    ])
  })

  it('with a prompt that is whole, whatever it looks like', async () => {
    expect(await recordDelicatePrompts('pi')).toEqual({
      ...DELICATE_PROMPTS,
      // Pi trims its input, so a space before the slash would be lost.
      'a command': '\u200B/help',
      'a command after a blank': '\u200B /help',
      'a path': '\u200B/etc/hosts is a file',
    })
  })
})

describe('Pi is not started', () => {
  it('for some calls of a tool, which it cannot be restricted to', async () => {
    const { start, result } = await record('pi', { allowedTools: ['read', 'read(x,bash,y)'] })
    const message =
      'Pi cannot be restricted to some calls of a tool: read(x,bash,y). Allow the whole tool, or leave it out.'
    expect({ start, failure: result.failure }).toEqual({
      start: undefined,
      failure: { reason: 'refused', message, report: message },
    })
  })

  it.each(['-', '-r', 'latest', '/tmp/session.jsonl', SESSION.slice(0, 8), `-${SESSION}`])(
    'for the session %j, which cannot be one of its own',
    async (sessionId) => {
      const { start, result } = await record('pi', { sessionId })
      const message = `${JSON.stringify(sessionId)} is not a valid session id for Pi.`
      expect({ start, result }).toEqual({
        start: undefined,
        result: { isError: true, durationMs: 0, failure: { reason: 'session_lost', message, report: message } },
      })
    },
  )
})

describe('from the output of Pi', () => {
  async function see(lines: unknown[], request: Partial<AgentRequest> = {}) {
    const stdout = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const turn = await runTurn(createPrintingBackend('pi', { stdout }), request)
    return { events: inWords(turn.events, turn.result), result: turn.result }
  }

  const session = { type: 'session', version: 3, id: SESSION }
  const delta = (text: string) => ({
    type: 'message_update',
    assistantMessageEvent: { type: 'text_delta', delta: text },
  })
  const ended = (text: string, fields: object = { stopReason: 'stop' }) => ({
    type: 'message_end',
    message: { role: 'assistant', content: [{ type: 'text', text }], ...fields },
  })

  it('another session than the requested one is a failure', async () => {
    const { result } = await see([session, delta('Hello'), ended('Hello')], { sessionId: OTHER_SESSION })
    const message = `The agent could not find the session ${OTHER_SESSION}.`
    expect({ sessionId: result.sessionId, failure: result.failure }).toEqual({
      sessionId: undefined,
      failure: { reason: 'session_lost', message, report: message },
    })
  })

  it('a successful retry is a notice, and the answer is the last attempt', async () => {
    const { events, result } = await see([
      session,
      delta('Hel'),
      ended('Hel', { stopReason: 'error', errorMessage: 'terminated' }),
      { type: 'agent_end', messages: [] },
      { type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 2000, errorMessage: 'terminated' },
      delta('Hello'),
      ended('Hello'),
      { type: 'auto_retry_end', success: true, attempt: 1 },
    ])
    expect({ events, answer: result.finalOutput }).toEqual({
      events: [
        'started <session>',
        'output "Hel"',
        'notice terminated (retry 1 of 3)',
        'output "\\n\\nHello"',
        'complete',
      ],
      answer: 'Hello',
    })
  })

  it('an answer that was not streamed is shown whole', async () => {
    expect((await see([session, ended('Hello')])).events).toEqual(['started <session>', 'output "Hello"', 'complete'])
  })

  it('an answer cut by the length the model may write is the answer', async () => {
    expect((await see([session, ended('Hel', { stopReason: 'length' })])).result).toMatchObject({
      isError: false,
      finalOutput: 'Hel',
    })
  })

  it('an aborted turn is a failure', async () => {
    const line = ended('', { stopReason: 'aborted', errorMessage: 'Request was aborted.' })
    expect((await see([session, line])).result.failure).toEqual({
      reason: 'exit',
      message: 'Request was aborted.',
      report: 'Request was aborted.',
    })
  })

  describe('rounds of tools are counted', () => {
    const round = { type: 'turn_end', message: { role: 'assistant', stopReason: 'toolUse' }, toolResults: [] }

    it('and the run is ended when the limit is reached', async () => {
      const lines = [session, round, round, delta('More'), ended('More')]
      const { result } = await see(lines, { maxTurns: 2 })
      const message = 'Reached the maximum number of turns (2).'
      expect({ isError: result.isError, sessionId: result.sessionId, failure: result.failure }).toEqual({
        isError: true,
        sessionId: SESSION,
        failure: { reason: 'max_turns', message, report: message },
      })
    })

    it.each([3, 0])('and nothing happens within the limit of %i', async (maxTurns) => {
      const { result } = await see([session, round, round, ended('Done')], { maxTurns })
      expect(result).toMatchObject({ isError: false, finalOutput: 'Done' })
    })
  })
})
