import { expect, it } from 'vitest'
import { OpenCodeServerBackend } from '../../../../src/backends/opencode/server/opencode-server-backend.js'
import type { OpenCodeServers } from '../../../../src/backends/opencode/server/servers.js'
import type { AgentResult } from '../../../../src/backends/types.js'
import { createPrintingBackend, createStage } from '../../fake-cli.js'

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
  const config = { cliPath: '', workingDir: stage.workingDir, queryTimeoutMs: 100, allowedTools: [], maxTurns: 25 }
  const backend = new OpenCodeServerBackend(config, {}, servers, oneShot)
  const results: AgentResult[] = []
  for await (const event of backend.run({ prompt: 'Hi' }, new AbortController().signal)) {
    if (event.type === 'complete') results.push(event.result)
  }
  const message = 'The agent did not finish within 0.1 s.'
  expect(results.map(({ failure }) => failure)).toEqual([{ reason: 'timeout', message, report: 'Query timed out' }])
})
