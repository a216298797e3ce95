import { Command } from 'commander'
import { nearestKey } from '../config/nearest-key.js'
import { packageVersion } from '../core/package-version.js'
import { CommandContext } from './command-context.js'
import { registerAgents } from './commands/agents.js'
import { registerApprovals } from './commands/approvals.js'
import { registerArchive } from './commands/archive.js'
import { registerAsk } from './commands/ask.js'
import { registerChat } from './commands/chat.js'
import { registerConfig } from './commands/config.js'
import { registerCredentials } from './commands/credentials.js'
import { registerCron } from './commands/cron.js'
import { registerDashboard } from './commands/dashboard.js'
import { registerDemo } from './commands/demo.js'
import { registerDoctor } from './commands/doctor.js'
import { registerEvent } from './commands/event.js'
import { registerHeartbeat } from './commands/heartbeat.js'
import { registerInit } from './commands/init.js'
import { registerPeople } from './commands/people.js'
import { registerProjects } from './commands/projects.js'
import { registerQueue } from './commands/queue.js'
import { registerRuns } from './commands/runs.js'
import { registerSearch } from './commands/search.js'
import { registerSend } from './commands/send.js'
import { registerSessions } from './commands/sessions.js'
import { registerStart } from './commands/start.js'
import { registerTokens } from './commands/tokens.js'

/** In the order of the help text. */
const COMMANDS: ((program: Command, context: CommandContext) => void)[] = [
  registerInit,
  registerStart,
  registerDashboard,
  registerChat,
  registerAsk,
  registerEvent,
  registerSend,
  registerHeartbeat,
  registerCron,
  registerQueue,
  registerApprovals,
  registerSessions,
  registerProjects,
  registerCredentials,
  registerTokens,
  registerPeople,
  registerRuns,
  registerSearch,
  registerArchive,
  registerAgents,
  registerDoctor,
  registerConfig,
  registerDemo,
]

export function createProgram(environment: NodeJS.ProcessEnv): Command {
  const program = new Command('aetheel')
    .description('Talk to coding agents: Claude Code, Codex, Gemini CLI, OpenCode, Pi.')
    .version(packageVersion())
    .option('--config <file>', 'settings file (JSON5)')
    .showHelpAfterError('Use --help to list commands and options.')
    .usage('[options] [command]')
    .addHelpText('after', '\nWithout a command: set up and start the gateway; once it is set up, show its status.')
    .helpCommand(true)
    .allowExcessArguments()
  const context = new CommandContext(environment, () => program.opts<{ config?: string }>().config)
  for (const register of COMMANDS) register(program, context)
  program.action(async () => {
    const [typed] = program.args
    if (typed !== undefined) return refuse(program, typed)
    const { begin } = await import('./commands/begin.js')
    return begin(program, context)
  })
  return program
}

function refuse(program: Command, typed: string): never {
  const meant = nearestKey(
    typed,
    program.commands.map((command) => command.name()),
  )
  program.error(`error: unknown command '${typed}'${meant === undefined ? '' : `\nDid you mean ${meant}?`}`)
}
