import { GatewayError } from '../errors.js'
import type { Approval } from '../store/approvals.js'
import type { Note } from '../store/audit.js'
import type { Store, Tables } from '../store/store.js'
import { outcomeText } from './approval-words.js'

/** What to remember: exactly this call, or everything the tool does. */
export const REMEMBERED = ['this', 'tool'] as const

export interface ApprovalDecision {
  decision: 'allow' | 'deny'
  remember?: (typeof REMEMBERED)[number]
  /** Passed to the agent if denied. */
  message?: string
  by: string
}

/**
 * Answers an agent's question, from any gateway: the one that is waiting reads the answer from the store.
 *
 * Contract: throws `not_found`, `conflict` with the earlier answer, or `request_invalid` for what cannot be remembered;
 * then nothing has changed.
 */
export async function answerApproval(
  store: Pick<Store, 'transaction'>,
  id: string,
  { decision, remember, message, by }: ApprovalDecision,
  at: number,
  audit?: Note,
): Promise<Approval> {
  return store.transaction(async (tables) => {
    const approval = await find(tables, id)
    const isAllowed = decision === 'allow'
    if (remember && !isAllowed) throw new GatewayError('request_invalid', 'Only an allowed request can be remembered.')
    if (remember === 'this' && approval.subject === undefined && approval.state === 'asked') throw notRemembered()
    const end = { state: isAllowed ? ('allowed' as const) : ('denied' as const), at, by, ...(message && { message }) }
    if (!(await tables.approvals.end(id, end))) throw hasEnded(await find(tables, id))
    await tables.outbox.takeBack([id])
    if (remember) {
      const { projectId, backend, toolName, subject } = approval
      await tables.approvalRules.add({
        ...(projectId !== undefined && { projectId }),
        backend,
        toolName,
        ...(remember === 'this' && subject !== undefined && { subject }),
        createdAt: at,
        createdBy: by,
      })
    }
    const detail =
      remember === undefined ? {} : { detail: `remembered for ${remember === 'this' ? 'this' : 'the tool'}` }
    await audit?.(tables, { action: `approval.${decision}`, subject: id, ...detail })
    return find(tables, id)
  })
}

async function find({ approvals }: Pick<Tables, 'approvals'>, id: string): Promise<Approval> {
  const approval = await approvals.get(id)
  if (approval) return approval
  const advice = 'GET /approvals, or "aetheel approvals", lists them.'
  throw new GatewayError('not_found', `There is no approval ${id}. ${advice}`)
}

function hasEnded(approval: Approval): GatewayError {
  return new GatewayError('conflict', `Too late. ${outcomeText(approval)}: ${approval.summary}`)
}

function notRemembered(): GatewayError {
  const why = 'This is too long to remember, or contains a secret.'
  return new GatewayError('request_invalid', `${why} Allow it once, or allow the whole tool.`)
}
