import type { Command } from 'commander'
import { configuredPods } from '../../runtime/configured-pods.js'
import { isLoopback } from '../../service/guards.js'
import type { CommandContext } from '../command-context.js'
import { agentsReport } from '../doctor/agents-report.js'
import { discordReport } from '../doctor/discord-report.js'
import { managedServerReport } from '../doctor/managed-server-report.js'
import { podsReport } from '../doctor/pods-report.js'
import { storeReport } from '../doctor/store-report.js'
import { whatsAppReport } from '../doctor/whatsapp-report.js'
import { probeAll } from '../probed-agents.js'
import { PERMISSIONS_NOTE, PLAIN_HTTP_NOTE } from './start.js'

export function registerDoctor(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description('Check every agent, the database, pods, Discord and WhatsApp, and say what to fix and how.')
    .action(async () => {
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
      context.endWith(isHealthy && parts.every((part) => part.isHealthy) ? 0 : 1)
    })
}
