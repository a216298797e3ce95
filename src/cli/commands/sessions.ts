import type { Command } from 'commander'
import type { CommandContext } from '../command-context.js'
import type { Control } from '../control/protocol.js'
import type { Store } from '../../store/store.js'
import { defineList } from '../list-command.js'
import { age, conversationName, listing, type ListOptions } from '../listing.js'

export function registerSessions(program: Command, context: CommandContext): void {
  const sessions = program.command('sessions').description("Show or reset the agents' sessions.")
  const list = sessions.command('list', { isDefault: true })
  defineList(list, 'List conversations with a session.', context, sessionsList)
  sessions
    .command('reset')
    .description('Start a fresh session with the next message.')
    .argument('<conversation>', 'as "aetheel sessions" shows it')
    .action((conversation: string) => context.operate((control) => sessionsReset(control, conversation)))
}

/** The output of `aetheel sessions`. */
export async function sessionsList(store: Pick<Store, 'sessions'>, options: ListOptions): Promise<string> {
  return listing(await store.sessions.list(options.limit), options, 'There are no sessions.', {
    CONVERSATION: conversationName,
    AGENT: ({ backend }) => backend,
    SESSION: ({ sessionId }) => sessionId,
    USED: ({ usedAt }) => age(usedAt, options.now),
    DIRECTORY: ({ directory }) => directory,
  })
}

export async function sessionsReset(control: Control, conversation: string): Promise<string> {
  const { channel, address } = await control.call('sessions.reset', { conversation })
  return `The next message in ${channel}/${address} starts a fresh session.`
}
