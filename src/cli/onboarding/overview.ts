import type { AgentProbe } from '../../backends/types.js'
import type { GatewayConfig } from '../../config.js'
import { fileExists } from '../../config/file.js'
import { DEMO_AGENT_NAME } from '../../core/demo-agent.js'
import { oneLine } from '../../core/one-line.js'
import { packageVersion } from '../../core/package-version.js'
import { GatewayError, messageOf } from '../../errors.js'
import { databaseFile } from '../../gateway.js'
import type { CommandContext } from '../command-context.js'
import { ControlClient } from '../control/client.js'
import { type GatewayStatus, socketPath } from '../control/protocol.js'
import { age } from '../listing.js'
import { closing } from '../open-store.js'
import { ownName } from '../own-name.js'
import { adviceToLogIn, describeAbsence, describeLogin } from '../probed-agents.js'
import { table } from '../table.js'

const SHOWN_FAILURES = 3
const PROBLEM_CHARACTERS = 100

/** The status of an existing setup, and what to do next. */
export async function overview(context: CommandContext): Promise<string> {
  const config = context.readConfig()
  const status = await statusOf(config)
  const storedVariables = await storedVariablesOf(context, config)
  const agent = await context.withAgents(config, (agents) =>
    agents.open(config.agentBackend).probe({ storedVariables }),
  )
  const rows = [
    ['Gateway', status ? `running as process ${status.pid} for ${age(status.startedAt, Date.now())}` : 'not running'],
    ['Agent', agent.isFound ? nameOf(config, agent) : `${config.agentBackend}, ${describeAbsence(agent)}`],
    ['Permissions', config.agentPermissions === 'ask' ? 'ask before acting' : 'everything is allowed'],
    ['Dashboard', dashboardOf(config, status)],
    ['Channels', channelsOf(config).join(', ')],
    ['Directory', directoryOf(config)],
    ['Settings', config.configFile ?? 'none; defaults and the environment'],
  ]
  const failures = await failuresOf(context, config)
  const next = nextSteps(ownName(context.configLocation()), config, status, failures.length > 0, agent.isFound)
  return [
    `Aetheel ${packageVersion()}`,
    '',
    table(rows),
    ...(failures.length === 0 ? [] : ['', 'Recent failures', ...failures]),
    ...(agent.login?.state === 'logged-out' ? ['', `Log the agent in. ${adviceToLogIn(agent.login)}`] : []),
    '',
    table(next),
  ].join('\n')
}

async function statusOf({ home }: GatewayConfig): Promise<GatewayStatus | undefined> {
  const running = await ControlClient.connect(socketPath(home))
  return running && closing(running, (control) => control.call('status', {}))
}

function nameOf({ isDemoAgent, agentBackend }: GatewayConfig, { version, login }: AgentProbe): string {
  const name = version === undefined ? agentBackend : `${agentBackend} ${version}`
  return isDemoAgent ? DEMO_AGENT_NAME : `${name}, ${describeLogin(login)}`
}

function dashboardOf({ httpEnabled, httpHost, httpPort }: GatewayConfig, status: GatewayStatus | undefined): string {
  if (status) return status.dashboardUrl ?? 'off'
  return httpEnabled ? `http://${httpHost}:${httpPort}, once the gateway is running` : 'off'
}

function channelsOf({ httpEnabled, discordBotToken, twilioAccountSid }: GatewayConfig): string[] {
  return [
    'terminal',
    ...(httpEnabled ? ['dashboard', 'HTTP'] : []),
    ...(discordBotToken === undefined ? [] : ['Discord']),
    ...(twilioAccountSid === undefined ? [] : ['WhatsApp']),
  ]
}

function directoryOf({ projects, defaultProject, workingDir }: GatewayConfig): string {
  const project = projects.find(({ id }) => id === defaultProject)
  return project ? `${project.directory} (project ${project.id})` : workingDir
}

/** Does not create a database only to read it. */
async function storedVariablesOf(context: CommandContext, config: GatewayConfig): Promise<string[]> {
  return hasStore(config) ? context.storedVariables(config) : []
}

function hasStore(config: GatewayConfig): boolean {
  return config.databaseUrl !== undefined || fileExists(databaseFile(config))
}

/** A line for each of the latest messages that failed. */
async function failuresOf(context: CommandContext, config: GatewayConfig): Promise<string[]> {
  if (!hasStore(config)) return []
  try {
    const failed = await context.readStore(config, (store) => store.inbox.listFailed(SHOWN_FAILURES))
    return failed.map(({ text, problem = '' }) => `  ${oneLine(text, 40)}: ${oneLine(problem, PROBLEM_CHARACTERS)}`)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return [`  The database cannot be read: ${messageOf(error)}`]
  }
}

function nextSteps(
  name: string,
  { httpEnabled }: GatewayConfig,
  status: GatewayStatus | undefined,
  hasFailures: boolean,
  isAgentFound: boolean,
): string[][] {
  const hasDashboard = status ? status.dashboardUrl !== undefined : httpEnabled
  return [
    ...(status ? [] : [[`${name} start`, 'runs the gateway']]),
    ...(status && hasDashboard ? [[`${name} dashboard --open`, 'opens the dashboard, logged in']] : []),
    [`${name} chat`, status ? 'talks to it here' : 'talks to the agent here, even without a gateway'],
    ...(hasFailures ? [[`${name} queue list`, 'shows what failed, and how to retry it']] : []),
    [`${name} doctor`, isAgentFound ? 'checks everything' : 'says how to install the agent'],
    [`${name} init`, 'runs the setup again'],
    [`${name} --help`, 'lists all commands'],
  ]
}
