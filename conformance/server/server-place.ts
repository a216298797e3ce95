/** OpenCode as a server: started and supervised by us, or started by an operator. */
import {
  ExternalServer,
  type OpenCodeEndpoint,
  type OpenCodeServers,
} from '../../src/backends/opencode/server/servers.js'
import { ManagedServers } from '../../src/backends/opencode/server/managed-servers.js'
import { OpenCodeServerBackend } from '../../src/backends/opencode/server/opencode-server-backend.js'
import { OpenCodeBackend } from '../../src/backends/opencode/backend.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { endNow } from '../../test/kit/living-processes.js'
import type { Agent } from '../agents.js'
import {
  adapterConfig,
  gatewayEnvironment,
  idleServer,
  type OpenPlace,
  type Place,
  type PlaceOptions,
} from '../place.js'
import { createSandbox, type Sandbox, type SandboxProcess } from '../sandbox.js'
import { startOpenCodeServe } from './opencode-serve.js'

/** The operator's settings, in addition to those with which OpenCode finds the scripted model. */
type Settings = Record<string, unknown>

export function openManaged(settings: Settings = {}): OpenPlace {
  return async (options) => {
    const sandbox = await openSandbox(options, settings)
    const servers = (cli: OpenCodeBackend): OpenCodeServers =>
      new ManagedServers({ cli: () => cli, scrubber: createScrubber(), log: options.log })
    return placeOf(options, sandbox, servers)
  }
}

interface ExternalOptions {
  settings?: Settings
  /** How the backend reaches it. */
  reach?(endpoint: OpenCodeEndpoint): Promise<OpenCodeEndpoint>
}

export function openExternal({ settings = {}, reach }: ExternalOptions = {}): OpenPlace {
  return async (options) => {
    const sandbox = await openSandbox(options, settings)
    const { endpoint, kill } = await startOpenCodeServe(options.installation.cliPath, sandbox)
    const reached = (await reach?.(endpoint)) ?? endpoint
    const place = placeOf(options, sandbox, () => new ExternalServer(reached))
    const close = async (): Promise<void> => {
      await place.close()
      await kill()
      // Whoever started the server also ends its processes.
      for (const { pid } of (await sandbox.processes()).filter(isOfServer)) endNow(pid)
    }
    return { ...place, close }
  }
}

function openSandbox({ agent, installation, modelUrl }: PlaceOptions, settings: Settings): Promise<Sandbox> {
  return createSandbox(withSettings(agent, settings), modelUrl, installation.path, idleServer)
}

function withSettings(agent: Agent, settings: Settings): Agent {
  return {
    ...agent,
    homeFiles(modelUrl, mcpServer) {
      const { 'opencode.json': own = '{}', ...others } = agent.homeFiles(modelUrl, mcpServer)
      return { ...others, 'opencode.json': JSON.stringify({ ...(JSON.parse(own) as Settings), ...settings }) }
    },
  }
}

function placeOf(
  { agent, installation, log }: PlaceOptions,
  sandbox: Sandbox,
  serversOf: (cli: OpenCodeBackend) => OpenCodeServers,
): Place {
  const config = adapterConfig(agent, installation, sandbox.workspace)
  const dependencies = { environment: sandbox.environment, log }
  const oneShot = new OpenCodeBackend(config, dependencies)
  const backend = new OpenCodeServerBackend(config, dependencies, serversOf(oneShot), oneShot)
  return {
    sandbox,
    backend,
    gatewayEnvironment: {
      ...gatewayEnvironment(agent, installation, sandbox),
      OPENCODE_ENABLED: 'true',
      OPENCODE_MANAGED: 'true',
    },
    stays: isOfServer,
    // After its answer, OpenCode compares its snapshots of the directory with git.
    besideMs: 5_000,
    close: () => backend.stop(),
  }
}

function isOfServer({ command }: SandboxProcess): boolean {
  return isServer(command) || idleServer.args.every((argument) => command.includes(argument))
}

export function isServer(command: string): boolean {
  return command.includes(' serve --hostname ')
}
