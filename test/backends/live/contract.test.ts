import { vi } from 'vitest'
import { completeDependencies } from '../../../src/backends/backend-dependencies.js'
import { LiveBackend } from '../../../src/backends/live/live-backend.js'
import { LivePool } from '../../../src/backends/live/live-pool.js'
import { createBackend } from '../../../src/backends/registry.js'
import { describeBackendContract } from '../../contract/backend-contract.js'
import { SETUPS } from '../../contract/setups.js'
import { agentPath, type CreateBackend } from '../../contract/stage.js'

// Most of these tests wait for an agent to start or to be stopped.
vi.setConfig({ maxConcurrency: 8 })

const LIMITS = { idleMs: 600_000, mostProcesses: 8, mostMemoryMb: 4096, hasSpare: false }
const STAYING = agentPath('staying-agent.sh')
/** The one that can stay listens sooner or later, the others never do. */
const [READY_MS, UNREADY_MS] = [60_000, 5_000]

const create: CreateBackend = (given, dependencies) => {
  const cliPath = given.cliPath === agentPath('fake-agent.sh') ? STAYING : given.cliPath
  const config = { ...given, cliPath }
  const { log, now } = completeDependencies(dependencies)
  const oneShot = createBackend('claude', config, dependencies)
  const driver = oneShot.live()
  if (!driver) throw new Error('Claude is not kept alive')
  const pool = new LivePool({ log, limits: () => LIMITS, readyMs: cliPath === STAYING ? READY_MS : UNREADY_MS })
  return new LiveBackend(oneShot, driver, pool, { mode: 'live', config, dependencies: { log, now } })
}

describeBackendContract('claude', { ...SETUPS.claude, create, staysAs: 'staying-agent.mjs' }, 'claude that stays')
