import type { BackendName } from '../backends/types.js'
import type { ReplyConfig } from '../config/inbound.js'
import type { GatewayConfig } from '../config.js'
import { isDirectory } from '../core/paths.js'
import { GatewayError } from '../errors.js'
import type { Log } from '../log.js'
import { agentProblem } from './configured-agents.js'

/**
 * Checks, before anything else, that the chosen agents are installed and have a directory to work in.
 *
 * Contract: throws `backend_missing` with the agent's name and path, or `config_invalid`.
 */
export async function requireBackend(config: GatewayConfig, environment: NodeJS.ProcessEnv, log: Log): Promise<void> {
  if (!isDirectory(config.workingDir)) {
    const advice = 'Create it, or set WORKING_DIR to an existing one.'
    throw new GatewayError('config_invalid', `The working directory ${config.workingDir} does not exist. ${advice}`)
  }
  const { cwd } = replyOf(config) ?? {}
  if (cwd !== undefined && !isDirectory(cwd)) {
    const advice = 'Create it, or set inbound.reply.cwd to an existing one.'
    throw new GatewayError(
      'config_invalid',
      `The directory ${cwd} for messages from WhatsApp does not exist. ${advice}`,
    )
  }
  for (const { name, executable } of neededAgents(config)) {
    const problem = await agentProblem(name, executable, config, { environment, log })
    if (problem === undefined) continue
    // The server may start later; until then messages fail with this problem.
    if (isExternalServer(name, executable, config)) {
      log.warn('opencode-server.unavailable', { url: config.opencodeUrl, problem })
      continue
    }
    log.error('backend.missing', { backend: name, path: executable ?? config.backendCliPath })
    throw new GatewayError('backend_missing', `The agent ${name} cannot be used. ${problem}`)
  }
}

/** Whether it is a server that the gateway does not start. */
function isExternalServer(name: BackendName, executable: string | undefined, config: GatewayConfig): boolean {
  return name === 'opencode' && executable === undefined && config.opencodeEnabled && !config.opencodeManaged
}

/** The reply settings for WhatsApp, if it is enabled. */
function replyOf({ twilioAccountSid, inbound }: GatewayConfig): ReplyConfig | undefined {
  return twilioAccountSid === undefined ? undefined : inbound?.reply
}

/** `executable` is that of the operator's own command, if any. */
function neededAgents(config: GatewayConfig): Array<{ name: BackendName; executable: string | undefined }> {
  const { agent, command } = replyOf(config) ?? {}
  const relayed = agent ? [{ name: agent.kind, executable: command?.[0] }] : []
  return [{ name: config.agentBackend, executable: undefined }, ...relayed]
}
