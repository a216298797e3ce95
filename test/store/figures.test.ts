import { expect, it } from 'vitest'
import type { AgentResult } from '../../src/backends/types.js'
import type { RunState } from '../../src/store/schema.js'
import { describeEngines } from '../kit/engines.js'
import { createStage, newMessage } from './stage.js'

const DAY_MS = 86_400_000
const DAY = Date.UTC(2026, 10, 16)
const VISIBILITY = { seesPrivate: true }
const USAGE = {
  inputTokens: 10,
  outputTokens: 2,
  cacheReadTokens: 3,
  cacheWriteTokens: 4,
  reasoningTokens: 0,
  totalTokens: 19,
}

interface Run {
  at: number
  tookMs: number
  textAfterMs?: number
  backend?: string
  conversationId?: string
  state?: RunState
  result?: Partial<AgentResult>
}

describeEngines('figures', (engine) => {
  const setUp = async () => {
    const { store, add } = await createStage(engine)
    let count = 0
    const run = async ({ at, tookMs, textAfterMs, backend = 'pi', conversationId = 'a', ...rest }: Run) => {
      const id = String((count += 1))
      const { state = 'answered', result } = rest
      await add(conversationId, `m${id}`, at)
      await store.runs.begin({ id, messageId: `m${id}`, conversationId, gatewayId: 'g', backend }, at)
      if (textAfterMs !== undefined) {
        const timestamp = at + textAfterMs
        const content = 'Hello \u0000'
        await store.events.record(id, [
          { seq: 1, event: { type: 'notice', content, timestamp: at } },
          { seq: 2, event: { type: 'output', content, stream: 'stdout', timestamp } },
          { seq: 3, event: { type: 'output', content, stream: 'stdout', timestamp: timestamp + 9 } },
        ])
      }
      if (state !== 'running') await store.runs.end(id, state, result as AgentResult | undefined, at + tookMs)
    }
    return { store, run }
  }

  it('accept whatever usage an agent reports', async () => {
    const { store, run } = await setUp()
    const usage = { ...USAGE, inputTokens: 12.5, outputTokens: 1e21 }
    await run({ at: DAY, tookMs: 1, result: { usage } })
    expect(await store.figures.of('day', { visibility: VISIBILITY, from: DAY, to: DAY + DAY_MS })).toMatchObject([
      { runs: 1, inputTokens: 12.5, outputTokens: 1e21, cacheReadTokens: 3 },
    ])
  })

  it('are counts, sums and percentiles per day', async () => {
    const { store, run } = await setUp()
    await run({ at: DAY - 1, tookMs: 5 })
    for (let index = 1; index <= 20; index++) {
      await run({ at: DAY + index, tookMs: index * 100, ...(index <= 10 && { textAfterMs: index * 10 }) })
    }
    await run({
      at: DAY + DAY_MS,
      tookMs: 7,
      result: { usage: USAGE, costUsd: 0.5, finalOutput: '\u0000 \\u0000 \ud800 "' },
    })
    await run({ at: DAY + DAY_MS + 1, tookMs: 0, state: 'running' })
    await run({ at: DAY + 2 * DAY_MS, tookMs: 0 })
    const found = await store.figures.of('day', { visibility: VISIBILITY, from: DAY, to: DAY + 2 * DAY_MS })
    const none = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0, pricedRuns: 0 }
    const states = { answered: 0, failed: 0, cancelled: 0, interrupted: 0 }
    expect(found).toEqual([
      {
        key: DAY,
        runs: 20,
        states: { ...states, answered: 20 },
        durationMs: { p50: 1000, p95: 1900, total: 21_000 },
        firstTextMs: { p50: 50, p95: 100 },
        ...none,
        errors: {},
      },
      {
        key: DAY + DAY_MS,
        runs: 1,
        states: { ...states, answered: 1 },
        durationMs: { p50: 7, p95: 7, total: 7 },
        firstTextMs: { p50: null, p95: null },
        inputTokens: 10,
        outputTokens: 2,
        cacheReadTokens: 3,
        cacheWriteTokens: 4,
        costUsd: 0.5,
        pricedRuns: 1,
        errors: {},
      },
    ])
  })

  it('are grouped by agent and project, visible ones only, with errors by reason', async () => {
    const { store, run } = await setUp()
    await store.conversations.enter({ channel: 'chat', address: 'shop', projectId: 'shop' }, 'shop', 1)
    await run({ at: DAY, tookMs: 1 })
    await store.transaction(async (tables) => {
      await tables.conversations.configure('shop', { projectId: 'shop' })
    })
    const failure = (reason: string) => ({ failure: { reason, message: 'No' } }) as Partial<AgentResult>
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      await run({
        at: DAY,
        tookMs: 1,
        conversationId: 'shop',
        backend: 'codex',
        state: 'failed',
        result: failure('auth'),
      })
    }
    await run({ at: DAY, tookMs: 1, conversationId: 'shop', backend: 'pi', state: 'interrupted' })
    await run({
      at: DAY,
      tookMs: 1,
      conversationId: 'shop',
      backend: 'pi',
      state: 'cancelled',
      result: failure('cancelled'),
    })
    const range = { from: DAY, to: DAY + 1, visibility: VISIBILITY }
    const of = async (...asked: Parameters<typeof store.figures.of>) =>
      (await store.figures.of(...asked)).map(({ key, runs, errors }) => [key, runs, errors])
    const byProject = await of('project', range)
    expect([
      await of('agent', range),
      // The engines sort null differently.
      byProject.toSorted(([, a], [, b]) => Number(a) - Number(b)),
      await of('agent', { ...range, projectId: 'shop' }),
      await of('project', { ...range, backend: 'codex' }),
      await of('agent', { ...range, visibility: { projects: [{ id: 'shop', instance: 'i' }], seesPrivate: false } }),
      await of(undefined, range),
      await of(undefined, { ...range, visibility: { projects: [], seesPrivate: true } }),
    ]).toEqual([
      [
        ['codex', 2, { auth: 2 }],
        ['pi', 3, { interrupted: 1 }],
      ],
      [
        [null, 1, {}],
        ['shop', 4, { auth: 2, interrupted: 1 }],
      ],
      [
        ['codex', 2, { auth: 2 }],
        ['pi', 2, { interrupted: 1 }],
      ],
      [['shop', 2, { auth: 2 }]],
      [
        ['codex', 2, { auth: 2 }],
        ['pi', 2, { interrupted: 1 }],
      ],
      [['', 5, { auth: 2, interrupted: 1 }]],
      [],
    ])
  })

  it('count for the project that the message names, or else for that of its conversation', async () => {
    const { store } = await setUp()
    await store.conversations.enter({ channel: 'chat', address: 'a', projectId: 'shop' }, 'a', 1)
    for (const id of ['r1', 'r2', 'r3']) {
      const options = id === 'r2' ? { options: { projectId: 'site' } } : {}
      await store.inbox.add({ ...newMessage({ id, conversationId: 'a', seq: 1 }), ...options }, 'open', null, 1)
      await store.runs.begin({ id, messageId: id, conversationId: 'a', gatewayId: 'g', backend: 'pi' }, DAY)
    }
    await store.runs.end('r1', 'answered', undefined, DAY + 9)
    await store.runs.interrupt('r2', DAY + 5)
    const figures = await store.figures.of('project', { visibility: VISIBILITY, from: DAY, to: DAY + 1 })
    expect(figures.map(({ key, runs }) => [key, runs])).toEqual([
      ['shop', 1],
      ['site', 1],
    ])
  })
})
