// A compaction that no command line can do runs in a warm process.

import { expect, it, onTestFinished } from 'vitest'
import { WarmPool } from '../../../../src/backends/engine/warm/warm-pool.js'
import type { AgentMode, AgentRequest } from '../../../../src/backends/types.js'
import { agentPath } from '../../../kit/agents.js'
import { livingProcesses } from '../../../kit/living-processes.js'
import { SILENT_LOG } from '../../../kit/log.js'
import { seeRun, type SeenRun } from '../../../kit/seen-run.js'
import { createFakeBackend, createStage } from '../../fake-cli.js'

const SESSION = '6488a900-9deb-456e-98ea-de230d1950c5'

interface Options {
  mode?: AgentMode
  maxProcesses?: number
}

function setup(name: 'codex' | 'pi', { mode = 'live', maxProcesses = 8 }: Options = {}) {
  const stage = createStage()
  const log = SILENT_LOG
  const limits = { liveIdleMs: 600_000, liveMaxMemoryMb: 4096, liveSpare: false, liveMaxProcesses: maxProcesses }
  const pool = new WarmPool({ log, limits })
  onTestFinished(() => pool.stop())
  const backend = createFakeBackend(name, agentPath('warm-agent.sh'), stage, {
    dependencies: { log, now: Date.now, elapsed: Date.now, warm: { mode, pool } },
  })
  const compact = (request: Partial<AgentRequest> = {}): Promise<SeenRun> => {
    const whole = { prompt: '/compact', isCommand: true, sessionId: SESSION, ...request }
    return seeRun(backend.run(whole, new AbortController().signal))
  }
  return { compact, alive: () => livingProcesses(stage.workingDir) }
}

it.each<[when: string, options: Options]>([
  ['agents shall be one-shot', { mode: 'oneshot' }],
  ['all places are taken', { maxProcesses: 0 }],
])('even if %s, and it ends with the turn', async (_, options) => {
  const { compact, alive } = setup('codex', options)
  const { result } = await compact()
  expect([result.failure, result.finalOutput, alive()]).toEqual([undefined, '', []])
})

it.each(['codex', 'pi'] as const)('of %s, which stays for the next turns', async (name) => {
  const { compact, alive } = setup(name)
  await compact()
  const before = alive().map(({ pid }) => pid)
  const { result } = await compact()
  expect([result.failure, before.length > 0, alive().map(({ pid }) => pid)]).toEqual([undefined, true, before])
})

it('unless a command template starts the agent; one that adds nothing is none', async () => {
  const { compact } = setup('pi')
  const [none, some] = [await compact({ command: { args: [] } }), await compact({ command: { args: ['--verbose'] } })]
  expect([none.result.failure, some.result.failure?.reason, some.result.failure?.message]).toEqual([
    undefined,
    'refused',
    'Pi does not support /compact when a command template starts it. Use /new to start a fresh session.',
  ])
})
