import type { OpenCodeServers } from '../../backends/opencode/server/servers.js'
import type { BackendName } from '../../backends/types.js'
import type { GatewayConfig } from '../../config.js'
import { CredentialStore } from '../../credentials/credential-store.js'
import { KeyRing } from '../../credentials/key-ring.js'
import { messageOf } from '../../errors.js'
import { configuredPods } from '../../runtime/configured-pods.js'
import type { Admission } from '../../store/admissions.js'
import { isLoopback } from '../../service/guards.js'
import { type CommandContext, STOP_SIGNALS } from '../command-context.js'
import { PERMISSIONS_NOTE, PLAIN_HTTP_NOTE } from '../commands/start.js'
import { probeAll, type ProbedAgent } from '../probed-agents.js'
import { agentsReport } from './agents-report.js'
import { directoriesReport } from './directories-report.js'
import { discordReport } from './discord-report.js'
import { bad, type DoctorReport, good, renderFindings } from './findings.js'
import { liveFinding } from './live-report.js'
import { podsReport } from './pods-report.js'
import { whatsAppReport } from './whatsapp-report.js'

export interface DoctorFlags {
  /** Runs one real turn of each agent. */
  live?: true
  /** Checks only this agent, as if it were the chosen one. */
  agent?: BackendName
}

/** Prints all findings. Returns whether everything is healthy. */
export async function doctor(context: CommandContext, flags: DoctorFlags = {}): Promise<boolean> {
  const { environment } = context
  const config = context.readConfig()
  if (config.agentPermissions === 'allow') console.log(`! ${PERMISSIONS_NOTE}`)
  if (config.httpEnabled && !isLoopback(config.httpHost)) console.log(`! ${PLAIN_HTTP_NOTE}`)
  const ofAgents = await agentsReports(context, config, flags)
  const listProjects = () => context.readStore(config, ({ projects }) => projects.list())
  const admitted = await admittedPeople(context, config)
  const parts = [
    await storeReport(context, config),
    await directoriesReport(config, listProjects),
    await podsReport(config, listProjects, configuredPods(config, environment)),
    await discordReport(config, admitted.discord),
    await whatsAppReport(config, { environment, admitted: admitted.whatsapp, log: context.openLog(config) }),
  ]
  for (const { text } of parts) console.log(text)
  return [...ofAgents, ...parts].every(({ isHealthy }) => isHealthy)
}

/** Prints them as they come: a turn may take a minute. */
async function agentsReports(
  context: CommandContext,
  config: GatewayConfig,
  { live, agent }: DoctorFlags,
): Promise<DoctorReport[]> {
  const chosen = agent ?? config.agentBackend
  const storedVariables = await context.storedVariables(config)
  return context.withAgents(config, async (configured) => {
    const reports: DoctorReport[] = []
    const print = (report: DoctorReport): void => {
      console.log(report.text)
      reports.push(report)
    }
    const backends = configured.all().filter((backend) => agent === undefined || backend.name() === agent)
    const agents = await probeAll(backends, { storedVariables })
    print(agentsReport(agents, chosen))
    if (live) for await (const report of liveReports(context, config, agents, chosen)) print(report)
    const { managedServers } = configured
    const server = config.opencodeEnabled && managedServers && (await serverReport(managedServers))
    if (server) print(server)
    return reports
  })
}

/** One after the other: several at once could slow each other down beyond their time limit. */
async function* liveReports(
  context: CommandContext,
  config: GatewayConfig,
  agents: ProbedAgent[],
  chosen: string,
): AsyncGenerator<DoctorReport> {
  const installed = agents.filter(({ probe }) => probe.isFound)
  if (installed.length === 0) return
  const names = installed.map(({ backend }) => backend.name()).join(', ')
  console.log(`Asking ${names} for one word. Each answer costs a few tokens and may take up to a minute.`)
  const options = {
    request: { ...(await secretsOf(context, config)), ...(config.agentPermissions === 'ask' && { approve: deny }) },
    scrubber: context.scrubber,
    signal: context.abortOn(STOP_SIGNALS),
    now: Date.now,
  }
  for (const agent of installed) {
    const finding = await liveFinding(agent, options)
    const isOfChosen = agent.backend.name() === chosen
    yield renderFindings('Live', [finding.mark === '✗' && !isOfChosen ? { ...finding, mark: '!' } : finding])
  }
}

const deny = async () => ({ isAllowed: false as const, message: 'This is only a check: use no tool.' })

async function secretsOf(context: CommandContext, config: GatewayConfig) {
  const { environment, scrubber } = context
  const keyRing = new KeyRing({ home: config.home, masterKey: environment['AETHEEL_MASTER_KEY'], scrubber })
  try {
    return await context.readStore(config, (store) =>
      new CredentialStore({ store, keyRing, scrubber, now: Date.now }).secretsFor(),
    )
  } catch (error) {
    console.log(`! Stored credentials cannot be used: ${messageOf(error)}`)
    return {}
  }
}

/** Checks the OpenCode server that the gateway starts itself; undefined if OpenCode is not installed. */
async function serverReport(servers: OpenCodeServers): Promise<DoctorReport | undefined> {
  if (!(await servers.isFound())) return undefined
  const needs = { environment: {}, secretFiles: [], isUntrusted: false }
  try {
    const { endpoint, release } = await servers.acquire(needs, new AbortController().signal)
    await release('nothing')
    return renderFindings('OpenCode server', [good(`it starts, and was ready at ${endpoint.url}`)])
  } catch (error) {
    const advice = 'Until this is fixed, set OPENCODE_ENABLED=false: each turn then runs in its own process.'
    return renderFindings('OpenCode server', [bad(messageOf(error), advice)])
  }
}

/** The names of the people let in with `/allow`, by channel. */
async function admittedPeople(
  context: CommandContext,
  config: GatewayConfig,
): Promise<{ discord: string[]; whatsapp: string[] }> {
  const namesIn = (all: Admission[], name: string): string[] =>
    all.filter(({ channel }) => channel === name).map((person) => person.name)
  try {
    const all = await context.readStore(config, ({ admissions }) => admissions.list())
    return { discord: namesIn(all, 'discord'), whatsapp: namesIn(all, 'whatsapp') }
  } catch {
    return { discord: [], whatsapp: [] } // The database part reports that.
  }
}

async function storeReport(context: CommandContext, config: GatewayConfig): Promise<DoctorReport> {
  try {
    const engine = await context.readStore(config, async (store) => {
      await store.check()
      return store.engine
    })
    return renderFindings('Database', [good(engine === 'sqlite' ? 'SQLite, no damage found' : 'PostgreSQL, reachable')])
  } catch (error) {
    return renderFindings('Database', [bad('it cannot be used', messageOf(error))])
  }
}
