import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { agentPath } from '../../kit/agents.js'
import { until } from '../../kit/waiting.js'
import { Terminal } from '../../kit/terminal.js'

const MANAGED = { OPENCODE_ENABLED: 'true', OPENCODE_MANAGED: 'true', AGENT_BACKEND: 'opencode' }

describe.concurrent('aetheel doctor, if the gateway starts the OpenCode server', () => {
  it('starts it, says that it is ready, and leaves nothing', async (test) => {
    const { terminal, env, path } = setup(test)
    const { exitCode, stdout } = await terminal.run(['doctor'], { env })
    const lines = stdout.split('\n').filter((line) => line.startsWith('✓'))
    test
      .expect([exitCode, lines])
      .toEqual([
        0,
        [
          `✓ opencode (chosen): 1.18.33 at ${path}, live, logged in with OPENROUTER_API_KEY`,
          expect.stringMatching(/^✓ OpenCode server: it starts, and was ready at http:\/\/127\.0\.0\.1:\d+$/),
          '✓ Database: SQLite, no damage found',
          '✓ Directories: the working directory exists',
        ],
      ])
    expect(terminal.leftovers()).toEqual([])
  })

  it('says why it does not start, and ends with 1', async (test) => {
    const { terminal, env } = setup(test)
    terminal.write('mode', 'exits')
    const { exitCode, stdout } = await terminal.run(['doctor'], { env })
    const expected = '✗ OpenCode server: The OpenCode server did not start: it ended with exit code 1'
    expect([exitCode, stdout.includes(expected)]).toEqual([1, true])
  })

  it('says only once that OpenCode is not installed', async (test) => {
    const { stdout } = await new Terminal(test).run(['doctor'], { env: MANAGED })
    expect(stdout.match(/opencode.* not installed/gi)?.length).toBe(1)
    expect(stdout).not.toContain('OpenCode server')
  })

  it('leaves no server when it is killed', async (test) => {
    const { terminal, env } = setup(test)
    terminal.write('mode', 'silent')
    const doctor = terminal.open(['doctor'], env)
    await until(() => existsSync(join(terminal.project, 'starts')), 'the start of the server')
    doctor.kill('SIGKILL')
    await doctor.exited
    await until(() => terminal.leftovers().length === 0, 'the end of the server')
    expect(terminal.leftovers()).toEqual([])
  })
})

function setup(test: TestContext) {
  const terminal = new Terminal(test)
  const path = terminal.install('opencode', agentPath('serving-opencode.mjs'))
  return { terminal, path, env: { ...MANAGED, OPENROUTER_API_KEY: 'x', OPENCODE_FAKE_DIRECTORY: terminal.project } }
}
