import type { Schema } from './schema.js'
import { fromJson, fromRow, Table, toJson } from './table.js'

/** What a token allows; each scope includes those before it. */
export const SCOPES = ['read', 'run', 'admin'] as const

export type Scope = (typeof SCOPES)[number]

/** A token, without its secret, which only its holder knows. */
export interface TokenRecord {
  id: string
  name: string
  scope: Scope
  /** The ids of the projects it may use; all if absent. */
  projects?: string[]
  createdAt: number
  expiresAt?: number
  usedAt?: number
}

/** A browser that has logged in with a token. */
export interface Login {
  /** SHA-256 of the browser's cookie value, in hex. */
  hash: string
  tokenHash: string
  expiresAt: number
}

/** Per token: more browsers than anyone uses. */
const MOST_LOGINS = 50

export class Tokens extends Table {
  /** `hash` is the SHA-256 of the token, in hex. */
  async add({ id, name, scope, projects, createdAt, expiresAt }: TokenRecord, hash: string): Promise<void> {
    await this.db
      .insertInto('tokens')
      .values({
        id,
        name,
        hash,
        scopes: JSON.stringify([scope]),
        projects: toJson(projects),
        created_at: createdAt,
        expires_at: expiresAt,
      })
      .execute()
  }

  /** Newest first. */
  async list(): Promise<TokenRecord[]> {
    const rows = await this.db.selectFrom('tokens').selectAll().orderBy('created_at', 'desc').orderBy('id').execute()
    return rows.map(toToken)
  }

  /** By the hash of the token itself or of a login with it; `expiresAt` is the earlier of both. */
  async find(hash: string): Promise<(TokenRecord & { hash: string }) | undefined> {
    const row = await this.db.selectFrom('tokens').selectAll().where('hash', '=', hash).executeTakeFirst()
    return row ? { ...toToken(row), hash: row.hash } : this.#findByLogin(hash)
  }

  async #findByLogin(hash: string): Promise<(TokenRecord & { hash: string }) | undefined> {
    const row = await this.db
      .selectFrom('logins')
      .innerJoin('tokens', 'tokens.hash', 'logins.token_hash')
      .selectAll('tokens')
      .select('logins.expires_at as login_expires_at')
      .where('logins.hash', '=', hash)
      .executeTakeFirst()
    if (!row) return undefined
    const { login_expires_at: loginEnd, ...token } = row
    return { ...toToken(token), hash, expiresAt: Math.min(loginEnd, token.expires_at ?? Infinity) }
  }

  /** Removes the oldest logins of the token if there are too many. */
  async addLogin({ hash, tokenHash, expiresAt }: Login, now: number): Promise<void> {
    await this.db.deleteFrom('logins').where('expires_at', '<=', now).execute()
    await this.db.insertInto('logins').values({ hash, token_hash: tokenHash, expires_at: expiresAt }).execute()
    const latest = await this.db
      .selectFrom('logins')
      .select('hash')
      .where('token_hash', '=', tokenHash)
      .orderBy('expires_at', 'desc')
      .orderBy('hash')
      .limit(MOST_LOGINS)
      .execute()
    const kept = latest.map((login) => login.hash)
    await this.db.deleteFrom('logins').where('token_hash', '=', tokenHash).where('hash', 'not in', kept).execute()
  }

  async removeLogin(hash: string): Promise<void> {
    await this.db.deleteFrom('logins').where('hash', '=', hash).execute()
  }

  /** The hash of the oldest token that allows everything, if there is one. */
  async hashOfAdmin(now: number): Promise<string | undefined> {
    const row = await this.db
      .selectFrom('tokens')
      .select('hash')
      .where('scopes', '=', JSON.stringify(['admin' satisfies Scope]))
      .where('projects', 'is', null)
      .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', now)]))
      .orderBy('created_at')
      .orderBy('id')
      .limit(1)
      .executeTakeFirst()
    return row?.hash
  }

  /** Whether there is a token that has not expired. */
  async hasAny(now: number): Promise<boolean> {
    const row = await this.db
      .selectFrom('tokens')
      .select('id')
      .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', now)]))
      .limit(1)
      .executeTakeFirst()
    return row !== undefined
  }

  /** Gives a token a new secret, which invalidates the old one. False if there is no such token. */
  async replace(id: string, hash: string): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('tokens')
      .set({ hash, used_at: null })
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    return numUpdatedRows === 1n
  }

  /** The hashes of all tokens and logins, each with the hash of its token. */
  async hashes(): Promise<Map<string, string>> {
    const tokens = await this.db.selectFrom('tokens').select('hash').execute()
    const logins = await this.db
      .selectFrom('logins')
      .innerJoin('tokens', 'tokens.hash', 'logins.token_hash')
      .select(['logins.hash', 'logins.token_hash'])
      .execute()
    return new Map([
      ...tokens.map(({ hash }) => [hash, hash] as const),
      ...logins.map(({ hash, token_hash: tokenHash }) => [hash, tokenHash] as const),
    ])
  }

  async used(id: string, now: number): Promise<void> {
    await this.db.updateTable('tokens').set({ used_at: now }).where('id', '=', id).execute()
  }

  /** Removes a project from all tokens; a token without any other project is removed itself. */
  async forgetProject(projectId: string): Promise<void> {
    for (const { id, projects } of await this.list()) {
      if (!projects?.includes(projectId)) continue
      const others = projects.filter((other) => other !== projectId)
      if (others.length === 0) await this.remove(id)
      else {
        const values = { projects: JSON.stringify(others) }
        await this.db.updateTable('tokens').set(values).where('id', '=', id).execute()
      }
    }
  }

  /** False if there was no such token. */
  async remove(id: string): Promise<boolean> {
    const { numDeletedRows } = await this.db.deleteFrom('tokens').where('id', '=', id).executeTakeFirstOrThrow()
    return numDeletedRows === 1n
  }
}

function toToken({ hash: _hash, scopes: text, ...row }: Schema['tokens']): TokenRecord {
  const scopes = JSON.parse(text) as Scope[]
  const scope = SCOPES.findLast((each) => scopes.includes(each)) ?? 'read'
  return fromRow({ ...row, scope, projects: fromJson(row.projects) as string[] | null })
}
