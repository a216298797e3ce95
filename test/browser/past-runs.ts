import { randomUUID } from 'node:crypto'
import type { AgentResult } from '../../src/backends/types.js'
import type { Store, Tables } from '../../src/store/store.js'

export interface PastRun {
  at: number
  tookMs: number
  textAfterMs: number
  /** Null if it did not fail. */
  failure: 'rate_limit' | 'timeout' | 'auth' | null
  backend: string
  projectId: string
  inputTokens: number
  outputTokens: number
  costUsd: number
}

const DAY_MS = 86_400_000
const PLACES = [
  { backend: 'claude', projectId: 'site', runsADay: 7 },
  { backend: 'codex', projectId: 'site', runsADay: 3 },
  { backend: 'claude', projectId: 'shop', runsADay: 4 },
]

/** Weeks of plausible work, the same each time. Contract: the first two of every seven days are empty. */
export function pastRuns(days: number, now: number): PastRun[] {
  const random = numbersFrom(7)
  const today = now - (now % DAY_MS)
  return Array.from({ length: days }, (_, index) => index).flatMap((index) => {
    if (index % 7 < 2) return []
    const day = today - (days - index) * DAY_MS
    return PLACES.flatMap(({ backend, projectId, runsADay }) =>
      Array.from({ length: Math.round(runsADay * (0.4 + random() * (0.8 + index / days))) }, (): PastRun => {
        const size = 0.3 + random() * random() * 3
        return {
          at: day + Math.floor(random() * DAY_MS),
          tookMs: Math.round(12_000 + size * 70_000),
          textAfterMs: Math.round(900 + random() * random() * 5_000),
          failure: random() < 0.9 ? null : random() < 0.6 ? 'rate_limit' : random() < 0.6 ? 'timeout' : 'auth',
          backend,
          projectId,
          inputTokens: Math.round(size * 9_000),
          outputTokens: Math.round(size * 2_400),
          costUsd: Math.round(size * 8) / 100,
        }
      }),
    )
  })
}

/** Stores them as past runs of the terminal channel, which this gateway does not serve, so that it ignores them. */
export async function storePastRuns(store: Store, runs: PastRun[]): Promise<void> {
  await store.transaction(async (tables) => {
    for (const run of runs.toSorted((a, b) => a.at - b.at)) await storeRun(tables, run)
  })
}

const CONVERSATIONS: Partial<Record<string, string>> = { site: randomUUID(), shop: randomUUID() }
const CHANNEL = 'terminal'
const LEASE_MS = 60_000

async function storeRun(tables: Tables, run: PastRun): Promise<void> {
  const { at, tookMs, textAfterMs, backend, projectId, failure } = run
  const id = randomUUID()
  const conversationId = CONVERSATIONS[projectId] ?? projectId
  const { seq } = await tables.conversations.enter(
    { channel: CHANNEL, address: projectId, projectId },
    conversationId,
    at,
  )
  const message = { id, conversationId, seq, channel: CHANNEL, platformId: id, kind: 'message', author: 'ada' } as const
  const text = `Look at what the tests of ${projectId} say.`
  await tables.inbox.add({ ...message, text }, 'open', null, at)
  await tables.jobs.enqueue(message, 0, at)
  const claim = await tables.jobs.claim('past', [CHANNEL], at, LEASE_MS)
  await tables.runs.begin({ id, messageId: id, conversationId, gatewayId: 'past', backend }, at)
  await tables.events.record(id, [
    { seq: 1, event: { type: 'output', content: 'All is well.', stream: 'stdout', timestamp: at + textAfterMs } },
  ])
  await tables.runs.end(id, failure ? 'failed' : 'answered', resultOf(run), at + tookMs)
  await tables.conversations.nextSeq(conversationId, at)
  if (claim) await tables.jobs.finish(claim, 'answered', null, at + tookMs)
}

function resultOf({ failure, inputTokens, outputTokens, costUsd }: PastRun): AgentResult {
  const usage = {
    inputTokens,
    outputTokens,
    cacheReadTokens: inputTokens * 4,
    cacheWriteTokens: inputTokens,
    reasoningTokens: 0,
    totalTokens: inputTokens * 6 + outputTokens,
  }
  return { usage, costUsd, ...(failure && { failure: { reason: failure, message: 'No.' } }) } as AgentResult
}

/** Between 0 and 1, the same each time. */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
