import { chmodSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createBackend } from '../../../src/backends/registry.js'
import type { AgentEvent } from '../../../src/backends/types.js'
import {
  createFakeBackend,
  createPrintingBackend,
  createStage,
  DELICATE_PROMPTS,
  recordDelicatePrompts,
  record,
  recordStart,
  runTurn,
} from '../fake-cli.js'
import { inWords } from '../golden/captures.js'
import { adapterConfig } from '../../kit/adapter-config.js'

const SESSION = '956b3719-3756-4772-ab26-934278a96d23'

const STREAMING = ['--output-format', 'stream-json', '--verbose', '--include-partial-messages', '-p']

describe('Claude Code is started', () => {
  it('with the streaming format, no questions asked, and the prompt on stdin', async () => {
    const stage = createStage()
    expect(await recordStart('claude', { prompt: 'hi' }, {}, stage)).toEqual({
      argv: [...STREAMING, '--max-turns', '25', '--dangerously-skip-permissions'],
      stdin: 'hi',
      cwd: stage.workingDir,
      environment: {
        PATH: process.env['PATH'],
        HOME: stage.home,
        PWD: stage.workingDir,
        CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
        CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
        CLAUDE_CODE_MAX_RETRIES: '2',
        DISABLE_AUTOUPDATER: '1',
      },
      isMarked: true,
      files: {},
      isRemoved: true,
    })
  })

  it('with its own variables and none of the gateway', async () => {
    const own = { ANTHROPIC_API_KEY: 'key', CLAUDE_CONFIG_DIR: '/c', IS_SANDBOX: '1', CLAUDE_CODE_MAX_RETRIES: '7' }
    const others = { DISCORD_TOKEN: 't', AETHEEL_TOKEN: 't', OPENAI_API_KEY: 't', GEMINI_API_KEY: 't', FOO: 't' }
    const stage = createStage()
    const { environment } = await recordStart('claude', {}, { environment: { ...own, ...others } }, stage)
    expect(environment).toEqual({
      ...own,
      PATH: process.env['PATH'],
      HOME: stage.home,
      PWD: stage.workingDir,
      CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
      CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
      DISABLE_AUTOUPDATER: '1',
    })
  })

  it('never with attachments, whatever the operator set', async () => {
    const options = { environment: { CLAUDE_CODE_DISABLE_ATTACHMENTS: '0' } }
    expect((await recordStart('claude', {}, options)).environment['CLAUDE_CODE_DISABLE_ATTACHMENTS']).toBe('1')
  })

  it('with the system prompt in a file that is gone afterwards', async () => {
    const systemPrompt = 'Be brief.\n\n@/etc/hostname $HOME'
    const { argv, stdin, files, isRemoved } = await recordStart('claude', { prompt: 'hi', systemPrompt })
    expect({ file: argv.slice(-2), stdin, files, isRemoved }).toEqual({
      file: ['--append-system-prompt-file', '<run>/system-prompt.md'],
      stdin: 'hi',
      files: { 'system-prompt.md': systemPrompt },
      isRemoved: true,
    })
  })

  it.each<[version: string, sessionId: string | undefined, args: string[]]>([
    ['2.1.257', SESSION, ['--system-prompt-snapshot', 'off']],
    ['2.2.0', SESSION, ['--system-prompt-snapshot', 'off']],
    ['2.1.256', SESSION, []],
    ['unknown', SESSION, []],
    ['2.1.257', undefined, []],
  ])('in version %s for session %s so that a new system prompt reaches the model', async (version, sessionId, args) => {
    const request = { systemPrompt: 'Be brief.', ...(sessionId !== undefined && { sessionId }) }
    const { argv } = await recordStart('claude', request, { environment: { FAKE_VERSION: version } })
    expect(argv.slice(argv.indexOf('--append-system-prompt-file') + 2)).toEqual(args)
  })

  it('with the session, the model and the limit of the request', async () => {
    const request = { sessionId: SESSION, model: 'sonnet', maxTurns: 3 }
    const { argv } = await recordStart('claude', request, { config: { model: 'opus', maxTurns: 9 } })
    expect(argv).toEqual([
      ...STREAMING,
      ...['--max-turns', '3', '--model', 'sonnet', '--resume', SESSION],
      '--dangerously-skip-permissions',
    ])
  })

  it.each<[what: string, tools: string[], args: string[]]>([
    [
      'names only: nothing else is offered',
      ['Read', 'Bash'],
      [
        ...['--dangerously-skip-permissions', '--disallowedTools', 'mcp__*', '--tools', 'Read,Bash'],
        ...['--allowedTools', 'Read', '--allowedTools', 'Bash'],
      ],
    ],
    [
      'a rule: permissions decide',
      ['Read', 'Bash(git log:*)', 'Bash(git show:*)'],
      [
        ...['--permission-mode', 'dontAsk', '--tools', 'Read,Bash', '--allowedTools', 'Read'],
        ...['--allowedTools', 'Bash(git log:*)', '--allowedTools', 'Bash(git show:*)'],
      ],
    ],
    [
      'a tool of an MCP server: permissions decide',
      ['mcp__tiny__echo'],
      ['--permission-mode', 'dontAsk', '--tools', 'mcp__tiny__echo', '--allowedTools', 'mcp__tiny__echo'],
    ],
  ])('with the allowed tools, %s', async (_, allowedTools, args) => {
    const { argv } = await recordStart('claude', { allowedTools })
    expect(argv.slice(STREAMING.length + 2)).toEqual(args)
  })

  it('with a prompt that is whole, whatever it looks like', async () => {
    expect(await recordDelicatePrompts('claude')).toEqual({
      ...DELICATE_PROMPTS,
      'a command': ' /help',
      'a path': ' /etc/hosts is a file',
    })
  })
})

