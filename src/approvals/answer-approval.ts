import { GatewayError } from '../errors.js'
import type { Approval } from '../store/approvals.js'
import type { Note } from '../store/audit.js'
import type { Store, Tables } from '../store/store.js'
import { outcomeText } from './approval-words.js'

/** What is remembered for the next time: exactly this, or all that the tool does. */
export const REMEMBERED = ['this', 'tool'] as const

export interface ApprovalDecision {
  decision: 'allow' | 'deny'
  remember?: (typeof REMEMBERED)[number]
  /** What the agent is told of a refusal. */
  message?: string
  /** Who decides. */
  by: string
}

/**
 * Answers what an agent asks, on any gateway: the one that waits for it sees it in the store.
 *
 * Contract: throws `not_found`, `conflict` with who answered before, and `request_invalid` for what cannot be remembered;
 * then nothing has changed.
 */
export async function answerApproval(
  store: Pick<Store, 'transaction'>,
  id: string,
  { decision, remember, message, by }: ApprovalDecision,
  at: number,
  note?: Note,
): Promise<Approval> {
  return store.transaction(async (tables) => {
    const approval = await find(tables, id)
    const isAllowed = decision === 'allow'
    if (remember && !isAllowed) throw new GatewayError('request_invalid', 'Only what is allowed can be remembered.')
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
    await note?.(tables, { action: `approval.${decision}`, subject: id, ...detail })
    return find(tables, id)
  })
}

async function find({ approvals }: Pick<Tables, 'approvals'>, id: string): Promise<Approval> {
  const approval = await approvals.get(id)
  if (approval) return approval
  const advice = 'GET /approvals, or "aetheel approvals", shows those there are.'
  throw new GatewayError('not_found', `Nothing is asked under the id ${id}. ${advice}`)
}

function hasEnded(approval: Approval): GatewayError {
  return new GatewayError('conflict', `Too late. ${outcomeText(approval)}: ${approval.summary}`)
}

function notRemembered(): GatewayError {
  const why = 'This is too long to be remembered, or there is a secret in it.'
  return new GatewayError('request_invalid', `${why} Allow it for this time, or the whole tool.`)
}
