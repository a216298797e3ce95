import { notesOf } from '../store/audit.js'
import { describeRights, hashOf, issueToken } from './auth.js'
import type { ServiceDependencies } from './dependencies.js'

type AdminDependencies = Pick<ServiceDependencies, 'gateway' | 'now' | 'newId'>

/** Creates an admin token for all projects. */
export async function issueAdminToken({ gateway, now, newId }: AdminDependencies, name: string): Promise<string> {
  return gateway.store.transaction(async (tables) => {
    const { token, record } = await issueToken(tables.tokens, { name, scope: 'admin' }, { now, newId })
    await notesOf('gateway', now)(tables, {
      action: 'token.create',
      subject: record.id,
      detail: describeRights(record),
    })
    return token
  })
}

/** The hash of an admin token for all projects. Creates one if there is none, and discards its secret. */
export async function adminTokenHash(dependencies: AdminDependencies): Promise<string> {
  const { gateway, now } = dependencies
  const existing = await gateway.store.tokens.hashOfAdmin(now())
  return existing ?? hashOf(await issueAdminToken(dependencies, 'dashboard'))
}
