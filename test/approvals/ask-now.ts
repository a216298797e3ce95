import type { ApprovalAnswer, ApprovalRequest } from '../../src/backends/types.js'
import type { Gateway } from '../../src/gateway.js'
import type { Approval } from '../../src/store/approvals.js'
import { until } from '../kit/waiting.js'

interface Asked {
  approval: Approval
  answer: Promise<ApprovalAnswer>
  abort: AbortController
}

/** Asks as the agent of the gateway's current run, and waits until the question is stored. */
export async function askNow({ store, approvals }: Gateway, request: ApprovalRequest): Promise<Asked> {
  const { message, run } = await until(async () => {
    const active = (await store.inbox.listOpen(9)).find(({ state }) => state === 'active')
    const found = active && (await store.inbox.get(active.id))
    const running = active && (await store.runs.running(active.id))
    return found && running && { message: found, run: running }
  }, 'a run')
  const conversation = await store.conversations.get(message.conversationId)
  if (!conversation) throw new Error('There is no conversation')
  const abort = new AbortController()
  const { approve } = approvals.approverFor({ id: run.id, backend: run.backend, message, conversation }, () => {})
  const answer = approve(request, abort.signal)
  const [approval] = await until(async () => {
    const waiting = await store.approvals.list({ states: ['asked'] }, 1)
    return waiting.length > 0 && waiting
  }, 'an approval')
  if (!approval) throw new Error('There is no approval')
  return { approval, answer, abort }
}
