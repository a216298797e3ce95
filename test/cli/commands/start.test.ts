import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { START } from '../../contract/agent-script.js'
import { agentPath } from '../../kit/agents.js'
import { DEMO_AGENT } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'

const DEMO = { BACKEND_CLI_PATH: DEMO_AGENT }
const FAKE = { BACKEND_CLI_PATH: agentPath('fake-agent.sh') }

describe.concurrent('aetheel start', () => {
  it.for(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('runs until %s, and then ends well', async (signal, test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(DEMO)
    gateway.kill(signal)
    expect([await gateway.exited, gateway.stdout.split('\n').slice(0, 8), terminal.leftovers()]).toEqual([
      0,
      [
        'Configuration: no file; environment and defaults',
        `Data: ${join(terminal.home, '.aetheel')}`,
        'Agent: claude',
        'Channels: terminal, http, web; "aetheel init" adds Discord',
        expect.stringMatching(
          /^Dashboard: http:\/\/127\.0\.0\.1:\d+; "aetheel dashboard" logs you in\. Documentation: http:.*\/docs$/,
        ),
        `A token with full access is in ${join(terminal.home, '.aetheel', 'http-token')}`,
        'Agents work without asking for permission: they can change and run anything that you can.',
        'Aetheel is running. Talk to it: aetheel chat',
      ],
      [],
    ])
  })

  it.for([{}, { AGENT_BACKEND: 'claude' }])(
    'starts without the agent of %j, and says where to go on',
    async (settings, test) => {
      const terminal = new Terminal(test)
      const gateway = await terminal.startGateway({ PATH: terminal.home, ...settings })
      gateway.kill('SIGTERM')
      expect([await gateway.exited, gateway.stdout]).toEqual([
        0,
        expect.stringMatching(
          /^No agent yet\. The agent claude cannot be used\. [^]*The dashboard shows the first steps\.$/m,
        ),
      ])
    },
  )

  it.for([{ BACKEND_CLI_PATH: 'claude' }, { HTTP_ENABLED: 'false' }])(
    'does not start without an agent with %j',
    async (settings, test) => {
      const terminal = new Terminal(test)
      const { exitCode, stderr } = await terminal.run(['start'], { env: { PATH: terminal.home, ...settings } })
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('The agent claude cannot be used. ')])
    },
  )

  it('lets only its owner connect, and removes the socket at the end', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(DEMO)
    const home = join(terminal.home, '.aetheel')
    const modes = [home, join(home, 'gateway.sock')].map((path) => (statSync(path).mode & 0o777).toString(8))
    gateway.kill('SIGTERM')
    await gateway.exited
    expect([modes, existsSync(join(home, 'gateway.sock'))]).toEqual([['700', '600'], false])
  })

  it('names the configuration file', async (test) => {
    const terminal = new Terminal(test)
    const file = terminal.write('aetheel.json5', `{ backendCliPath: '${DEMO_AGENT}' }`)
    const gateway = await terminal.startGateway({})
    gateway.kill('SIGTERM')
    await gateway.exited
    expect(gateway.stdout).toContain(`Configuration: ${file}\n`)
  })

  it('applies a change of its configuration file, and keeps its settings if that is invalid', async (test) => {
    const terminal = new Terminal(test)
    const file = terminal.write('aetheel.json5', `{ backendCliPath: '${DEMO_AGENT}' }`)
    const gateway = await terminal.startGateway({})
    terminal.write('aetheel.json5', `{ backendCliPath: '${DEMO_AGENT}', queryTimeoutMs: 1000, leaseMs: 5000 }`)
    await gateway.printed('Configuration reloaded: queryTimeoutMs\nChanged, takes effect after a restart: leaseMs\n')
    terminal.write('aetheel.json5', `{ backendCliPath: 'no-such-agent' }`)
    await gateway.printed('so the previous settings stay in use:\nThe agent claude cannot be used. ')
    terminal.write('aetheel.json5', `{ queryTimeout: 1000 }`)
    await gateway.printed(
      `so the previous settings stay in use:\n${file}: queryTimeout: unknown key; did you mean "queryTimeoutMs"?\n`,
    )
    gateway.kill('SIGTERM')
    expect(await gateway.exited).toBe(0)
  })

  it('is refused if another gateway runs', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(DEMO)
    const { exitCode, stderr } = await terminal.run(['start'], { env: DEMO })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect([exitCode, stderr]).toEqual([
      1,
      `Another gateway uses ${join(terminal.home, '.aetheel')}. Stop it, or give this one another AETHEEL_HOME.\n`,
    ])
  })

  it('takes no message when the HTTP API may not listen', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stderr } = await terminal.run(['start'], { env: { ...DEMO, HTTP_HOST: '0.0.0.0' } })
    expect([exitCode, stderr]).toEqual([
      1,
      'HTTP_HOST=0.0.0.0 opens the HTTP API to other machines, but there is no token. Create one first with "aetheel tokens create", or set HTTP_HOST=127.0.0.1.\n',
    ])
  })

  it('warns of a data directory that others may read', async (test) => {
    const terminal = new Terminal(test)
    const home = join(terminal.home, '.aetheel')
    mkdirSync(home, { mode: 0o755 })
    const gateway = await terminal.startGateway(DEMO)
    gateway.kill('SIGTERM')
    await gateway.exited
    const lines = gateway.stderr.split('\n').filter((line) => line.includes('home.open-to-others'))
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([{ home, advice: 'chmod 700' }])
  })

  it('takes the place of one that was killed', async (test) => {
    const terminal = new Terminal(test)
    const killed = await terminal.startGateway(DEMO)
    killed.kill('SIGKILL')
    await killed.exited
    const next = await terminal.startGateway(DEMO)
    next.kill('SIGTERM')
    expect([await killed.exited, await next.exited]).toEqual(['SIGKILL', 0])
  })

  it('ends with 1 and logs name and path when the agent is not there', async (test) => {
    const terminal = new Terminal(test)
    const env = { AGENT_BACKEND: 'codex', BACKEND_CLI_PATH: '/nowhere/codex' }
    const { exitCode, stdout, stderr } = await terminal.run(['start'], { env })
    const [logLine = '', ...said] = stderr.trimEnd().split('\n')
    expect([exitCode, stdout, JSON.parse(logLine), said]).toEqual([
      1,
      '',
      expect.objectContaining({ msg: 'backend.missing', backend: 'codex', path: '/nowhere/codex' }),
      [expect.stringMatching(/^The agent codex cannot be used\. .*BACKEND_CLI_PATH/)],
    ])
  })

  it.for<[string, NodeJS.ProcessEnv, RegExp]>([
    [
      'the path of its socket is too long',
      { AETHEEL_HOME: `/tmp/${'a'.repeat(120)}` },
      /Choose a shorter AETHEEL_HOME/,
    ],
    [
      'its directory cannot be made',
      { AETHEEL_HOME: '/dev/null/home' },
      /\/dev\/null\/home cannot be created: .*AETHEEL_HOME/,
    ],
    ['the database is not there', { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }, /Check DATABASE_URL/],
  ])('ends with 1 and says what to do when %s', async ([, env, expected], test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(['start'], { env: { ...DEMO, ...env } })
    expect([exitCode, stdout, stderr]).toEqual([1, '', expect.stringMatching(expected)])
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  it('waits for the turn that runs, and delivers its answer, before it ends', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(FAKE)
    const chat = terminal.open(['chat'])
    const prompt = terminal.prompt(START, { say: 'Working' }, { waitFor: 'go' }, { answer: 'Done' })
    chat.type(prompt.replaceAll('\n', '; '))
    chat.endInput()
    await chat.printed('Working')
    gateway.kill('SIGTERM')
    await gateway.printed('Stopping')
    terminal.write('go', '')
    expect([await gateway.exited, await chat.exited, chat.stdout]).toEqual([0, 0, 'Working\n\nDone\n'])
  })

  it('ends at once on the second signal, and leaves no agent', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(FAKE)
    const chat = terminal.open(['chat'])
    chat.type(terminal.prompt(START, { say: 'Working' }, { hang: true }).replaceAll('\n', '; '))
    await chat.printed('Working')
    gateway.kill('SIGTERM')
    await gateway.printed('Stopping')
    gateway.kill('SIGTERM')
    const exitCode = await gateway.exited
    await chat.printed('Lost the connection to the gateway.')
    chat.kill('SIGTERM')
    await chat.exited
    await test.expect.poll(() => terminal.processes()).toEqual([])
    expect(exitCode).toBe(1)
  })
})
