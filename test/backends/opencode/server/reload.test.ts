import { expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../../../src/config.js'
import { ConfiguredAgents } from '../../../../src/runtime/configured-agents.js'
import { until } from '../../../kit/waiting.js'
import { promptOf } from './fake-opencode.js'
import { ServerStage } from './stage.js'

it('a turn after a change of the configuration waits for the one before it in the same session', async () => {
  const stage = await ServerStage.open()
  const { url, password } = stage.server.endpoint
  const config = loadConfig({
    AETHEEL_HOME: stage.workingDir,
    AGENT_BACKEND: 'opencode',
    OPENCODE_ENABLED: 'true',
    OPENCODE_URL: url,
    OPENCODE_PASSWORD: password,
  })
  const agents = new ConfiguredAgents(config, { environment: {} })
  onTestFinished(() => agents.stop())
  const controller = new AbortController()
  const { workingDir } = stage
  const request = { sessionId: 'ses_known', workingDir }
  const hang = promptOf({ do: 'start' }, { do: 'hang' })
  const hello = promptOf({ do: 'start' }, { do: 'say', texts: ['Hello'] }, { do: 'step', reason: 'stop' })
  const first = stage.see({ ...request, prompt: hang }, { backend: agents.open('opencode'), signal: controller.signal })
  await until(() => stage.asked('POST', /message$/).length === 1, 'the first prompt')
  config.backendModel = 'some/model'
  const second = stage.see({ ...request, prompt: hello }, { backend: agents.open('opencode') })
  controller.abort()
  const [ended, { output }] = await Promise.all([first, second])
  const [, asked] = stage.asked('POST', /message$/)
  expect([ended.result.failure?.reason, output, asked?.body['model'], stage.server.listeners]).toEqual([
    'cancelled',
    'Hello',
    { providerID: 'some', modelID: 'model' },
    1,
  ])
})
