import { expect, it } from 'vitest'
import { OpenCodeServerBackend } from '../../../../src/backends/opencode/server/opencode-server-backend.js'
import type { OpenCodeServers } from '../../../../src/backends/opencode/server/servers.js'
import type { AgentCommand } from '../../../../src/backends/types.js'
import { createPrintingBackend, createStage } from '../../fake-cli.js'
import { adapterConfig } from '../../../kit/adapter-config.js'
import { seeRun } from '../../../kit/seen-run.js'

it.each<[AgentCommand, string]>([
  [{ args: [], isReadOnly: true }, 'server'],
  [{ args: [], format: 'json' }, 'server'],
  [{ args: [], executable: '/usr/bin/env' }, 'command line'],
  [{ args: ['--agent', 'plan'] }, 'command line'],
  [{ args: [], sessionArgs: ['--fork'] }, 'command line'],
  [{ args: [], format: 'text' }, 'command line'],
])('has a turn with the command %o at the %s', async (command, place) => {
  const stage = createStage()
  const servers: OpenCodeServers = {
    acquire: () => Promise.reject(new Error('at the server')),
    isFound: async () => true,
    probe: async () => ({ isFound: true, problems: [] }),
    stop: async () => {},
  }
  const oneShot = createPrintingBackend('opencode', { stderr: 'at the command line', exit: 1 }, stage)
  const config = adapterConfig({ workingDir: stage.workingDir })
  const backend = new OpenCodeServerBackend(config, {}, servers, oneShot)
  const { result } = await seeRun(backend.run({ prompt: 'Hi', command }, new AbortController().signal))
  expect(result.isError).toBe(true)
  expect(result.failure?.reason).toBe(place === 'server' ? 'spawn' : 'exit')
})
