import { sql } from 'kysely'
import type { ApprovalState, Schema } from './schema.js'
import { compiled, fromRow, isBehind, Table, toRow } from './table.js'
import { EVERYTHING, inVisibleConversation, type Visibility } from './visibility.js'

/** An agent's request, in the middle of a run, to use a tool. */
export interface NewApproval {
  /** The reply that asks for it in the conversation has the same id. */
  id: string
  messageId: string
  runId: string
  conversationId: string
  projectId?: string
  backend: string
  toolName: string
  /** Without known secrets, and no longer than a person would read. */
  toolInput: Record<string, unknown>
  /** Tool and input in one line. */
  summary: string
  /** The subject of a rule for exactly this; absent if no rule can be made. */
  subject?: string
  askedAt: number
  /** When it counts as denied. */
  deadline: number
}

export interface Approval extends NewApproval {
  state: ApprovalState
  answeredAt?: number
  answeredBy?: string
  /** What the person who denied it tells the agent. */
  message?: string
}

/** An approval, and where it was asked for. */
export interface ShownApproval extends Approval {
  channel: string
  address: string
}

export interface ApprovalFilter {
  states?: ApprovalState[]
  /** Only those of these projects. */
  projectIds?: string[]
  conversationId?: string
  visibility?: Visibility
}

export interface ApprovalEnd {
  state: Exclude<ApprovalState, 'asked'>
  at: number
  by?: string
  message?: string
}

export class Approvals extends Table {
  /** `isOpen`: it is shown as a question until `close`. */
  async add(approval: NewApproval, isOpen: boolean): Promise<void> {
    const { id, messageId, runId, conversationId, projectId, backend, toolName, summary, subject } = approval
    const asked = { id, messageId, runId, conversationId, projectId, backend, toolName, summary, subject }
    await this.db
      .insertInto('approvals')
      .values({
        ...toRow(asked),
        tool_input: JSON.stringify(approval.toolInput),
        state: 'asked',
        asked_at: approval.askedAt,
        deadline: approval.deadline,
        is_open: isOpen ? 1 : 0,
      })
      .execute()
  }

  /** False if it was answered or ended before: the first answer counts. */
  async end(id: string, { state, at, by, message }: ApprovalEnd): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('approvals')
      .set({ state, answered_at: at, answered_by: by ?? null, message: message ?? null })
      .where('id', '=', id)
      .where('state', '=', sql.lit('asked'))
      .executeTakeFirstOrThrow()
    return numUpdatedRows === 1n
  }

  /** Ends the pending ones of a message, as nobody waits for an answer any more. Returns their ids. */
  async withdraw(messageId: string, at: number): Promise<string[]> {
    const { rows } = await withdraw(this.db, { messageId, at })
    return rows.map(({ id }) => id)
  }

  async get(id: string): Promise<Approval | undefined> {
    const row = await this.db.selectFrom('approvals').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toApproval(row)
  }

  /** At most two whose ids begin with what a person typed. Contract: `prefix` has only hex digits and dashes. */
  async findByPrefix(prefix: string): Promise<Approval[]> {
    const rows = await this.db.selectFrom('approvals').selectAll().where('id', 'like', `${prefix}%`).limit(2).execute()
    return rows.map(toApproval)
  }

  /** Newest first; only those before `before`. */
  async list(
    { states, projectIds, conversationId, visibility = EVERYTHING }: ApprovalFilter,
    limit: number,
    before?: Pick<Approval, 'id' | 'askedAt'>,
  ): Promise<Approval[]> {
    let query = this.db
      .selectFrom('approvals')
      .selectAll()
      .where(inVisibleConversation(this.db, visibility, 'approvals.conversation_id'))
      .orderBy('asked_at', 'desc')
      .orderBy('id')
      .limit(limit)
    if (states) query = query.where('state', 'in', states)
    if (projectIds) query = query.where('project_id', 'in', projectIds)
    if (conversationId !== undefined) query = query.where('conversation_id', '=', conversationId)
    if (before) query = query.where(isBehind({ at: 'asked_at', id: 'id' }, { at: before.askedAt, id: before.id }))
    return (await query.execute()).map(toApproval)
  }

  /** Those that have ended but are still shown as questions in one of these channels. */
  async shownTooLong(channels: string[], limit: number): Promise<ShownApproval[]> {
    if (channels.length === 0) return []
    const rows = await this.db
      .selectFrom('approvals')
      .innerJoin('outbox', 'outbox.id', 'approvals.id')
      .selectAll('approvals')
      .select(['outbox.channel', 'outbox.address'])
      .where('approvals.is_open', '=', sql.lit(1))
      .where('approvals.state', '<>', sql.lit('asked'))
      .where('outbox.state', '=', sql.lit('delivered'))
      .where('outbox.channel', 'in', channels)
      .orderBy('approvals.asked_at')
      .limit(limit)
      .execute()
    return rows.map(({ channel, address, ...row }) => ({ ...toApproval(row), channel, address }))
  }

  /** Records that it is no longer shown as a question. */
  async close(id: string): Promise<void> {
    await this.db.updateTable('approvals').set({ is_open: 0 }).where('id', '=', id).execute()
  }
}

const withdraw = compiled((db, { messageId, at }: { messageId: string; at: number }) =>
  db
    .updateTable('approvals')
    .set({ state: 'withdrawn', answered_at: at })
    .where('message_id', '=', messageId)
    .where('state', '=', sql.lit('asked'))
    .returning('id'),
)

function toApproval({ is_open: _isOpen, ...row }: Schema['approvals']): Approval {
  return fromRow({ ...row, tool_input: JSON.parse(row.tool_input) as Approval['toolInput'] })
}
