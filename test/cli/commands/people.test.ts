import { join } from 'node:path'
import { expect, it } from 'vitest'
import { peopleList, peopleRemove } from '../../../src/cli/commands/people.js'
import { openTestStore } from '../../kit/engines.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5)
const OPTIONS = { limit: 50, isJson: false, width: 100, now: NOW + 180_000 }

it('lists the people let in by a command, and removes one by name or id, on record', async () => {
  const store = await openTestStore({ file: join(temporaryDirectory(), 'aetheel.db') })
  for (const personId of ['100', '200']) {
    const name = personId === '100' ? 'ada' : 'ben'
    await store.admissions.add({ channel: 'discord', personId, name, admittedBy: 'owner', admittedAt: NOW })
  }
  const listed = await peopleList(store, OPTIONS)
  const removed = [await peopleRemove(store, '200', () => NOW), await peopleRemove(store, 'ada', () => NOW + 1)]
  const missing = await peopleRemove(store, 'ada', () => NOW).catch((error: Error) => error.message)
  const audit = (await store.audit.list(9)).map(({ actor, action, subject }) => [actor, action, subject])
  expect([listed.split('\n'), removed, missing, await peopleList(store, OPTIONS), audit]).toEqual([
    ['CHANNEL  ID   AGE    BY     NAME', 'discord  100  3 min  owner  ada', 'discord  200  3 min  owner  ben'],
    ['ben', 'ada'].map((name) => `${name} no longer has access, unless the configuration grants it.`),
    'Nobody called ada was let in with /allow. "aetheel people" lists those who were.',
    'Nobody was let in with /allow. The configuration says who else may talk.',
    [
      ['terminal', 'access.disallow', 'discord/100'],
      ['terminal', 'access.disallow', 'discord/200'],
    ],
  ])
})
