import { createHash } from 'node:crypto'
import type { Schema } from './schema.js'
import { fromRow, Table, toRow } from './table.js'

/** What an agent may do in a project without asking. */
export interface ApprovalRule {
  id: string
  /** Absent for conversations without a project. */
  projectId?: string
  backend: string
  toolName: string
  /** Absent for everything the tool does. Never a pattern: it must match exactly. */
  subject?: string
  createdAt: number
  createdBy: string
}

const NO_PROJECT = ''

export class ApprovalRules extends Table {
  /** Does nothing if the rule exists. */
  async add(rule: Omit<ApprovalRule, 'id'>): Promise<void> {
    await this.db
      .insertInto('approval_rules')
      .values({ ...toRow(rule), id: idOf(rule), project_id: rule.projectId ?? NO_PROJECT })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute()
  }

  /** Whether a rule allows it, for the whole tool or for exactly this subject. */
  async allows({
    projectId,
    backend,
    toolName,
    subject,
  }: Pick<ApprovalRule, 'projectId' | 'backend' | 'toolName' | 'subject'>): Promise<boolean> {
    const row = await this.db
      .selectFrom('approval_rules')
      .select('id')
      .where('project_id', '=', projectId ?? NO_PROJECT)
      .where('backend', '=', backend)
      .where('tool_name', '=', toolName)
      .where((is) =>
        is.or([is('subject', 'is', null), ...(subject === undefined ? [] : [is('subject', '=', subject)])]),
      )
      .limit(1)
      .executeTakeFirst()
    return row !== undefined
  }

  async get(id: string): Promise<ApprovalRule | undefined> {
    const row = await this.db.selectFrom('approval_rules').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toRule(row)
  }

  /** Newest first. */
  async list({ projectIds }: { projectIds?: string[] }, limit: number): Promise<ApprovalRule[]> {
    let query = this.db.selectFrom('approval_rules').selectAll().orderBy('created_at', 'desc').orderBy('id')
    if (projectIds) query = query.where('project_id', 'in', projectIds)
    return (await query.limit(limit).execute()).map(toRule)
  }

  /** False if there was no such rule. */
  async remove(id: string): Promise<boolean> {
    const { numDeletedRows } = await this.db.deleteFrom('approval_rules').where('id', '=', id).executeTakeFirstOrThrow()
    return numDeletedRows === 1n
  }

  async removeAllOf(projectId: string): Promise<void> {
    await this.db.deleteFrom('approval_rules').where('project_id', '=', projectId).execute()
  }
}

/** The same rule always gets the same id, so that none exists twice. Formatted like other ids. */
function idOf({ projectId, backend, toolName, subject }: Omit<ApprovalRule, 'id'>): string {
  const content = JSON.stringify([projectId ?? null, backend, toolName, subject ?? null])
  const hex = createHash('sha256').update(content).digest('hex')
  return hex.slice(0, 32).replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-8$3-8$4-$5')
}

function toRule({ project_id: projectId, ...row }: Schema['approval_rules']): ApprovalRule {
  return { ...fromRow(row), ...(projectId !== NO_PROJECT && { projectId }) }
}
