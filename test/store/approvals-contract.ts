import { describe, expect, it } from 'vitest'
import type { NewApproval } from '../../src/store/approvals.js'
import type { Store } from '../../src/store/store.js'
import type { TestEngine } from '../kit/engines.js'
import { CHANNEL, createStage } from './stage.js'

const NOW = 1_000

function newApproval(more: Partial<NewApproval> = {}): NewApproval {
  return {
    id: 'one',
    messageId: 'm',
    runId: 'r',
    conversationId: 'a',
    backend: 'claude',
    toolName: 'Bash',
    toolInput: { command: `echo "it's \0 100%"`, deep: [{ text: '🙂' }] },
    summary: 'Bash: echo',
    askedAt: NOW,
    deadline: NOW + 600,
    ...more,
  }
}

async function openApprovals(engine: TestEngine) {
  const stage = await createStage(engine)
  await stage.add('a', 'm')
  await stage.add('b', 'm2')
  const ids = async (...list: Parameters<Store['approvals']['list']>) =>
    (await stage.store.approvals.list(...list)).map(({ id }) => id)
  return { ...stage, ids }
}

export function describeApprovalsContract(engine: TestEngine): void {
  describe('approvals', () => {
    it('record what is asked and how it ended', async () => {
      const { approvals } = (await openApprovals(engine)).store
      const asked = newApproval({ projectId: 'site', subject: `ls "x"` })
      await approvals.add(asked, true)
      const before = await approvals.get('one')
      await approvals.end('one', { state: 'denied', at: NOW + 5, by: 'ann', message: 'No' })
      expect([before, await approvals.get('one'), await approvals.get('none')]).toEqual([
        { ...asked, state: 'asked' },
        { ...asked, state: 'denied', answeredAt: NOW + 5, answeredBy: 'ann', message: 'No' },
        undefined,
      ])
    })

    it('are answered once, however many answer at once', async () => {
      const { approvals } = (await openApprovals(engine)).store
      await approvals.add(newApproval(), true)
      const names = Array.from({ length: 10 }, (_, index) => `person ${index}`)
      const wins = await Promise.all(
        names.map((by, index) => approvals.end('one', { state: index % 2 === 0 ? 'allowed' : 'denied', at: NOW, by })),
      )
      const winner = wins.indexOf(true)
      expect([wins.filter(Boolean).length, await approvals.get('one')]).toEqual([
        1,
        expect.objectContaining({ answeredBy: names[winner], state: winner % 2 === 0 ? 'allowed' : 'denied' }),
      ])
    })

    it('of a message are withdrawn, except those that have ended', async () => {
      const { store } = await openApprovals(engine)
      for (const id of ['one', 'two', 'three']) await store.approvals.add(newApproval({ id }), true)
      await store.approvals.add(newApproval({ id: 'other', messageId: 'm2', conversationId: 'b' }), true)
      await store.approvals.end('one', { state: 'allowed', at: NOW, by: 'ann' })
      const withdrawn = await store.approvals.withdraw('m', NOW + 1)
      const states = await Promise.all(
        ['one', 'two', 'three', 'other'].map(async (id) => (await store.approvals.get(id))?.state),
      )
      expect([withdrawn.toSorted(), states]).toEqual([
        ['three', 'two'],
        ['allowed', 'withdrawn', 'withdrawn', 'asked'],
      ])
    })

    it('are listed newest first, by page and by filter', async () => {
      const { store, ids } = await openApprovals(engine)
      await store.approvals.add(newApproval({ id: 'a1', askedAt: NOW }), true)
      await store.approvals.add(newApproval({ id: 'a2', askedAt: NOW + 1, projectId: 'site' }), true)
      await store.approvals.add(newApproval({ id: 'a3', askedAt: NOW + 1, conversationId: 'b', messageId: 'm2' }), true)
      await store.approvals.end('a1', { state: 'expired', at: NOW })
      expect([
        await ids({}, 9),
        await ids({}, 1),
        await ids({}, 9, { id: 'a2', askedAt: NOW + 1 }),
        await ids({ states: ['expired', 'allowed'] }, 9),
        await ids({ projectIds: ['site'] }, 9),
        await ids({ states: ['asked'], conversationId: 'a' }, 9),
      ]).toEqual([['a2', 'a3', 'a1'], ['a2'], ['a3', 'a1'], ['a1'], ['a2'], ['a2']])
    })

    it('that have ended still show as questions if delivered, until they are closed', async () => {
      const { store, reply } = await openApprovals(engine)
      const shown = async () =>
        (await store.approvals.shownTooLong([CHANNEL], 9)).map(({ id, address }) => [id, address])
      await store.approvals.add(newApproval(), true)
      await store.approvals.add(newApproval({ id: 'plain' }), false)
      for (const id of ['one', 'plain']) {
        await reply('a', id)
        const claimed = await store.outbox.claim('g', [CHANNEL], 5, 100)
        if (claimed) await store.outbox.settle(claimed, 'delivered', null, 6)
      }
      const seen = [await shown()]
      for (const id of ['one', 'plain']) await store.approvals.end(id, { state: 'allowed', at: NOW, by: 'ann' })
      seen.push(
        await shown(),
        (await store.approvals.shownTooLong(['other'], 9)).map(({ id }) => [id]),
      )
      await store.approvals.close('one')
      seen.push(await shown())
      expect(seen).toEqual([[], [['one', 'a']], [], []])
    })

    it('take back only a question that nobody has sent yet', async () => {
      const { store, reply } = await openApprovals(engine)
      await reply('a', 'one', 1)
      await reply('b', 'two', 2)
      await store.outbox.claim('g', [CHANNEL], 5, 100)
      await store.outbox.takeBack(['one', 'two'])
      await store.outbox.takeBack([])
      const states = await Promise.all(['one', 'two'].map(async (id) => (await store.outbox.get(id))?.state))
      expect(states).toEqual(['pending', 'dropped'])
    })
  })

  describe('approval rules', () => {
    it('allow exactly what they name, for their project, agent and tool', async () => {
      const { approvalRules: rules } = (await createStage(engine)).store
      const rule = { projectId: 'site', backend: 'claude', toolName: 'Bash', subject: 'npm test' }
      await rules.add({ ...rule, createdAt: NOW, createdBy: 'ann' })
      await rules.add({ backend: 'codex', toolName: 'Edit', createdAt: NOW, createdBy: 'ann' })
      const { subject: _, ...wholeTool } = rule
      const { projectId: __, ...withoutProject } = rule
      expect([
        await rules.allows(rule),
        await rules.allows({ ...rule, subject: 'npm test && rm -rf /' }),
        await rules.allows({ ...rule, subject: 'npm' }),
        await rules.allows(wholeTool),
        await rules.allows(withoutProject),
        await rules.allows({ ...rule, backend: 'codex' }),
        await rules.allows({ ...rule, toolName: 'bash' }),
        await rules.allows({ backend: 'codex', toolName: 'Edit', subject: 'anything' }),
        await rules.allows({ backend: 'codex', toolName: 'Edit' }),
        await rules.allows({ projectId: 'site', backend: 'codex', toolName: 'Edit' }),
      ]).toEqual([true, false, false, false, false, false, false, true, true, false])
    })

    it('exist once, are listed newest first, and are removed one by one or with their project', async () => {
      const { approvalRules: rules } = (await createStage(engine)).store
      const rule = { projectId: 'site', backend: 'claude', toolName: 'Bash', createdBy: 'ann' }
      await rules.add({ ...rule, createdAt: 1 })
      await rules.add({ ...rule, createdAt: 2 })
      await rules.add({ ...rule, projectId: 'app', createdAt: 3 })
      await rules.add({ ...rule, projectId: 'app', subject: 'ls', createdAt: 4 })
      const all = await rules.list({}, 9)
      const [newest] = all
      const removed = [await rules.remove(newest?.id ?? ''), await rules.remove(newest?.id ?? '')]
      const found = [await rules.get(all[1]?.id ?? ''), await rules.get('none')]
      await rules.removeAllOf('app')
      expect([
        all.map(({ projectId, subject, createdAt }) => [projectId, subject, createdAt]),
        removed,
        found,
        await rules.list({}, 9),
        await rules.list({ projectIds: ['app'] }, 9),
      ]).toEqual([
        [
          ['app', 'ls', 4],
          ['app', undefined, 3],
          ['site', undefined, 1],
        ],
        [true, false],
        [{ ...rule, id: expect.stringMatching(/^[0-9a-f-]{36}$/), projectId: 'app', createdAt: 3 }, undefined],
        [{ ...rule, id: expect.any(String), createdAt: 1 }],
        [],
      ])
    })
  })
}