describe('Claude Code is not started', () => {
  it.each(['-', '--help', '-c', 'not-a-uuid', `${SESSION} `, `${SESSION}\n`, `-${SESSION}`, 'a'.repeat(36)])(
    'for the session %j, which cannot be one of its own',
    async (sessionId) => {
      const { start, result } = await record('claude', { sessionId })
      const message = `${JSON.stringify(sessionId)} is not a valid session id for Claude.`
      expect({ start, result }).toEqual({
        start: undefined,
        result: { isError: true, durationMs: 0, failure: { reason: 'session_lost', message, report: message } },
      })
    },
  )

  it.each([
    ['in letters', 'x'.repeat(10_000_001), 10_000_001],
    ['in bytes', 'é'.repeat(5_000_001), 10_000_002],
    ['with the blank it needs', `/${'x'.repeat(9_999_999)}`, 10_000_001],
  ])('for a prompt that is too long %s', async (_, prompt, bytes) => {
    const { start, result } = await record('claude', { prompt })
    const message = `The prompt is too long for Claude: ${bytes} of at most 10000000 bytes.`
    expect({ isStarted: start !== undefined, failure: result.failure }).toEqual({
      isStarted: false,
      failure: { reason: 'refused', message, report: message },
    })
  })

  it.each(['', ' ', '\n\t'])('for the blank prompt %j', async (prompt) => {
    const { start, result } = await record('claude', { prompt })
    expect({ start, failure: result.failure }).toMatchObject({ failure: { reason: 'refused' } })
  })
})

describe('a Claude Code that does not tell its version', () => {
  /** A turn that reads the version first, since it resumes with a system prompt. */
  function startTurn(limits: { signal?: AbortSignal; timeoutMs?: number }) {
    const stage = createStage()
    const cliPath = stage.write('cli', '#!/bin/sh\nexec sleep 15\n')
    chmodSync(cliPath, 0o755)
    const { signal = new AbortController().signal, timeoutMs = 30_000 } = limits
    const request = { prompt: 'hi', systemPrompt: 'Be brief.', sessionId: SESSION, timeoutMs }
    return createFakeBackend('claude', cliPath, stage).run(request, signal)
  }

  async function endOf(events: AsyncIterable<AgentEvent>): Promise<string | undefined> {
    let reason: string | undefined
    for await (const event of events) if (event.type === 'complete') reason = event.result.failure?.reason
    return reason
  }

  it('does not hold up a time-out', async () => {
    const late = sleep(10_000, 'late', { ref: false })
    expect(await Promise.race([endOf(startTurn({ timeoutMs: 300 })), late])).toBe('timeout')
  })

  it('does not hold up a cancel', async () => {
    const late = sleep(10_000, 'late', { ref: false })
    expect(await Promise.race([endOf(startTurn({ signal: AbortSignal.timeout(300) })), late])).toBe('cancelled')
  })
})

