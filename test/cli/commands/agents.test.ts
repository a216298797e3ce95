import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { agentPath } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'

const AUTO = { AGENT_MODE: 'auto' }
const KEY = { ANTHROPIC_API_KEY: 'x' }

describe.concurrent('aetheel agents', () => {
  it('lists the agents, their capabilities and what to do about them', async (test) => {
    const terminal = new Terminal(test)
    terminal.install('codex', agentPath('fake-agent.sh'))
    terminal.install('gemini', agentPath('fake-agent.sh'))
    terminal.install('pi', agentPath('old-agent.mjs'))
    const env = { ...AUTO, MISTRAL_API_KEY: 'x' }
    const { exitCode, stdout, stderr } = await terminal.run(['agents'], { env })
    expect({ exitCode, stderr, rows: rowsOf(stdout), left: terminal.leftovers() }).toEqual({
      exitCode: 0,
      stderr: '',
      rows: [
        ['AGENT', 'FOUND', 'VERSION', 'LOGIN', 'MODE', 'STREAMS', 'TOOL LIST', 'TURN LIMIT', 'TO DO'],
        ['claude', 'no', '-', '-', '-', ...ABLE, 'npm install -g @anthropic-ai/claude-code'],
        [...['codex', 'yes', '99.1.2', '?', 'live', 'as written', 'no', 'no'], 'aetheel doctor --live --agent codex'],
        ['gemini', 'yes', '99.1.2', 'no', 'live', ...ABLE, 'aetheel credentials set GEMINI_API_KEY'],
        ['opencode', 'no', '-', '-', '-', ...ABLE, 'npm install -g opencode-ai'],
        ['pi', 'yes', '0.0.7', 'yes', 'oneshot', ...ABLE, 'npm install -g @earendil-works/pi-coding-agent'],
      ],
      left: [],
    })
  })

  it('shows the demo agent as what it is, and asks it for no login', async (test) => {
    const terminal = new Terminal(test)
    const env = { ...AUTO, AGENT_BACKEND: 'demo' }
    const [listed, examined] = [await terminal.run(['agents'], { env }), await terminal.run(['doctor'], { env })]
    const [, demo, ...others] = rowsOf(listed.stdout)
    expect([
      demo,
      others.at(-1),
      examined.exitCode,
      examined.stdout.split('\n').slice(1, 4),
      terminal.leftovers(),
    ]).toEqual([
      ['demo', 'yes', '-', 'not needed', 'live', ...ABLE, '-'],
      ['demo is built in, replaces claude, and has no model. To choose a real agent: aetheel init'],
      0,
      [
        '✓ demo (chosen): built in, always ready, live, in place of claude, without a model',
        '    To choose a real agent: aetheel init',
        '- codex: not installed. Run: npm install -g @openai/codex',
      ],
      [],
    ])
    // It would have made one, had it been asked as Claude Code is.
    expect(existsSync(join(terminal.home, '.cache/aetheel-demo'))).toBe(false)
  })
})

const ABLE = ['as written', 'yes', 'yes']

function rowsOf(output: string): string[][] {
  return output
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/))
}

const WELL = '✓ Database: SQLite, no damage found'
const PLACE = '✓ Directories: the working directory exists'
const NO_PODS = '- Kubernetes: no project is in a pod; see docs/kubernetes.md'
const NO_DISCORD = '- Discord: not configured; run "aetheel init" or see docs/discord.md'
const NO_WHATSAPP = '- WhatsApp: not configured; see docs/whatsapp.md'

