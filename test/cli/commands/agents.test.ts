import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { agentPath } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'

const AUTO = { AGENT_MODE: 'auto' }

describe.concurrent('aetheel agents', () => {
  it('lists the installed agents and their capabilities', async (test) => {
    const terminal = new Terminal(test)
    terminal.install('codex', agentPath('fake-agent.sh'))
    terminal.install('pi', agentPath('old-agent.mjs'))
    const { exitCode, stdout, stderr } = await terminal.run(['agents'], { env: AUTO })
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/))
    const missing = '1, see "aetheel doctor"'
    expect({ exitCode, stderr, rows, left: terminal.leftovers() }).toEqual({
      exitCode: 0,
      stderr: '',
      rows: [
        ['AGENT', 'FOUND', 'VERSION', 'MODE', 'STREAMS', 'TOOL LIST', 'TURN LIMIT', 'PROBLEMS'],
        ['claude', 'no', '-', '-', 'text as written', 'yes', 'yes', missing],
        ['codex', 'yes', '99.1.2', 'live', 'text as written', 'no', 'no', '-'],
        ['gemini', 'no', '-', '-', 'text as written', 'yes', 'yes', missing],
        ['opencode', 'no', '-', '-', 'text as written', 'yes', 'yes', missing],
        ['pi', 'yes', '0.0.7', 'oneshot', 'text as written', 'yes', 'yes', missing],
      ],
      left: [],
    })
  })
})

const WELL = '✓ Database: SQLite, no damage found'
const NO_PODS = '- Kubernetes: no project is in a pod; docs/kubernetes.md tells how one is'
const NO_DISCORD = '- Discord: not configured; run "aetheel init" or see docs/discord.md'
const NO_WHATSAPP = '- WhatsApp: not configured; docs/whatsapp.md tells how it is'

describe.concurrent('aetheel doctor', () => {
  it('says how to install what is missing, and exits with 1 if the chosen agent is missing', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout } = await terminal.run(['doctor'])
    const advice = (label: string, name: string, packageName: string) =>
      `    ${label} CLI "${name}" was not found. Install it (npm install -g ${packageName}) so that it is on the PATH, or, for the agent that AGENT_BACKEND names, set BACKEND_CLI_PATH to where it is.`
    expect([exitCode, stdout.trimEnd().split('\n')]).toEqual([
      1,
      [
        '! Agents work without asking for permission: they may change and run everything that you may.',
        '✗ claude (chosen): not installed',
        advice('Claude', 'claude', '@anthropic-ai/claude-code'),
        '✗ codex: not installed',
        advice('Codex', 'codex', '@openai/codex'),
        '✗ gemini: not installed',
        advice('Gemini', 'gemini', '@google/gemini-cli'),
        '✗ opencode: not installed',
        advice('OpenCode', 'opencode', 'opencode-ai'),
        '✗ pi: not installed',
        advice('Pi', 'pi', '@earendil-works/pi-coding-agent'),
        WELL,
        NO_PODS,
        NO_DISCORD,
        NO_WHATSAPP,
      ],
    ])
  })

  it('ends with 1 when the agent is well, but the database is damaged', async (test) => {
    const terminal = new Terminal(test)
    terminal.install('claude', agentPath('fake-agent.sh'))
    const file = join(terminal.home, '.aetheel', 'aetheel.db')
    mkdirSync(dirname(file))
    writeFileSync(file, 'no database'.repeat(1_000))
    const { exitCode, stdout } = await terminal.run(['doctor'])
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringContaining(`✗ Database: it cannot be used\n    ${file} is not a database, or it is damaged.`),
    ])
  })

  it('ends with 0 when the chosen agent is there and well', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('claude', agentPath('fake-agent.sh'))
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: AUTO })
    expect([exitCode, stdout.split('\n')[1]]).toEqual([0, `✓ claude (chosen): 99.1.2 at ${path}, live`])
  })

  it('ends with 1 when the agent is well, but Discord cannot be reached', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('claude', agentPath('fake-agent.sh'))
    const env = { DISCORD_BOT_TOKEN: 'a.b.c', DISCORD_API_URL: 'http://127.0.0.1:1/api' }
    const { exitCode, stdout } = await terminal.run(['doctor'], { env })
    const lines = stdout.trimEnd().split('\n')
    expect([exitCode, lines[1], lines.at(-2)]).toEqual([
      1,
      `✓ claude (chosen): 99.1.2 at ${path}, oneshot`,
      '✗ 127.0.0.1:1 cannot be reached (ECONNREFUSED): check the network, a firewall and discordApiUrl',
    ])
  })

  it('warns of a version with holes, and of one too old, but does not refuse it', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('codex', agentPath('old-agent.mjs'))
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: { ...AUTO, AGENT_BACKEND: 'codex' } })
    expect([exitCode, stdout.split('\n').slice(3, 7)]).toEqual([
      0,
      [
        `! codex (chosen): 0.0.7 at ${path}, oneshot`,
        expect.stringMatching(
          /^ {4}Version 0\.0\.7 has a known security hole \(CVE-.*\): update to [\d.]+ or newer\.$/,
        ),
        expect.stringMatching(/^ {4}Version 0\.0\.7 is older than [\d.]+, the oldest one known to work here\.$/),
        expect.stringMatching(/^ {4}Each turn has a process of its own: version 0\.0\.7 is older than [\d.]+\.$/),
      ],
    ])
  })

  it('reports an agent without a version', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('pi', '/usr/bin/true')
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: { AGENT_BACKEND: 'pi' } })
    expect([exitCode, stdout.trimEnd().split('\n').slice(-6)]).toEqual([
      0,
      [
        `! pi (chosen): version unknown at ${path}, oneshot`,
        expect.stringContaining('`--version` did not answer'),
        WELL,
        NO_PODS,
        NO_DISCORD,
        NO_WHATSAPP,
      ],
    ])
  })

  const isRoot = process.getuid?.() === 0
  it.runIf(isRoot)('warns root that Claude Code will refuse', async (test) => {
    const terminal = new Terminal(test)
    terminal.install('claude', agentPath('fake-agent.sh'))
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: { IS_SANDBOX: undefined } })
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/root.*IS_SANDBOX=1/)])
  })
})
