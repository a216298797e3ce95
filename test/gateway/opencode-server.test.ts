import { join } from 'node:path'
import { describe, it, type TestContext } from 'vitest'
import { requireBackend } from '../../src/runtime/required-agents.js'
import { agentPath } from '../kit/agents.js'
import { until } from '../kit/waiting.js'
import { freePort } from '../kit/loopback.js'
import { Stage } from '../kit/stage.js'

const SERVER = { AGENT_BACKEND: 'opencode', OPENCODE_ENABLED: 'true' }
const MANAGED = { ...SERVER, OPENCODE_MANAGED: 'true', BACKEND_CLI_PATH: agentPath('serving-opencode.mjs') }

describe.concurrent('a gateway with its own OpenCode server', () => {
  it('records it while it runs, and ends it when it stops', async ({ expect, onTestFinished }) => {
    const { stage, environment } = setup(onTestFinished)
    const { gateway, channel, stop } = await stage.start({ ...MANAGED, ...environment, DRAIN_TIMEOUT_MS: '0' })
    const onRecord = async () => (await gateway.store.ledger.processesOf(gateway.id)).length
    const before = [stage.alive().length, await onRecord()]
    await channel.say('room', 'Hello')
    await until(async () => (await onRecord()) > 0, 'the start of the server')
    expect([before, stage.alive().length]).toEqual([[0, 0], 1])
    await stop()
    expect(stage.alive()).toEqual([])
  })

  it('is not started if OpenCode is missing', async ({ expect, onTestFinished }) => {
    const { stage } = setup(onTestFinished)
    const config = stage.config({ ...MANAGED, BACKEND_CLI_PATH: join(stage.directory, 'nowhere') })
    await expect(requireBackend(config, stage.environment, stage.log)).rejects.toMatchObject({
      code: 'backend_missing',
      message: expect.stringContaining('The agent opencode cannot be used. OpenCode CLI'),
    })
  })
})

describe.concurrent("a gateway with somebody else's OpenCode server", () => {
  it('starts even if the server does not answer, and says so', async ({ expect, onTestFinished }) => {
    const { stage } = setup(onTestFinished)
    const url = `http://127.0.0.1:${await freePort()}`
    const variables = { ...SERVER, OPENCODE_URL: url, OPENCODE_PASSWORD: 'very-secret' }
    const config = stage.config(variables)
    await expect(requireBackend(config, stage.environment, stage.log)).resolves.toBeUndefined()
    expect(stage.logsOf('opencode-server.unavailable')).toMatchObject([{ url, problem: expect.stringContaining(url) }])
    const { gateway } = await stage.start(variables)
    const available = await gateway.agents.availableAgents()
    expect(available.map((agent) => agent.name())).not.toContain('opencode')
    expect(await gateway.agents.get('opencode')?.probe()).toMatchObject({ isFound: false, path: url })
    expect(stage.logged.join('')).not.toContain('very-secret')
  })
})

/** The server is controlled by the agents' environment. */
function setup(onTestFinished: TestContext['onTestFinished']) {
  const stage = new Stage(onTestFinished)
  const environment = { OPENCODE_FAKE_DIRECTORY: stage.workingDir }
  Object.assign(stage.environment, environment)
  return { stage, environment }
}
