import type { Command } from 'commander'
import { BACKEND_NAMES } from '../../backends/types.js'
import { backendArgument } from '../arguments.js'
import type { CommandContext } from '../command-context.js'
import type { DoctorFlags } from '../doctor/doctor.js'

export function registerDoctor(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description('Check agents, logins, directories, the database, pods, Discord and WhatsApp, and print what to fix.')
    .option('--live', 'ask each installed agent for one answer; costs a few tokens')
    .option('--agent <name>', `check only this agent: ${BACKEND_NAMES.join(', ')}`, backendArgument)
    .action(async (flags: DoctorFlags) => {
      // Loaded lazily: no other command needs its many parts.
      const { doctor } = await import('../doctor/doctor.js')
      context.endWith((await doctor(context, flags)) ? 0 : 1)
    })
}
