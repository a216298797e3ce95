import type { ApprovalDecision } from '../approvals/answer-approval.js'
import { outcomeText } from '../approvals/approval-words.js'
import type { Control } from '../control/protocol.js'
import type { Store } from '../store/store.js'
import { age, type ListOptions, section, shortId } from './listing.js'

/** What `aetheel approvals` prints: the newest first. */
export async function approvalsList(
  store: Pick<Store, 'approvals'>,
  { limit, isJson, width, now }: ListOptions,
): Promise<string> {
  const approvals = await store.approvals.list({}, limit)
  if (isJson) return JSON.stringify(approvals, null, 2)
  const rows = approvals.map((approval) => [
    shortId(approval.id),
    age(approval.askedAt, now),
    approval.projectId ?? '-',
    approval.backend,
    outcomeText(approval),
    approval.summary,
  ])
  const columns = ['ID', 'AGE', 'PROJECT', 'AGENT', 'STATE', 'ASKED FOR']
  return section('', columns, rows, width) || 'No agent has asked for anything yet.'
}

/** What `aetheel approvals rules` prints. */
export async function approvalRules(
  store: Pick<Store, 'approvalRules'>,
  { limit, isJson, width, now }: ListOptions,
): Promise<string> {
  const rules = await store.approvalRules.list({}, limit)
  if (isJson) return JSON.stringify(rules, null, 2)
  const rows = rules.map(({ id, createdAt, projectId, backend, toolName, createdBy, subject }) => [
    shortId(id),
    age(createdAt, now),
    projectId ?? '-',
    backend,
    createdBy,
    toolName,
    subject ?? 'all that it does',
  ])
  const columns = ['ID', 'AGE', 'PROJECT', 'AGENT', 'BY', 'TOOL', 'MAY']
  return section('', columns, rows, width) || 'There are no rules: agents that are to ask, ask for everything.'
}

export async function approvalsAnswer(
  control: Control,
  id: string,
  answer: Omit<ApprovalDecision, 'by'>,
): Promise<string> {
  const { summary } = await control.call('approvals.answer', { id, ...answer })
  return `${answer.decision === 'allow' ? 'Allowed' : 'Refused'}: ${summary}`
}

export async function approvalsForget(control: Control, id: string): Promise<string> {
  const { toolName } = await control.call('approvals.forget', { id })
  return `Forgotten: ${toolName} is asked for again.`
}
