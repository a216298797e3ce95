import { expect, it } from 'vitest'
import { OpenCodeServerBackend } from '../../../../src/backends/opencode/server/opencode-server-backend.js'
import type { OpenCodeServers } from '../../../../src/backends/opencode/server/servers.js'
import { createPrintingBackend, createStage } from '../../fake-cli.js'
import { adapterConfig } from '../../../kit/adapter-config.js'
import { seeRun } from '../../../kit/seen-run.js'

it('counts the wait for a server as time of the turn', async () => {
  const stage = createStage()
  const servers: OpenCodeServers = {
    acquire: (_needs, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('It was stopped.')))),
    isFound: async () => true,
    probe: async () => ({ isFound: true, problems: [] }),
    stop: async () => {},
  }
  const oneShot = createPrintingBackend('opencode', {}, stage)
  const config = adapterConfig({ workingDir: stage.workingDir, queryTimeoutMs: 100 })
  const backend = new OpenCodeServerBackend(config, {}, servers, oneShot)
  const { result } = await seeRun(backend.run({ prompt: 'Hi' }, new AbortController().signal))
  const message = 'The agent did not finish within 0.1 s.'
  expect(result.failure).toEqual({ reason: 'timeout', message, report: 'Query timed out' })
})
