import type { Kysely } from 'kysely'
import type { Schema } from './schema.js'

/** A directory with its agent; what is left out comes from the configuration. */
export interface Project {
  id: string
  directory: string
  backend?: string
  model?: string
  allowedTools?: string[]
  queryTimeoutMs?: number
  maxTurns?: number
}

export class Projects {
  constructor(private readonly db: Kysely<Schema>) {}

  async put(project: Project): Promise<void> {
    const values = {
      directory: project.directory,
      backend: project.backend ?? null,
      model: project.model ?? null,
      allowed_tools: project.allowedTools === undefined ? null : JSON.stringify(project.allowedTools),
      query_timeout_ms: project.queryTimeoutMs ?? null,
      max_turns: project.maxTurns ?? null,
    }
    await this.db
      .insertInto('projects')
      .values({ id: project.id, ...values })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
      .execute()
  }

  async get(id: string): Promise<Project | undefined> {
    const row = await this.db.selectFrom('projects').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toProject(row)
  }

  async list(): Promise<Project[]> {
    const rows = await this.db.selectFrom('projects').selectAll().orderBy('id').execute()
    return rows.map(toProject)
  }
}

type Row = Schema['projects']

function toProject(row: Row): Project {
  return {
    id: row.id,
    directory: row.directory,
    ...(row.backend !== null && { backend: row.backend }),
    ...(row.model !== null && { model: row.model }),
    ...(row.allowed_tools !== null && { allowedTools: JSON.parse(row.allowed_tools) as string[] }),
    ...(row.query_timeout_ms !== null && { queryTimeoutMs: row.query_timeout_ms }),
    ...(row.max_turns !== null && { maxTurns: row.max_turns }),
  }
}
