import { vi } from 'vitest'
import { BACKEND_NAMES } from '../../src/backends/types.js'
import { describeBackendContract } from './backend-contract.js'
import { SETUPS } from './setups.js'

// Most of these tests wait for an agent to start or to be stopped.
vi.setConfig({ maxConcurrency: 8 })

for (const name of BACKEND_NAMES) describeBackendContract(name, SETUPS[name])
