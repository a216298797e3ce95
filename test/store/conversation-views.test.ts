import { expect, it } from 'vitest'
import type { ConversationFilter, ConversationView } from '../../src/store/conversation-views.js'
import type { Store } from '../../src/store/store.js'
import { canSee, EVERYTHING, type Visibility } from '../../src/store/visibility.js'
import { describeEngines } from '../kit/engines.js'
import { createStage, newMessage } from './stage.js'

const SHOP = { id: 'shop', instance: 'i-1' }

describeEngines('the view of conversations', (engine) => {
  it('follows the same rule as a condition and as a function', async () => {
    const { store } = await createStage(engine)
    await enter(store, 'http', 'i-1/a', { projectId: 'shop' })
    await enter(store, 'web', 'i-10/a', { projectId: 'shop' })
    await enter(store, 'web', 'b')
    await enter(store, 'web', 'i-1/moved', { projectId: 'shop' })
    await store.conversations.configure('web i-1/moved', { projectId: 'site' })
    await enter(store, 'web', 'i-1/c', { projectId: 'shop' })
    await enter(store, 'discord', 'room')
    await enter(store, 'discord', 'thread', { parent: 'room' })
    await store.conversations.configure('discord room', { projectId: 'shop' })
    await enter(store, 'discord', 'direct', { projectId: 'shop', isPrivate: true })
    await enter(store, 'discord', 'other', { projectId: 'site' })
    const all = await store.conversationViews.list({ visibility: EVERYTHING }, 99)
    const visibilities: Visibility[] = [
      EVERYTHING,
      { seesPrivate: false },
      { projects: [SHOP], seesPrivate: false },
      { projects: [SHOP], seesPrivate: true },
      { projects: [SHOP, { id: 'site', instance: 'i-2' }], seesPrivate: false },
      { projects: [], seesPrivate: true },
    ]
    const seen = await Promise.all(
      visibilities.map(async (visibility) => [
        idsOf(await store.conversationViews.list({ visibility }, 99)),
        idsOf(all.filter((view) => canSee(visibility, view))),
      ]),
    )
    const shop = ['discord room', 'discord thread', 'http i-1/a', 'web i-1/c']
    const rest = ['discord direct', 'discord other', ...shop, 'web b', 'web i-1/moved', 'web i-10/a'].toSorted()
    expect(seen).toEqual(
      [
        rest,
        rest.filter((id) => id !== 'discord direct'),
        shop,
        ['discord direct', ...shop],
        ['discord other', ...shop, 'web i-1/moved'],
        [],
      ].map((ids) => [ids, ids]),
    )
  })

  it('shows the state, what is worked on and what was said last', async () => {
    const { store, add, claim } = await createStage(engine)
    await add('idle', 'm0', 1)
    await store.jobs.finish({ ...(await claim(2)), conversationId: 'idle' }, 'answered', null, 2)
    await add('a', 'm1', 3)
    await add('a', 'm2', 4)
    await claim(5)
    await store.runs.begin({ id: 'r1', messageId: 'm1', conversationId: 'a', gatewayId: 'g', backend: 'pi' }, 6)
    await add('b', 'm3', 7)
    const asking = { toolName: 'Bash', toolInput: {}, summary: 'Bash: ls', askedAt: 6, deadline: 9 }
    const about = { messageId: 'm1', runId: 'r1', conversationId: 'a', backend: 'pi' }
    await store.approvals.add({ id: 'q1', ...about, ...asking }, true)
    const list = (filter: Omit<ConversationFilter, 'visibility'>) =>
      store.conversationViews.list({ visibility: EVERYTHING, ...filter }, 9)
    const views = await list({})
    expect([
      views.map(({ id, state, open, asked, question, head, run }) => [
        id,
        state,
        open,
        asked,
        question,
        head?.messageId,
        run?.id,
      ]),
      idsOf(await list({ state: 'running' })),
      idsOf(await list({ state: 'waiting' })),
      idsOf(await list({ state: 'idle' })),
      idsOf(await list({ ids: ['b', 'none'] })),
      (await store.conversationViews.activeIds(8, 9)).toSorted(),
      (await store.conversationViews.activeIds(2, 9)).toSorted(),
      idsOf(await store.conversationViews.list({ visibility: EVERYTHING }, 9, { id: 'b', updatedAt: 7 })),
    ]).toEqual([
      [
        ['b', 'waiting', 1, 0, 'Hello', 'm3', undefined],
        ['a', 'running', 2, 1, 'Hello', 'm1', 'r1'],
        ['idle', 'idle', 0, 0, 'Hello', undefined, undefined],
      ],
      ['a'],
      ['b'],
      ['idle'],
      ['b'],
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'idle'],
    ])
  })

  it('limits lists, searches and figures alike', async () => {
    const { store, add, reply, claim } = await createStage(engine)
    const asking = { toolName: 'Bash', toolInput: {}, summary: 'Bash: ls', askedAt: 6, deadline: 9 }
    for (const [id, projectId] of [
      ['private', 'shop'],
      ['other', 'site'],
      ['ours', 'shop'],
    ] as const) {
      await store.conversations.enter({ channel: 'chat', address: id, isPrivate: id === 'private' }, id, 1)
      await store.conversations.configure(id, { projectId })
      await add(id, `failed ${id}`, 1)
      const taken = await claim(2)
      const run = { id: `run ${id}`, messageId: taken.messageId, conversationId: id, gatewayId: 'g', backend: 'pi' }
      await store.runs.begin({ ...run, directory: '/site' }, 3)
      const sessionId = id === 'ours' ? 'own' : 'shared'
      await store.runs.end(run.id, 'failed', { isError: true, durationMs: 1, sessionId }, 4)
      await store.jobs.finish(taken, 'failed', 'No', 5)
      const about = { messageId: taken.messageId, runId: run.id, conversationId: id, projectId: 'shop', backend: 'pi' }
      await store.approvals.add({ id: `asked ${id}`, ...about, ...asking }, true)
      await reply(id, `reply ${id}`, 5, 6)
      await store.outbox.expire(7)
      await add(id, `open ${id}`, 7)
    }
    // It was in another project when it ran.
    await store.conversations.configure('other', { projectId: 'shop' })
    const seen = async (visibility: Visibility) => [
      idsOf(await store.inbox.listOpen(9, visibility)),
      idsOf(await store.inbox.listFailed(9, visibility)),
      idsOf(await store.outbox.list('undelivered', 9, visibility)),
      idsOf(await store.approvals.list({ visibility }, 9)),
      idsOf(await store.archive.candidates({ fragments: ['hello'], visibility })),
      (await store.figures.of('project', { visibility, from: 0, to: 9 })).map(({ key, runs }) => [key, runs]),
      // A session in which something was said that must not be seen cannot be continued.
      (await store.runs.sessions({ conversationId: 'ours', directory: '/site', since: 0, visibility }, 9))
        .map(({ sessionId }) => sessionId)
        .toSorted(),
    ]
    const [all, named] = [
      ['open', 'failed', 'reply', 'asked'],
      (what: string, ids: string[]) => ids.map((id) => `${what} ${id}`),
    ]
    const lists = (ids: string[]) => [
      ...all.map((what) => named(what, ids)),
      [...named('failed', ids), ...named('open', ids)],
    ]
    expect([
      await seen(EVERYTHING),
      await seen({ seesPrivate: false }),
      await seen({ projects: [SHOP], seesPrivate: false }),
      await seen({ projects: [], seesPrivate: true }),
      idsOf(await store.archive.candidates({ fragments: ['hello'], limit: 2 })).length,
    ]).toEqual([
      [
        ...lists(['other', 'ours', 'private']),
        [
          ['shop', 2],
          ['site', 1],
        ],
        ['own', 'shared'],
      ],
      [
        ...lists(['other', 'ours']),
        [
          ['shop', 1],
          ['site', 1],
        ],
        ['own'],
      ],
      [...lists(['other', 'ours']), [['shop', 1]], ['own']],
      [[], [], [], [], [], [], []],
      2,
    ])
  })

  it('pages a transcript by entries and bytes', async () => {
    const { store, add, reply } = await createStage(engine)
    await add('a', 'm1')
    await reply('a', 'r1')
    await add('a', 'm2')
    await store.inbox.add(
      { ...newMessage({ id: 'long', conversationId: 'a', seq: 4 }), text: 'x'.repeat(500) },
      'refused',
      null,
      1,
    )
    const page = (limits: { entries: number; bytes: number }, before?: number) =>
      store.conversationViews.transcript('a', limits, before)
    const some = await page({ entries: 2, bytes: 10_000 })
    const small = await page({ entries: 9, bytes: 300 })
    expect([
      [some.entries.map(({ type, id }) => [type, id]), some.isLast],
      [idsOf((await page({ entries: 2, bytes: 10_000 }, some.entries.at(-1)?.seq)).entries)],
      [idsOf(small.entries), small.isLast],
      await page({ entries: 9, bytes: 10_000 }, 1),
    ]).toEqual([
      [
        [
          ['message', 'long'],
          ['message', 'm2'],
        ],
        false,
      ],
      [['m1', 'r1']],
      [['long'], false],
      { entries: [], isLast: true },
    ])
  })
})

async function enter(store: Store, channel: string, address: string, place: object = {}): Promise<void> {
  await store.conversations.enter({ channel, address, ...place }, `${channel} ${address}`, 1)
}

function idsOf(views: Pick<ConversationView, 'id'>[]): string[] {
  return views.map(({ id }) => id).toSorted()
}
