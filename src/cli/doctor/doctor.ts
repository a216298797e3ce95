import { configuredPods } from '../../runtime/configured-pods.js'
import { isLoopback } from '../../service/guards.js'
import type { CommandContext } from '../command-context.js'
import { PERMISSIONS_NOTE, PLAIN_HTTP_NOTE } from '../commands/start.js'
import { probeAll } from '../probed-agents.js'
import { agentsReport } from './agents-report.js'
import { discordReport } from './discord-report.js'
import { managedServerReport } from './managed-server-report.js'
import { podsReport } from './pods-report.js'
import { storeReport } from './store-report.js'
import { whatsAppReport } from './whatsapp-report.js'

/** Prints its findings. Returns whether everything is healthy. */
export async function doctor(context: CommandContext): Promise<boolean> {
  const { environment } = context
  const config = context.readConfig()
  const { agents, server } = await context.withAgents(config, async (configured) => ({
    agents: await probeAll(configured.all()),
    server:
      config.opencodeEnabled && configured.managedServers && (await managedServerReport(configured.managedServers)),
  }))
  const { text: report, isHealthy } = agentsReport(agents, config.agentBackend)
  if (config.agentPermissions === 'allow') console.log(`! ${PERMISSIONS_NOTE}`)
  if (config.httpEnabled && !isLoopback(config.httpHost)) console.log(`! ${PLAIN_HTTP_NOTE}`)
  console.log(report)
  const parts = [
    ...(server ? [server] : []),
    await storeReport((find) => context.readStore(config, find)),
    await podsReport(
      config,
      () => context.readStore(config, ({ projects }) => projects.list()),
      configuredPods(config, environment),
    ),
    await discordReport(config),
    await whatsAppReport(config, { environment, log: context.openLog(config) }),
  ]
  for (const { text } of parts) console.log(text)
  return isHealthy && parts.every((part) => part.isHealthy)
}
