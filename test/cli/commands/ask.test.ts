import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ask } from '../../../src/cli/commands/ask.js'
import { createScrubber } from '../../../src/credentials/scrubber.js'
import { START, type Step } from '../../contract/agent-script.js'
import { agentPath } from '../../kit/agents.js'
import { printedAnswer } from '../../contract/wire-formats.js'
import { DEMO_AGENT } from '../../kit/agents.js'
import { SCRIPT } from '../../kit/running-command.js'
import { Terminal } from '../../kit/terminal.js'

const DEMO = { BACKEND_CLI_PATH: DEMO_AGENT }
const FAKE = { BACKEND_CLI_PATH: agentPath('fake-agent.sh') }
const KNOWN = 'claude, codex, gemini, opencode, pi'
const SESSION = /Session: ([0-9a-f-]{36})\n$/

describe.concurrent('aetheel ask', () => {
  it('streams the answer to stdout and what the agent does to stderr', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('poem.txt', '')
    const ended = await terminal.run(['ask', 'Which file is here?'], { env: DEMO })
    expect({ ...ended, left: terminal.leftovers() }).toEqual({
      exitCode: 0,
      stdout: 'Let me look.\n\nThere is one file here, poem.txt. I asked a real shell.\n',
      stderr: expect.stringMatching(/^\n→ Bash ls {2}✓ \d+s\nSession: [0-9a-f-]{36}\n$/),
      left: [],
    })
  })

  it('lets an agent that needs approval do nothing if nobody can be asked', async (test) => {
    const terminal = new Terminal(test)
    const request = '{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}'
    const script = [
      `printf '{"type":"control_request","request_id":"q","request":${request}}\\n'`,
      'until [ -e answer-q ]; do sleep 0.01; done',
      `printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"s"}\\n' "$(grep -o deny answer-q)"`,
    ].join('; ')
    const env = {
      BACKEND_CLI_PATH: agentPath('warm-agent.sh'),
      AGENT_PERMISSIONS: 'ask',
      PATH: process.env['PATH'] ?? '',
    }
    const { exitCode, stdout } = await terminal.run(['ask', script], { env })
    expect([exitCode, stdout, terminal.leftovers()]).toEqual([0, 'deny\n', []])
  })

  it.runIf(existsSync(SCRIPT))('asks below the line of the tool', async (test) => {
    const terminal = new Terminal(test)
    const ask = terminal.openAtTerminal(['ask', 'edit a file'], { ...DEMO, AGENT_PERMISSIONS: 'ask' })
    await ask.shows(/^→ Write \S+\nAllow Write .*\? \[y\/N\]$/)
    ask.press('y\n')
    await ask.shows(/ y\n {2}✓ \d+s\nI have written/)
    expect(await ask.exited).toBe(0)
  })

  it('continues a session', async (test) => {
    const terminal = new Terminal(test)
    const { stderr } = await terminal.run(['ask', 'My name is Ada.'], { env: DEMO })
    const session = SESSION.exec(stderr)?.[1] ?? ''
    const { exitCode, stdout } = await terminal.run(['ask', '--session', session, 'What is my name?'], { env: DEMO })
    expect([exitCode, stdout]).toEqual([0, 'Your name is Ada; you told me earlier in this session.\n'])
  })

  it('prints every event as a line of JSON', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(['ask', '--json', 'What is my name?'], { env: DEMO })
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect({
      exitCode,
      stderr,
      first: events[0],
      last: events.at(-1),
      types: new Set(events.map(({ type }) => type)),
    }).toEqual({
      exitCode: 0,
      stderr: '',
      first: { type: 'started', sessionId: expect.any(String), model: 'demonstration', timestamp: expect.any(Number) },
      last: {
        type: 'complete',
        result: expect.objectContaining({ isError: false, finalOutput: 'I do not know it yet.', exitCode: 0 }),
        timestamp: expect.any(Number),
      },
      types: new Set(['started', 'output', 'complete']),
    })
  })

  it('reads the prompt from stdin', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout } = await terminal.run(['ask'], { env: DEMO, stdin: 'My name is Grace.\n' })
    expect([exitCode, stdout]).toEqual([0, 'Your name is Grace; you told me earlier in this session.\n'])
  })

  it('works in the directory it is given', async (test) => {
    const terminal = new Terminal(test)
    mkdirSync(join(terminal.project, 'part'))
    terminal.write('part/inside.txt', '')
    const { stdout } = await terminal.run(['ask', '--cwd', 'part', 'Which files?'], { env: DEMO })
    expect(stdout).toContain('There is one file here, inside.txt.')
  })

  it('hands model, system prompt, backend and session to the agent', async (test) => {
    const terminal = new Terminal(test)
    terminal.install('pi', agentPath('mirror-agent.sh'))
    terminal.write('answer', printedAnswer('pi', 'Hello'))
    const session = '11111111-1111-4111-8111-111111111111'
    const flags = ['--backend', 'pi', '--model', 'some-model', '--system', 'Be brief.', '--session', session]
    const { exitCode, stdout } = await terminal.run(['ask', ...flags, '--', '--help'])
    const given = ['--model', '--session', '--append-system-prompt'].map((flag) => terminal.givenTo(flag))
    expect([exitCode, stdout, terminal.read('call-stdin'), given]).toEqual([
      0,
      'Hello\n',
      '--help',
      ['some-model', session, expect.stringContaining(terminal.directory)],
    ])
  })

  it.for<[string, Step[], RegExp]>([
    ['fails', [START, { fail: 'Overloaded' }, { exit: 1 }], /^Error \(exit\): Overloaded\nSession: /],
    ['crashes', [{ printOnStderr: 'It broke\n' }, { die: 'SIGSEGV' }], /^Error \(exit\): It broke\n$/],
    ['says nothing', [], /^Error \(no_result\): Claude ended without an answer\.\n$/],
  ])('ends with 1 when the agent %s', async ([, steps, expected], test) => {
    const terminal = new Terminal(test)
    const ended = await terminal.run(['ask', terminal.prompt(...steps)], { env: FAKE })
    expect({ ...ended, left: terminal.leftovers() }).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(expected),
      left: [],
    })
  })

  it('ends with 1 when the time is over, and ends the agent', async (test) => {
    const terminal = new Terminal(test)
    const prompt = terminal.prompt({ descendant: 'own-session' }, START, { hang: true })
    const { exitCode, stderr } = await terminal.run(['ask', '--timeout', '1', prompt], { env: FAKE })
    expect([exitCode, stderr, terminal.leftovers()]).toEqual([
      1,
      expect.stringContaining('Error (timeout): The agent did not finish within 1 s.\n'),
      [],
    ])
  })

  it('ends with 1 and says what to do when the agent is not installed', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(['ask', '-b', 'gemini', 'Hello'])
    expect([exitCode, stdout, stderr]).toEqual([
      1,
      '',
      expect.stringMatching(
        /^Error \(spawn\): Gemini CLI "gemini" was not found\..*npm install -g @google\/gemini-cli.*if AGENT_BACKEND is gemini, set BACKEND_CLI_PATH to its path\./,
      ),
    ])
  })

  it.for<[string, string[], NodeJS.ProcessEnv, string]>([
    ['an unknown agent', ['ask', '-b', 'nope', 'Hello'], {}, `Unknown backend "nope". Known: ${KNOWN}`],
    ['an unknown AGENT_BACKEND', ['ask', 'Hello'], { AGENT_BACKEND: 'toString' }, `"toString". Known: ${KNOWN}`],
    ['a time-out that is no time', ['ask', '-t', 'soon', 'Hello'], {}, 'It must be a positive number of seconds.'],
    ['an empty prompt', ['ask'], DEMO, 'Error (refused): The prompt is empty.'],
    [
      'a configuration that is not there',
      ['--config', 'nowhere.json5', 'ask', 'Hello'],
      {},
      'nowhere.json5: does not exist',
    ],
  ])('exits with 1 and reports %s', async ([, args, env, expected], test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(args, { env })
    expect([exitCode, stdout, stderr]).toEqual([1, '', expect.stringContaining(expected)])
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  it('reports every problem of the configuration at once', async (test) => {
    const terminal = new Terminal(test)
    const env = { AGENT_BACKEND: 'nope', QUERY_TIMEOUT_MS: 'soon', LOG_LEVEL: 'loud' }
    const { exitCode, stderr } = await terminal.run(['ask', 'Hello'], { env })
    const names = stderr
      .trimEnd()
      .split('\n')
      .map((line) => line.split(':')[0])
    expect([exitCode, names]).toEqual([1, ['AGENT_BACKEND', 'QUERY_TIMEOUT_MS', 'LOG_LEVEL']])
  })

  it.for<[string, NodeJS.ProcessEnv, string[]]>([
    ['warns of nothing that nobody has set', {}, []],
    [
      'tells of tools and turns to which the agent cannot be limited',
      { ALLOWED_TOOLS: 'Read', BACKEND_MAX_TURNS: '25' },
      ['maxTurns', 'allowedTools', 'ALLOWED_TOOLS has no effect: this agent cannot be restricted to certain tools.'],
    ],
  ])('%s', async ([, env, expected], test) => {
    const terminal = new Terminal(test)
    terminal.install('codex', agentPath('mirror-agent.sh'))
    terminal.write('answer', printedAnswer('codex', 'Hello'))
    const ended = await terminal.run(['ask', '-b', 'codex', 'Hello'], { env: { ...env, LOG_LEVEL: 'warn' } })
    const told = ended.stderr.split('\n').flatMap((line) => {
      const [, option] = /"option":"(\w+)".*option-ignored/.exec(line) ?? []
      return option ?? (/^! (.*)$/.exec(line)?.[1] || [])
    })
    expect([ended.exitCode, ended.stdout, told]).toEqual([0, 'Hello\n', expected])
  })

  it('continues with 25 turns, and a warning, if BACKEND_MAX_TURNS is invalid', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('answer', printedAnswer('claude', 'Hello'))
    const env = { BACKEND_CLI_PATH: agentPath('mirror-agent.sh'), BACKEND_MAX_TURNS: 'many' }
    const { exitCode, stderr } = await terminal.run(['ask', 'Hello'], { env })
    expect([exitCode, terminal.givenTo('--max-turns'), stderr]).toEqual([
      0,
      '25',
      expect.stringContaining('BACKEND_MAX_TURNS must be a positive whole number'),
    ])
  })

  it('reads the configuration file', async (test) => {
    const terminal = new Terminal(test)
    const file = terminal.write('aetheel.json5', `{ backendCliPath: '${DEMO_AGENT}' /* not installed */ }`)
    const { exitCode, stdout } = await terminal.run(['--config', file, 'ask', 'What is my name?'])
    expect([exitCode, stdout]).toEqual([0, 'I do not know it yet.\n'])
  })
})

