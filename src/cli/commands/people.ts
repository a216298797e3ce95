import type { Command } from 'commander'
import { onlyOne } from '../../core/only-one.js'
import { notesOf } from '../../store/audit.js'
import type { Store } from '../../store/store.js'
import type { CommandContext } from '../command-context.js'
import { defineList } from '../list-command.js'
import { age, listing, type ListOptions } from '../listing.js'

export function registerPeople(program: Command, context: CommandContext): void {
  const people = program.command('people').description('Show who was let in with /allow, on Discord and WhatsApp.')
  defineList(people.command('list', { isDefault: true }), 'List people.', context, peopleList)
  people
    .command('remove')
    .description("Remove a person's access at once.")
    .argument('<person>', 'name or id, as "aetheel people" shows it')
    .action((person: string) => context.change((store) => peopleRemove(store, person, Date.now)))
}

/** The output of `aetheel people`. */
export async function peopleList({ admissions }: Pick<Store, 'admissions'>, options: ListOptions): Promise<string> {
  const people = (await admissions.list()).slice(0, options.limit)
  return listing(people, options, 'Nobody was let in with /allow. The configuration says who else may talk.', {
    CHANNEL: ({ channel }) => channel,
    ID: ({ personId }) => personId,
    AGE: ({ admittedAt }) => age(admittedAt, options.now),
    BY: ({ admittedBy }) => admittedBy,
    NAME: ({ name }) => name,
  })
}

/** The output of `aetheel people remove`. */
export async function peopleRemove(store: Store, wanted: string, now: () => number): Promise<string> {
  const found = (await store.admissions.list()).filter(({ personId, name }) => personId === wanted || name === wanted)
  const none = `Nobody called ${wanted} was let in with /allow. "aetheel people" lists those who were.`
  const { channel, personId, name } = onlyOne(found, none, `More than one person is called ${wanted}. Give the id.`)
  await store.transaction(async (tables) => {
    await tables.admissions.remove(channel, personId)
    await notesOf('terminal', now)(tables, { action: 'access.disallow', subject: `${channel}/${personId}` })
  })
  return `${name} no longer has access, unless the configuration grants it.`
}
