/** Where the agent of a stage runs, and who drives it there. */
import { createBackend } from '../src/backends/registry.js'
import type { AgentBackend, AgentRequest, AgentResult, BackendAdapterConfig } from '../src/backends/types.js'
import type { Log } from '../src/log.js'
import { join } from 'node:path'
import type { Agent, McpServer } from './agents.js'
import type { Installation } from './installations.js'
import { createSandbox, type Sandbox, type SandboxProcess } from './sandbox.js'

/** Far more than any turn takes; whatever must be quick has its own limit. */
const turnTimeoutMs = 100_000

/** Every agent that supports MCP gets this server, so each cell shows that it ends with its agent. */
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
  /** Part of every request to the backend. */
  request?: Partial<AgentRequest>
  /** For a whole gateway instead of the backend. */
  gatewayEnvironment: Record<string, string>
  /** The conversation's project; absent, none. */
  gatewayProject?: string
  /** Whether it stays alive between turns; it still ends with the backend or the gateway. */
  stays(process: SandboxProcess): boolean
  /** How long the agent may take for work outside a turn; absent, there is none. */
  besideMs?: number
  /** Contract: throws if the turn did not run as it should here. */
  checkTurn?(result: AgentResult): void
  /** Ends warm processes. Contract: may be called twice. */
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
    // On shutdown it must not wait for its agents.
    DRAIN_TIMEOUT_MS: '0',
  }
}