describe('from the output of Claude Code', () => {
  const text = (content: string, id = 'm1') => ({
    type: 'assistant',
    message: { id, content: [{ type: 'text', text: content }] },
  })
  const delta = (content: string) => ({
    type: 'stream_event',
    event: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: content } },
  })
  const messageStart = (id: string) => ({ type: 'stream_event', event: { type: 'message_start', message: { id } } })
  const result = (answer: string) => ({ type: 'result', subtype: 'success', is_error: false, result: answer })

  async function see(...lines: unknown[]) {
    const stdout = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const turn = await runTurn(createPrintingBackend('claude', { stdout }))
    return { events: inWords(turn.events, turn.result), result: turn.result }
  }

  it('the last of two results counts', async () => {
    expect((await see(text('One'), result('One'), text('Two', 'm2'), result('Two'))).result.finalOutput).toBe('Two')
  })

  it('the last text is the answer when the result has none', async () => {
    expect((await see(text('One'), text('Two'), { type: 'result', subtype: 'success' })).result.finalOutput).toBe('Two')
  })

  it('what a subagent says and does is not shown', async () => {
    const nested = { parent_tool_use_id: 'toolu_1' }
    const { events } = await see(
      { type: 'assistant', message: { content: [{ type: 'tool_use', id: 'toolu_1', name: 'Agent', input: {} }] } },
      { ...text('Inside'), ...nested },
      { ...delta('Inside'), ...nested },
      { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'x', content: 'y' }] }, ...nested },
      {
        type: 'user',
        message: {
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [{ type: 'text', text: 'It is done' }, { type: 'image' }],
            },
          ],
        },
        parent_tool_use_id: null,
      },
      text('Outside'),
      result('Outside'),
    )
    expect(events).toEqual([
      'tool_use #1 Agent {}',
      'tool_result #1 Agent ok "It is done\\n[image]"',
      'output "Outside"',
      'complete',
    ])
  })

  it('a text whose stream broke is shown whole, apart from what was shown of it', async () => {
    const { events } = await see(
      messageStart('m1'),
      delta('Hello fr'),
      text('Hello from here', 'm2'),
      result('Hello from here'),
    )
    expect(events).toEqual(['output "Hello fr\\n\\nHello from here"', 'complete'])
  })

  it('a streamed message of several texts is shown once', async () => {
    const block = { type: 'stream_event', event: { type: 'content_block_start', index: 1 } }
    const { events } = await see(
      messageStart('m1'),
      delta('One'),
      text('One'),
      block,
      delta('Two'),
      text('Two'),
      result('Two'),
    )
    expect(events).toEqual(['output "One\\n\\nTwo"', 'complete'])
  })

  it('a message of the person as a plain string is nothing to show', async () => {
    expect((await see({ type: 'user', message: { content: 'hi' } }, text('Hello'), result('Hello'))).events).toEqual([
      'output "Hello"',
      'complete',
    ])
  })

  it('alternative event names are understood', async () => {
    const { events, result: outcome } = await see(
      { type: 'init', session_id: SESSION },
      { type: 'message', content: 'Let me look.' },
      { type: 'tool_use', id: '1', name: 'Read', input: { path: 'a' } },
      { type: 'tool_result', tool_use_id: '1', content: 'text', is_error: false },
      { type: 'message', content: [{ type: 'text', text: 'Seen.' }] },
      { type: 'result', result: 'Seen.' },
    )
    expect({ events, answer: outcome.finalOutput }).toEqual({
      events: [
        'started <session>',
        'output "Let me look."',
        'tool_use #1 Read {"path":"a"}',
        'tool_result #1 Read ok "text"',
        'output "\\n\\nSeen."',
        'complete',
      ],
      answer: 'Seen.',
    })
  })

  it('turns and denied tools are reported beside the answer', async () => {
    const denials = [{ tool_name: 'Bash' }]
    const outcome = await see({ ...result('done'), num_turns: 2, permission_denials: denials })
    expect(outcome.result.metadata).toEqual({ turns: 2, permissionDenials: denials })
  })

  it('a refusal of the model is one', async () => {
    const line = { type: 'result', is_error: true, stop_reason: 'refusal', result: 'API Error: unable to respond' }
    expect((await see(line)).result.failure).toEqual({
      reason: 'refused',
      message: 'API Error: unable to respond',
      report: 'API Error: unable to respond',
    })
  })

  it('a refusal to run as root says what to do', async () => {
    const stderr = '--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons\n'
    const outcome = await runTurn(createPrintingBackend('claude', { stderr, exit: 1 }))
    expect(outcome.result.failure).toEqual({
      reason: 'refused',
      message: `${stderr.trim()} Run the gateway as another user, or set IS_SANDBOX=1 where root is confined, as in a container.`,
      report: `Claude CLI error (exit 1): ${stderr}`,
      stderr,
    })
  })

  it('an answer without its result line is none, whatever the exit code', async () => {
    expect((await see(text('Hello'))).result.failure).toEqual({
      reason: 'no_result',
      message: 'Claude ended without an answer.',
      report: 'Failed to parse CLI output',
    })
  })
})

describe('buildArgs', () => {
  const config = adapterConfig({ allowedTools: ['Read'], maxTurns: 5 })

  it('have the file name between the tools and the prompt, which the tools would swallow', () => {
    expect(createBackend('claude', config).buildArgs('hi', '/tmp/system.md', SESSION)).toEqual([
      ...['-p', '--output-format', 'json', '--dangerously-skip-permissions', '--max-turns', '5'],
      ...['--resume', SESSION, '--allowedTools', 'Read', '--append-system-prompt-file', '/tmp/system.md', 'hi'],
    ])
  })
})