describe.concurrent('aetheel doctor', () => {
  it('says how to install what is missing, and exits with 1 if the chosen agent is missing', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout } = await terminal.run(['doctor'])
    expect([exitCode, stdout.trimEnd().split('\n')]).toEqual([
      1,
      [
        '! Agents work without asking for permission: they can change and run anything that you can.',
        '✗ claude (chosen): not installed',
        '    Run: npm install -g @anthropic-ai/claude-code',
        '- codex: not installed. Run: npm install -g @openai/codex',
        '- gemini: not installed. Run: npm install -g @google/gemini-cli',
        '- opencode: not installed. Run: npm install -g opencode-ai',
        '- pi: not installed. Run: npm install -g @earendil-works/pi-coding-agent',
        WELL,
        PLACE,
        NO_PODS,
        NO_DISCORD,
        NO_WHATSAPP,
      ],
    ])
  })

  it('says that a configured path is wrong, and not how to install it elsewhere', async (test) => {
    const terminal = new Terminal(test)
    const { stdout } = await terminal.run(['doctor'], { env: { BACKEND_CLI_PATH: '/opt/claude' } })
    expect(stdout.split('\n').slice(1, 3)).toEqual([
      '✗ claude (chosen): not installed',
      expect.stringContaining('    Claude CLI "/opt/claude" was not found.'),
    ])
  })

  it('ends with 1 when the chosen agent is not logged in', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('gemini', agentPath('fake-agent.sh'))
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: { AGENT_BACKEND: 'gemini' } })
    expect([exitCode, stdout.split('\n').slice(3, 5)]).toEqual([
      1,
      [
        `✗ gemini (chosen): 99.1.2 at ${path}, oneshot, not logged in`,
        '    Run: aetheel credentials set GEMINI_API_KEY',
      ],
    ])
  })

  it('counts a credential that is stored for all projects', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('gemini', agentPath('fake-agent.sh'))
    await terminal.run(['credentials', 'set', 'GEMINI_API_KEY'], { stdin: 'sk-0123456789' })
    const env = { AGENT_BACKEND: 'gemini' }
    const { exitCode, stdout } = await terminal.run(['doctor'], { env })
    expect([exitCode, stdout.split('\n')[3]]).toEqual([
      0,
      `✓ gemini (chosen): 99.1.2 at ${path}, oneshot, logged in with the stored credential GEMINI_API_KEY`,
    ])
  })

  it('ends with 1 when a directory is missing', async (test) => {
    const terminal = new Terminal(test)
    terminal.install('claude', agentPath('fake-agent.sh'))
    const env = { ...KEY, WORKING_DIR: '/nope/dir' }
    const { exitCode, stdout } = await terminal.run(['doctor'], { env })
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringContaining(
        '✗ Directories: workingDir: the directory /nope/dir does not exist\n    Run: mkdir -p /nope/dir\n',
      ),
    ])
  })

  it('lets an agent answer, and looks at no other', async (test) => {
    const terminal = new Terminal(test)
    installAnswering(terminal)
    terminal.install('codex', agentPath('fake-agent.sh'))
    const { exitCode, stdout } = await terminal.run(['doctor', '--live', '--agent', 'claude'], { env: KEY })
    const lines = stdout.split('\n')
    expect([exitCode, lines.slice(2, 4), stdout.includes('codex'), terminal.leftovers()]).toEqual([
      0,
      [
        'Asking claude for one word. Each answer costs a few tokens and may take up to a minute.',
        expect.stringMatching(/^✓ Live: claude: answered in [\d.]+ s$/),
      ],
      false,
      [],
    ])
  })

  it('ends with 1 when the chosen agent does not answer, and 0 when another does not', async (test) => {
    const terminal = new Terminal(test)
    installAnswering(terminal)
    terminal.install('pi', '/usr/bin/false')
    const live = (backend: string) => terminal.run(['doctor', '--live'], { env: { ...KEY, AGENT_BACKEND: backend } })
    const [good, bad] = [await live('claude'), await live('pi')]
    const line = (text: string) => text.split('\n').find((one) => one.includes('Live: pi'))
    expect([good.exitCode, line(good.stdout), bad.exitCode, line(bad.stdout)]).toEqual([
      0,
      '! Live: pi: Pi ended with exit code 1.',
      1,
      '✗ Live: pi: Pi ended with exit code 1.',
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
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: { ...AUTO, ...KEY } })
    expect([exitCode, stdout.split('\n')[1]]).toEqual([
      0,
      `✓ claude (chosen): 99.1.2 at ${path}, live, logged in with ANTHROPIC_API_KEY`,
    ])
  })

  it('ends with 1 when the agent is well, but Discord cannot be reached', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('claude', agentPath('fake-agent.sh'))
    const env = { ...KEY, DISCORD_BOT_TOKEN: 'a.b.c', DISCORD_API_URL: 'http://127.0.0.1:1/api' }
    const { exitCode, stdout } = await terminal.run(['doctor'], { env })
    const lines = stdout.trimEnd().split('\n')
    expect([exitCode, lines[1], lines.at(-2)]).toEqual([
      1,
      `✓ claude (chosen): 99.1.2 at ${path}, oneshot, logged in with ANTHROPIC_API_KEY`,
      '✗ 127.0.0.1:1 cannot be reached (ECONNREFUSED): check the network, any firewall and discordApiUrl',
    ])
  })

  it('warns of a version with holes, and of one too old, but does not refuse it', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('codex', agentPath('old-agent.mjs'))
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: { ...AUTO, AGENT_BACKEND: 'codex' } })
    expect([exitCode, stdout.split('\n').slice(2, 10)]).toEqual([
      0,
      [
        `! codex (chosen): 0.0.7 at ${path}, oneshot, login unknown`,
        expect.stringMatching(
          /^ {4}Version 0\.0\.7 has a known security hole \(CVE-.*\): update to [\d.]+ or newer\.$/,
        ),
        expect.stringMatching(/^ {4}Version 0\.0\.7 is older than [\d.]+, the oldest version known to work\.$/),
        '    Run: npm install -g @openai/codex',
        expect.stringMatching(/^ {4}Each turn starts a new process: version 0\.0\.7 is older than [\d.]+\.$/),
        '    Its `codex login status` does not say.',
        '    To find out: aetheel doctor --live --agent codex',
        '    To log in: codex login',
      ],
    ])
  })

  it('reports an agent without a version', async (test) => {
    const terminal = new Terminal(test)
    const path = terminal.install('pi', '/usr/bin/true')
    const { exitCode, stdout } = await terminal.run(['doctor'], { env: { ...KEY, AGENT_BACKEND: 'pi' } })
    expect([exitCode, stdout.trimEnd().split('\n').slice(-7)]).toEqual([
      0,
      [
        `! pi (chosen): version unknown at ${path}, oneshot, logged in with ANTHROPIC_API_KEY`,
        expect.stringContaining('`--version` printed none'),
        WELL,
        PLACE,
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

/** A Claude Code that answers every prompt. */
function installAnswering(terminal: Terminal): void {
  const answer = '{"type":"result","result":"OK"}'
  const script = terminal.write('claude.sh', `#!/bin/sh\n[ "$1" = --version ] && echo 99.1.2 || echo '${answer}'\n`)
  chmodSync(script, 0o755)
  terminal.install('claude', script)
}
