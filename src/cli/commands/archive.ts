import { join } from 'node:path'
import { Archive } from '../../archive/archive.js'
import type { Log } from '../../log.js'
import type { Store } from '../../store/store.js'

/** What `aetheel archive` prints, when it has written every conversation as Markdown again. */
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
