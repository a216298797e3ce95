/** Where the agent of a stage runs, and who drives it there. */
import { createBackend } from '../src/backends/registry.js'
import type { AgentBackend, AgentRequest, AgentResult, BackendAdapterConfig } from '../src/backends/types.js'
import type { Log } from '../src/log.js'
import { join } from 'node:path'
import type { Agent, McpServer } from './agents.js'
import type { Installation } from './installations.js'
import { createSandbox, type Sandbox, type SandboxProcess } from './sandbox.js'

/** Far more than any turn takes; what may not take long has a limit of its own. */
const turnTimeoutMs = 100_000

/** Every agent that can have one has one, so that each cell shows that it goes with its agent. */
export const idleServer: McpServer = {
  command: process.execPath,
  args: [join(import.meta.dirname, 'mcp-server.mjs')],
}

export interface PlaceOptions {
  agent: Agent
  installation: Installation
  modelUrl: string
  /** For the backend. */
  log: Log
}

export interface Place {
  sandbox: Sandbox
  backend: AgentBackend
  /** Goes with every request to the backend. */
  request?: Partial<AgentRequest>
  /** For a whole gateway in place of the backend. */
  gatewayEnvironment: Record<string, string>
  /** In which its conversation is; left out, in none. */
  gatewayProject?: string
  /** Whether it is to live on from turn to turn; with the backend or the gateway it ends all the same. */
  stays(process: SandboxProcess): boolean
  /** How long the agent may take for what it does beside a turn; left out, there is nothing of that kind. */
  besideMs?: number
  /** Contract: throws when the turn did not run as it should here. */
  checkTurn?(result: AgentResult): void
  /** Ends what stays. Contract: may be called twice. */
  close(): Promise<void>
}

export type OpenPlace = (options: PlaceOptions) => Promise<Place>

/** One process per turn, on this machine. */
export const openOneshot: OpenPlace = async ({ agent, installation, modelUrl, log }) => {
  const sandbox = await createSandbox(agent, modelUrl, installation.path, idleServer)
  const { environment } = sandbox
  return {
    sandbox,
    backend: createBackend(agent.name, adapterConfig(agent, installation, sandbox.workspace), { environment, log }),
    gatewayEnvironment: gatewayEnvironment(agent, installation, sandbox),
    stays: () => false,
    close: async () => {},
  }
}

export function adapterConfig(agent: Agent, { cliPath }: Installation, workingDir: string): BackendAdapterConfig {
  return { cliPath, workingDir, queryTimeoutMs: turnTimeoutMs, allowedTools: [], maxTurns: 25, model: agent.model }
}

export function gatewayEnvironment(
  agent: Agent,
  { cliPath }: Installation,
  { environment, workspace }: Sandbox,
): Record<string, string> {
  return {
    ...environment,
    AGENT_BACKEND: agent.name,
    BACKEND_CLI_PATH: cliPath,
    AGENT_MODE: 'oneshot',
    BACKEND_MODEL: agent.model,
    WORKING_DIR: workspace,
    // Told to end, it shall not wait for its agents.
    DRAIN_TIMEOUT_MS: '0',
  }
}
