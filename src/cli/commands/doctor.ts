import type { Command } from 'commander'
import type { CommandContext } from '../command-context.js'

export function registerDoctor(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description('Check every agent, the database, pods, Discord and WhatsApp, and say what to fix and how.')
    .action(async () => {
      // Loaded lazily: no other command needs its many parts.
      const { doctor } = await import('../doctor/doctor.js')
      context.endWith((await doctor(context)) ? 0 : 1)
    })
}
