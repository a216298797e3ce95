import type { Command } from 'commander'
import type { GatewayConfig } from '../../config.js'
import type { CommandContext } from '../command-context.js'
import { probeAll } from '../probed-agents.js'

export function registerInit(program: Command, context: CommandContext): void {
  program
    .command('init')
    .description('Set up the gateway step by step, and write the settings file.')
    .action(async () => {
      // Loaded lazily: hardly any other command asks questions.
      const { init } = await import('../init/init.js')
      const probe = (config: GatewayConfig) => context.withAgents(config, (agents) => probeAll(agents.all()))
      context.endWith(await init({ ...context.configLocation(), probe, input: process.stdin, output: process.stdout }))
    })
}
