import type { OpenCodeServers } from '../../backends/opencode/server/servers.js'
import type { GatewayConfig } from '../../config.js'
import { messageOf } from '../../errors.js'
import { configuredPods } from '../../runtime/configured-pods.js'
import { isLoopback } from '../../service/guards.js'
import type { CommandContext } from '../command-context.js'
import { PERMISSIONS_NOTE, PLAIN_HTTP_NOTE } from '../commands/start.js'
import { describeAbsence, probeAll, type ProbedAgent } from '../probed-agents.js'
import { discordReport } from './discord-report.js'
import { bad, type DoctorReport, good, renderFindings } from './findings.js'
import { podsReport } from './pods-report.js'
import { whatsAppReport } from './whatsapp-report.js'

/** Prints its findings. Returns whether everything is healthy. */
export async function doctor(context: CommandContext): Promise<boolean> {
  const { environment } = context
  const config = context.readConfig()
  const { agents, server } = await context.withAgents(config, async (configured) => ({
    agents: await probeAll(configured.all()),
    server: config.opencodeEnabled && configured.managedServers && (await serverReport(configured.managedServers)),
  }))
  const { text: report, isHealthy } = agentsReport(agents, config.agentBackend)
  if (config.agentPermissions === 'allow') console.log(`! ${PERMISSIONS_NOTE}`)
  if (config.httpEnabled && !isLoopback(config.httpHost)) console.log(`! ${PLAIN_HTTP_NOTE}`)
  console.log(report)
  const listProjects = () => context.readStore(config, ({ projects }) => projects.list())
  const parts = [
    ...(server ? [server] : []),
    await storeReport(context, config),
    await podsReport(config, listProjects, configuredPods(config, environment)),
    await discordReport(config),
    await whatsAppReport(config, { environment, log: context.openLog(config) }),
  ]
  for (const { text } of parts) console.log(text)
  return isHealthy && parts.every((part) => part.isHealthy)
}

/** Healthy if the chosen one is installed. */
function agentsReport(agents: ProbedAgent[], chosen: string): DoctorReport {
  const lines = agents.flatMap(({ backend, probe }) => {
    const name = backend.name() === chosen ? `${backend.name()} (chosen)` : backend.name()
    const mode = probe.mode === undefined ? '' : `, ${probe.mode}`
    const state = probe.isFound
      ? `${probe.version ?? 'version unknown'} at ${probe.path}${mode}`
      : describeAbsence(probe)
    const mark = !probe.isFound ? '✗' : probe.problems.length > 0 ? '!' : '✓'
    const sentences = [...probe.problems, ...(probe.whyNotLive === undefined ? [] : [probe.whyNotLive])]
    return [`${mark} ${name}: ${state}`, ...sentences.map((sentence) => `    ${sentence}`)]
  })
  const isHealthy = agents.some(({ backend, probe }) => backend.name() === chosen && probe.isFound)
  return { text: lines.join('\n'), isHealthy }
}

/** Of the OpenCode server that the gateway starts itself; undefined if OpenCode is not installed. */
async function serverReport(servers: OpenCodeServers): Promise<DoctorReport | undefined> {
  if (!(await servers.probe()).isFound) return undefined
  const needs = { environment: {}, secretFiles: [], isUntrusted: false }
  try {
    const { endpoint, release } = await servers.acquire(needs, new AbortController().signal)
    await release('nothing')
    return renderFindings('OpenCode server', [good(`it starts, and was ready at ${endpoint.url}`)])
  } catch (error) {
    const advice = 'Until it does, set OPENCODE_ENABLED=false: then each turn has a process of its own.'
    return renderFindings('OpenCode server', [bad(messageOf(error), advice)])
  }
}

async function storeReport(context: CommandContext, config: GatewayConfig): Promise<DoctorReport> {
  try {
    const engine = await context.readStore(config, async (store) => {
      await store.check()
      return store.engine
    })
    return renderFindings('Database', [good(engine === 'sqlite' ? 'SQLite, no damage found' : 'PostgreSQL, reached')])
  } catch (error) {
    return renderFindings('Database', [bad('it cannot be used', messageOf(error))])
  }
}
