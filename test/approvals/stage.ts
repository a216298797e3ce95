// The approval service of one or two gateways on one database, and a run whose agent asks.

import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { type ApprovalOptions, ApprovalService, type RunApproval } from '../../src/approvals/approval-service.js'
import type { ApprovalAnswer, ApprovalRequest } from '../../src/backends/types.js'
import type { Channel, EndedQuestion } from '../../src/channels/types.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import type { Approval } from '../../src/store/approvals.js'
import type { Store } from '../../src/store/store.js'
import { until } from '../kit/waiting.js'
import { SILENT_LOG } from '../kit/log.js'
import { queueOn } from '../kit/queue.js'

export const START = Date.UTC(2026, 10, 16, 12, 30)
export const TIMEOUT_MS = 600_000
export const SECRET = 'sk-very-secret-value-0123456789'
export const BASH: ApprovalRequest = {
  toolName: 'Bash',
  toolInput: { command: 'npm install', description: 'Installs' },
}

export function approvalsOn(store: Store, options: Partial<ApprovalOptions> = {}): ApprovalService {
  return new ApprovalService({
    config: { approvalTimeoutMs: TIMEOUT_MS, agentBackend: 'claude', isDemoAgent: false },
    store,
    channels: [],
    scrubber: createScrubber(),
    onAsked: () => {},
    log: SILENT_LOG,
    now: Date.now,
    newId: randomUUID,
    pollMs: 10,
    ...options,
  })
}

export async function createStage(store: Store, { projectId }: { projectId?: string } = {}) {
  const clock = { now: START }
  const now = (): number => clock.now
  const ended: EndedQuestion[] = []
  const channel = { name: 'test', endQuestion: async (question: EndedQuestion) => void ended.push(question) }
  const openService = (more: Partial<ApprovalOptions> = {}) =>
    approvalsOn(store, {
      channels: [channel as unknown as Channel],
      scrubber: createScrubber([SECRET]),
      now,
      ...more,
    })
  const queue = queueOn(store, { leaseMs: 1_000, now })
  const begin = async (address = 'a') => {
    const place = { channel: 'test', address, ...(projectId !== undefined && { projectId }) }
    await queue.accept({ ...place, platformId: randomUUID(), author: 'ann', text: 'Install it' })
    const runId = randomUUID()
    const work = await queue.claim(['test'], {}, () => ({ id: runId, backend: 'claude', directory: '/srv' }))
    if (!work) throw new Error('There is no work')
    return { work, run: { id: runId, backend: 'claude', message: work.message, conversation: work.conversation } }
  }
  const service = openService()
  const { work, run } = await begin()
  const told: string[] = []
  const asking = service.approverFor(run, (notice) => told.push(notice))
  const abort = new AbortController()
  const answers: Array<Promise<ApprovalAnswer>> = []
  onTestFinished(async () => {
    abort.abort()
    await Promise.all(answers)
  })
  return {
    store,
    queue,
    clock,
    ended,
    service,
    openService,
    begin,
    work,
    run,
    told,
    notes: asking.notes,
    abort,
    /** Waits until the question is stored. */
    ask: async (request = BASH, by: RunApproval = asking) => {
      const asked = await ask(store, by, request, abort.signal)
      answers.push(asked.answer)
      return asked
    },
  }
}

async function ask(
  store: Store,
  { approve }: RunApproval,
  request: ApprovalRequest,
  signal: AbortSignal,
): Promise<{ approval: Approval; answer: Promise<ApprovalAnswer> }> {
  const before = (await store.approvals.list({}, 100)).map(({ id }) => id)
  const answer = approve(request, signal)
  const approval = await until(
    async () => (await store.approvals.list({}, 100)).find(({ id }) => !before.includes(id)),
    'the approval',
  )
  return { approval, answer }
}
