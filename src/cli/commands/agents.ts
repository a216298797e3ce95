import type { Command } from 'commander'
import type { AgentProbe, BackendName } from '../../backends/types.js'
import { DEMO } from '../../core/demo-agent.js'
import type { CommandContext } from '../command-context.js'
import { howToLogIn, liveCheckOf, probeAll, type ProbedAgent, REAL_AGENT_ADVICE } from '../probed-agents.js'
import { table } from '../table.js'

export function registerAgents(program: Command, context: CommandContext): void {
  program
    .command('agents')
    .description('List agents: installed or not, logged in or not, what they can do, and what to fix.')
    .action(async () => {
      const config = context.readConfig()
      const storedVariables = await context.storedVariables(config)
      const probed = await context.withAgents(config, (agents) => probeAll(agents.all(), { storedVariables }))
      console.log(agentsTable(probed))
      const demo = probed.find(({ probe }) => probe.isDemo)
      if (demo) console.log(`\n${demoNote(demo.backend.name())}`)
    })
}

function demoNote(name: BackendName): string {
  return `${DEMO} is built in, replaces ${name}, and has no model. ${REAL_AGENT_ADVICE}`
}

/** The first command that "doctor" would suggest. */
function toDo(name: BackendName, { install, login, problems, isDemo }: AgentProbe): string {
  if (install !== undefined) return install
  if (login?.state === 'logged-out') return howToLogIn(login)
  if (problems.length > 0) return `aetheel doctor --agent ${name}`
  return login?.state === 'logged-in' || isDemo ? '-' : liveCheckOf(name)
}

const LOGINS = { 'logged-in': 'yes', 'logged-out': 'no', unknown: '?', none: '-' }

function agentsTable(agents: ProbedAgent[]): string {
  const rows = agents.map(({ backend, probe }) => {
    const { supportsStreaming, supportsToolControl, supportsMaxTurns } = backend.capabilities()
    return [
      probe.isDemo ? DEMO : backend.name(),
      probe.isFound ? 'yes' : 'no',
      (probe.isDemo ? undefined : probe.version) ?? '-',
      probe.isDemo ? 'not needed' : LOGINS[probe.login?.state ?? 'none'],
      probe.mode ?? '-',
      supportsStreaming ? 'as written' : 'whole messages',
      supportsToolControl ? 'yes' : 'no',
      supportsMaxTurns ? 'yes' : 'no',
      toDo(backend.name(), probe),
    ]
  })
  return table([['AGENT', 'FOUND', 'VERSION', 'LOGIN', 'MODE', 'STREAMS', 'TOOL LIST', 'TURN LIMIT', 'TO DO'], ...rows])
}
