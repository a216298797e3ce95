import { vi } from 'vitest'
import { OpenCodeBackend } from '../../../../src/backends/opencode/backend.js'
import { ExternalServer } from '../../../../src/backends/opencode/server/servers.js'
import { OpenCodeServerBackend } from '../../../../src/backends/opencode/server/opencode-server-backend.js'
import { describeBackendContract } from '../../../contract/backend-contract.js'
import type { Stage } from '../../../contract/stage.js'
import type { Speaker } from '../../../contract/wire-formats.js'
import { type Action, FakeOpenCode, UNKNOWN } from './fake-opencode.js'

// Most of these tests wait for an agent to start or to be stopped.
vi.setConfig({ maxConcurrency: 8 })

const servers = new WeakMap<Stage, FakeOpenCode>()

function serverOf(stage: Stage): FakeOpenCode {
  const server = servers.get(stage)
  if (!server) throw new Error('The stage has no server')
  return server
}

function speaker(): Speaker {
  const act = (...actions: Action[]): Action[] => actions
  return {
    start: () => act({ do: 'start' }),
    say: (texts) => act({ do: 'say', texts }),
    think: (text) => act({ do: 'think', text }),
    toolCall: (id, command) => act({ do: 'tool', id, command }),
    toolResult: (id, _command, output, isError) =>
      act({ do: 'tool-end', id, output, isError }, { do: 'step', reason: 'tool-calls' }),
    answer: (texts) => act({ do: 'say', texts }, { do: 'step', reason: 'stop' }),
    fail: (message) => act({ do: 'error', error: { name: 'UnknownError', data: { message } } }),
  }
}

describeBackendContract(
  'opencode',
  {
    newSession: 'ses_1111111111111111',
    knownSession: 'ses_2222222222222222',
    otherSession: 'ses_3333333333333333',
    wrongSessions: ['ses_', 'ses_1 --share', 'ses_1111111111111111\n', '11111111-1111-4111-8111-111111111111'],
    async prepare(stage) {
      const server = await FakeOpenCode.start(stage.workingDir, stage.environment)
      servers.set(stage, server)
      return () => server.close()
    },
    create(config, dependencies, stage) {
      const server = new ExternalServer(serverOf(stage).endpoint)
      return new OpenCodeServerBackend(config, dependencies, server, new OpenCodeBackend(config, dependencies))
    },
    speaker,
    withoutProcess: 'The server has the processes, and its own way to call them.',
    label: 'OpenCode',
    unknownSession: [{ exit: Number(UNKNOWN.replace('exit ', '')) }],
    startsAnew: false,
    isCounted: true,
    shellTool: 'bash',
    tellsFinishedTools: false,
    tellsThoughts: true,
    documents: {},
    sent: (prompt) => prompt,
    ownVariable: 'OPENROUTER_API_KEY',
    foreignVariable: 'OPENCODE_PASSWORD',
  },
  'opencode server',
)
