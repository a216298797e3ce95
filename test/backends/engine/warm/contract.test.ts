import { vi } from 'vitest'
import { completeDependencies } from '../../../../src/backends/engine/cli-backend.js'
import { WarmPool } from '../../../../src/backends/engine/warm/warm-pool.js'
import { createBackend } from '../../../../src/backends/registry.js'
import type { BackendName } from '../../../../src/backends/types.js'
import { ARE_ALL_COMBINATIONS, type BackendSetup, describeBackendContract } from '../../../contract/backend-contract.js'
import { geminiToolId, liveSpeakers } from '../../../contract/live-wire-formats.js'
import { SETUPS } from '../../../contract/setups.js'
import { agentPath } from '../../../kit/agents.js'
import { type CreateBackend } from '../../../contract/stage.js'

// Most of these tests wait for an agent to start or to be stopped.
vi.setConfig({ maxConcurrency: 8 })

const LIMITS = { liveIdleMs: 600_000, liveMaxProcesses: 8, liveMaxMemoryMb: 4096, liveSpare: false }
const WARM_AGENT = agentPath('warm-agent.sh')
/** Only the warm one ever becomes ready. */
const [READY_MS, UNREADY_MS] = [60_000, 500]

const SHARED = 'It takes the turns of several sessions.'
const SAID_LATER = 'It is said when a session is opened or asked.'

const DIFFERENCES = {
  claude: { warmCommand: '--input-format stream-json' },
  codex: {
    warmCommand: ' app-server ',
    speaker: liveSpeakers.codex,
    overlooksKinds: 'It tells of much that is about no turn.',
    saysModel: SAID_LATER,
    isShared: SHARED,
  },
  gemini: {
    warmCommand: ' --acp ',
    speaker: liveSpeakers.gemini,
    isCounted: true,
    toolId: geminiToolId,
    toolInput: (command) => ({ title: command }),
    tellsThoughts: true,
    overlooksKinds: 'It tells of much that is about no turn.',
    hidesCache: 'Its count does not tell.',
    saysModel: SAID_LATER,
    isShared: SHARED,
  },
  pi: { warmCommand: ' --mode rpc', speaker: liveSpeakers.pi },
} satisfies Partial<Record<BackendName, Partial<BackendSetup>>>

/** One with exclusive processes and one with a shared process; the others are like one of them. */
const NAMES = ARE_ALL_COMBINATIONS ? (['claude', 'codex', 'gemini', 'pi'] as const) : (['claude', 'codex'] as const)

for (const name of NAMES) {
  const create: CreateBackend = (given, dependencies) => {
    const cliPath = given.cliPath === agentPath('fake-agent.sh') ? WARM_AGENT : given.cliPath
    const { log } = completeDependencies(dependencies)
    const pool = new WarmPool({ log, limits: LIMITS, readyMs: cliPath === WARM_AGENT ? READY_MS : UNREADY_MS })
    return createBackend(name, { ...given, cliPath }, { ...dependencies, warm: { mode: 'live', pool } })
  }
  describeBackendContract(name, { ...SETUPS[name], ...DIFFERENCES[name], create }, `a warm ${name}`)
}