describe.concurrent('aetheel ask, interrupted', () => {
  const descendants: Step[] = [{ descendant: 'own-session' }, { descendant: 'orphan' }]

  it.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('ends the whole tree on %s', async (signal, test) => {
    const terminal = new Terminal(test)
    const prompt = terminal.prompt(...descendants, START, { say: 'Working' }, { hang: true })
    const child = terminal.start(['ask', prompt], FAKE)
    child.stdout.once('data', () => child.kill(signal))
    const { exitCode, stderr } = await terminal.ended(child)
    expect({ exitCode, stderr, left: terminal.leftovers() }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining('Error (cancelled): Cancelled\n'),
      left: [],
    })
  })

  it('ends the whole tree when nobody reads stdout any more', async (test) => {
    const terminal = new Terminal(test)
    const prompt = terminal.prompt(...descendants, START, { sayForEver: 'and on ' })
    const child = terminal.start(['ask', prompt], FAKE)
    child.stdout.once('data', () => child.stdout.destroy())
    const exitCode = await new Promise((resolve) => {
      child.once('exit', resolve)
    })
    expect([exitCode, terminal.leftovers()]).toEqual([1, []])
  })

  it('ends the whole tree when nobody reads stderr any more', async (test) => {
    const terminal = new Terminal(test)
    const noise: Step[] = Array.from({ length: 200 }, (_, index) => ({
      tool: { command: `true ${index}`, output: 'done' },
    }))
    const prompt = terminal.prompt(...descendants, START, ...noise, { hang: true })
    const child = terminal.start(['ask', prompt], FAKE)
    child.stderr.destroy()
    const exitCode = await new Promise((resolve) => {
      child.once('exit', resolve)
    })
    expect([exitCode, terminal.leftovers()]).toEqual([1, []])
  })

  it('starts nothing when it is interrupted while it waits for the prompt', async (test) => {
    const terminal = new Terminal(test)
    const child = terminal.start(['ask'], FAKE)
    const ended = terminal.ended(child)
    await sleep(1)
    child.kill('SIGINT')
    await ended
    expect(terminal.leftovers()).toEqual([])
  })
})

it.each([false, true])('hides known secrets, even in pieces (JSON: %s)', async (isJson) => {
  const secret = 'correct-horse-battery-staple'
  let printed = ''
  const output = {
    write(text: string) {
      printed += text
      return true
    },
  }
  const { finalOutput } = await ask({
    backend: {
      async *run() {
        yield { type: 'output', stream: 'stdout', content: `It is ${secret.slice(0, 9)}`, timestamp: 1 }
        yield { type: 'output', stream: 'stdout', content: `${secret.slice(9)}.`, timestamp: 2 }
        yield {
          type: 'complete',
          timestamp: 3,
          result: { isError: false, finalOutput: `It is ${secret}.`, durationMs: 1 },
        }
      },
    },
    request: { prompt: 'Tell' },
    isJson,
    stdout: output,
    stderr: output,
    signal: new AbortController().signal,
    scrubber: createScrubber([secret]),
  })
  expect([finalOutput, printed.includes('It is [secret]'), /horse|staple/.test(printed)]).toEqual([
    'It is [secret].',
    true,
    false,
  ])
})
