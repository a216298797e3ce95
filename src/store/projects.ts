import type { Permissions } from '../backends/types.js'
import type { PodAddress } from '../kubernetes/types.js'
import { PROJECT_ID, withParent } from './conversations.js'
import type { ProjectSource, Schema } from './schema.js'
import { fromJson, fromRow, Table, toJson } from './table.js'

/** A directory with its agent. Absent settings come from the configuration. */
export interface Project {
  id: string
  /** A display name; the id if absent. */
  name?: string
  directory: string
  /** The pod with the directory; this machine if absent. */
  pod?: PodAddress
  backend?: string
  model?: string
  allowedTools?: string[]
  queryTimeoutMs?: number
  maxTurns?: number
  /** Nothing in its directory may configure the agent. */
  isUntrusted?: boolean
  agentPermissions?: Permissions
  /** Its directory was created with it. */
  isMadeHere?: boolean
}

export interface ProjectRecord extends Project {
  source: ProjectSource
  /** Distinguishes it from earlier and later projects with the same id. */
  instance: string
  createdAt: number
  updatedAt: number
}

/** The settings that can be changed; `null` clears one. */
export interface ProjectSettings {
  name?: string | null
  backend?: string
  model?: string | null
  allowedTools?: string[] | null
  queryTimeoutMs?: number | null
  maxTurns?: number | null
  isUntrusted?: boolean
  agentPermissions?: Permissions | null
}

export class Projects extends Table {
  /** Creates or changes it. */
  async put(project: Project, source: ProjectSource, now: number): Promise<void> {
    const values = valuesOf(project, source, now)
    await this.db
      .insertInto('projects')
      .values({ ...identityOf(project, now), ...values })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
      .execute()
  }

  /** False if the id is taken. */
  async add(project: Project, now: number, source: ProjectSource = 'api'): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.db
      .insertInto('projects')
      .values({ ...identityOf(project, now), ...valuesOf(project, source, now) })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n
  }

  /** Changes only what is given. */
  async change(id: string, settings: ProjectSettings, now: number): Promise<void> {
    const { name, backend, model, allowedTools, queryTimeoutMs, maxTurns, isUntrusted, agentPermissions } = settings
    await this.db
      .updateTable('projects')
      .set({
        name,
        backend,
        model,
        allowed_tools: allowedTools && JSON.stringify(allowedTools),
        query_timeout_ms: queryTimeoutMs,
        max_turns: maxTurns,
        is_untrusted: isUntrusted === undefined ? undefined : Number(isUntrusted),
        agent_permissions: agentPermissions,
        updated_at: now,
      })
      .where('id', '=', id)
      .execute()
  }

  /** False if there was no such project. Its conversations stay. */
  async remove(id: string): Promise<boolean> {
    const { numDeletedRows } = await this.db.deleteFrom('projects').where('id', '=', id).executeTakeFirstOrThrow()
    return numDeletedRows === 1n
  }

  async get(id: string): Promise<ProjectRecord | undefined> {
    const row = await this.db.selectFrom('projects').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toProject(row)
  }

  /** As `get`, with a lock until we commit: for `use`, nobody removes it; for `removal`, nobody uses it either. */
  async hold(id: string, forWhat: 'use' | 'removal'): Promise<ProjectRecord | undefined> {
    let query = this.db.selectFrom('projects').selectAll().where('id', '=', id)
    if (this.engine.locksRows) query = forWhat === 'use' ? query.forShare() : query.forUpdate()
    const row = await query.executeTakeFirst()
    return row && toProject(row)
  }

  async list(): Promise<ProjectRecord[]> {
    const rows = await this.db.selectFrom('projects').selectAll().orderBy('id').execute()
    return rows.map(toProject)
  }

  /** Resets the sessions of its conversations, except those that have chosen their own agent. A command uses the agent of
   *  the project, and keeps its session while it waits. */
  async clearSessions(id: string, now: number): Promise<void> {
    const waiting = this.db.selectFrom('jobs').select('conversation_id')
    const conversations = this.#conversationsOf(id).where((is) =>
      is.or([
        is.and([is('conversations.backend', 'is', null), is('parent.backend', 'is', null)]),
        is.and([is('conversations.channel', '=', 'http'), is('conversations.id', 'not in', waiting)]),
      ]),
    )
    await this.db
      .updateTable('sessions')
      .set({ session_id: null, reset_at: now })
      .where('conversation_id', 'in', conversations)
      .execute()
  }

  /** How many messages of its conversations are open. */
  async countOpenMessages(id: string): Promise<number> {
    const { count } = await this.db
      .selectFrom('jobs')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('conversation_id', 'in', this.#conversationsOf(id))
      .executeTakeFirstOrThrow()
    return count
  }

  #conversationsOf(id: string) {
    return withParent(this.db).select('conversations.id').where(PROJECT_ID, '=', id)
  }
}

/** What never changes. */
function identityOf({ id }: Project, now: number) {
  // No id contains "~".
  return { id, instance: `${id}~${now.toString(36)}`, created_at: now }
}

function valuesOf(project: Project, source: ProjectSource, now: number) {
  return {
    source,
    name: project.name ?? null,
    directory: project.directory,
    pod: toJson(project.pod),
    backend: project.backend ?? null,
    model: project.model ?? null,
    allowed_tools: toJson(project.allowedTools),
    query_timeout_ms: project.queryTimeoutMs ?? null,
    max_turns: project.maxTurns ?? null,
    is_untrusted: project.isUntrusted ? 1 : 0,
    agent_permissions: project.agentPermissions ?? null,
    is_made_here: project.isMadeHere ? 1 : 0,
    updated_at: now,
  }
}

function toProject({ is_untrusted: isUntrusted, is_made_here: isMadeHere, ...row }: Schema['projects']): ProjectRecord {
  const pod = fromJson(row.pod) as PodAddress | null
  return {
    ...fromRow({ ...row, pod, allowed_tools: fromJson(row.allowed_tools) as string[] | null }),
    ...(isUntrusted === 1 && { isUntrusted: true }),
    ...(isMadeHere === 1 && { isMadeHere: true }),
  }
}
