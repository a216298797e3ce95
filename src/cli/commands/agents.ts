import type { Command } from 'commander'
import type { AgentProbe } from '../../backends/types.js'
import type { CommandContext } from '../command-context.js'
import { probeAll, type ProbedAgent } from '../probed-agents.js'
import { table } from '../table.js'

export function registerAgents(program: Command, context: CommandContext): void {
  program
    .command('agents')
    .description('List agents: installed, logged in, and what they can do.')
    .action(async () => {
      const config = context.readConfig()
      const storedVariables = await context.storedVariables(config)
      const probed = await context.withAgents(config, (agents) => probeAll(agents.all(), { storedVariables }))
      console.log(agentsTable(probed))
    })
}

/** That an agent is not installed is no problem: nobody may want it. */
function problemsOf({ isFound, install, problems }: AgentProbe): string {
  const isOnlyMissing = !isFound && install !== undefined
  return problems.length === 0 || isOnlyMissing ? '-' : `${problems.length}, see "aetheel doctor"`
}

const LOGINS = { 'logged-in': 'yes', 'logged-out': 'no', unknown: '?', none: '-' }

function agentsTable(agents: ProbedAgent[]): string {
  const rows = agents.map(({ backend, probe }) => {
    const { supportsStreaming, supportsToolControl, supportsMaxTurns } = backend.capabilities()
    return [
      backend.name(),
      probe.isFound ? 'yes' : 'no',
      probe.version ?? '-',
      LOGINS[probe.login?.state ?? 'none'],
      probe.mode ?? '-',
      supportsStreaming ? 'text as written' : 'whole texts',
      supportsToolControl ? 'yes' : 'no',
      supportsMaxTurns ? 'yes' : 'no',
      problemsOf(probe),
    ]
  })
  return table([
    ['AGENT', 'FOUND', 'VERSION', 'LOGIN', 'MODE', 'STREAMS', 'TOOL LIST', 'TURN LIMIT', 'PROBLEMS'],
    ...rows,
  ])
}
