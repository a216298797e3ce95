import { join } from 'node:path'
import type { Command } from 'commander'
import { Archive } from '../../archive/archive.js'
import { CredentialStore } from '../../credentials/credential-store.js'
import { KeyRing } from '../../credentials/key-ring.js'
import type { Log } from '../../log.js'
import type { Store } from '../../store/store.js'
import type { CommandContext } from '../command-context.js'

export function registerArchive(program: Command, context: CommandContext): void {
  const { environment, scrubber } = context
  program
    .command('archive')
    .description('Rewrite the archive of all conversations as Markdown, and print its path.')
    .action(() =>
      context.inspect(async (store, config, log) => {
        const keyRing = new KeyRing({ home: config.home, masterKey: environment['AETHEEL_MASTER_KEY'] })
        const unreadable = await new CredentialStore({ store, keyRing, scrubber, now: Date.now }).hideAll()
        for (const { message } of unreadable) log.warn('credential.unreadable', { message })
        return rebuildArchive(config.home, store, log, (text) => scrubber.scrub(text))
      }),
    )
}

/** Rewrites every conversation as Markdown, and returns the output of `aetheel archive`. */
export async function rebuildArchive(
  home: string,
  store: Pick<Store, 'archive'>,
  log: Log,
  scrub: (text: string) => string,
): Promise<string> {
  const directory = join(home, 'archive')
  const { conversations, days } = await new Archive(directory, store, log, Date.now, scrub).rebuild()
  if (days === 0) return 'There is nothing to archive yet.'
  return `Wrote ${count(days, 'day')} of ${count(conversations, 'conversation')} to ${directory}`
}

function count(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`
}
