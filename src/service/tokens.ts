// Creates and revokes tokens, for the API and the command line.

import { defined } from '../core/defined.js'
import { GatewayError } from '../errors.js'
import type { Note } from '../store/audit.js'
import type { Store } from '../store/store.js'
import type { Scope, TokenRecord } from '../store/tokens.js'
import { describeRights, issueToken } from './auth.js'
import { removeTokenFile, tokenFileHash } from './token-file.js'

export interface NewToken {
  name: string
  scope: Scope
  /** All if absent. */
  projects?: string[] | undefined
  /** Absent, it never expires. */
  days?: number | undefined
}

interface TokenDependencies {
  store: Store
  now: () => number
  newId: () => string
}

const DAY_MS = 24 * 3_600_000

/** Contract: only the caller ever has `token`. Throws `request_invalid`, or `not_found` for an unknown project. */
export async function createToken(
  { name, scope, projects, days }: NewToken,
  { store, now, newId }: TokenDependencies,
  note: Note,
): Promise<{ token: string; record: TokenRecord }> {
  if (!/^\P{Cc}{1,100}$/u.test(name)) {
    throw new GatewayError(
      'request_invalid',
      'A token needs a name of 1 to 100 characters, without control characters.',
    )
  }
  if (days !== undefined && !(Number.isInteger(days) && days >= 1 && days <= 3650)) {
    throw new GatewayError(
      'request_invalid',
      'A token can be valid for 1 to 3650 days. Omit the days for one that never expires.',
    )
  }
  await requireProjects(store, projects ?? [])
  return store.transaction(async (tables) => {
    const expiresAt = days === undefined ? undefined : now() + days * DAY_MS
    const issued = await issueToken(tables.tokens, defined({ name, scope, projects, expiresAt }), { now, newId })
    await note(tables, { action: 'token.create', subject: issued.record.id, detail: describeRights(issued.record) })
    return issued
  })
}

/** Removes it, also from the file of the first token. If `check` throws, nothing changes. */
export async function revokeToken(
  token: TokenRecord,
  home: string,
  store: Store,
  note: Note,
  check: (tokens: Store['tokens']) => Promise<void> = async () => {},
): Promise<void> {
  const isInFile = await isInTokenFile(store, home, token)
  await store.transaction(async (tables) => {
    await tables.tokens.remove(token.id)
    await check(tables.tokens)
    await note(tables, { action: 'token.revoke', subject: token.id, detail: token.name })
  })
  if (isInFile) removeTokenFile(home)
}

export async function isInTokenFile(
  { tokens }: Pick<Store, 'tokens'>,
  home: string,
  token: TokenRecord,
): Promise<boolean> {
  const hash = tokenFileHash(home)
  return hash !== undefined && (await tokens.find(hash))?.id === token.id
}

async function requireProjects({ projects }: Pick<Store, 'projects'>, ids: string[]): Promise<void> {
  const known = (await projects.list()).map(({ id }) => id)
  const unknown = ids.filter((id) => !known.includes(id))
  if (unknown.length === 0) return
  const advice = known.length === 0 ? 'There are no projects yet.' : `Known: ${known.join(', ')}`
  throw new GatewayError('not_found', `There is no project ${unknown.join(', ')}. ${advice}`)
}
