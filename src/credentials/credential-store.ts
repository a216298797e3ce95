import type { AgentRequest } from '../backends/types.js'
import { canBeSetForRun } from '../core/environment.js'
import { GatewayError } from '../errors.js'
import type { Note } from '../store/audit.js'
import type { CredentialKind, CredentialRecord } from '../store/credentials.js'
import type { Store } from '../store/store.js'
import type { KeyRing } from './key-ring.js'
import type { Scrubber } from './scrubber.js'
import { SHORTEST_SECRET } from './secret-forms.js'

/** The owner of credentials that every project gets. */
export const GLOBAL_OWNER = ''

/** A credential without its value. */
export type CredentialInfo = Omit<CredentialRecord, 'keyId' | 'sealed'>

export interface CredentialValue {
  name: string
  kind: CredentialKind
  value: string
}

export interface CredentialStoreDependencies {
  store: Pick<Store, 'credentials' | 'transaction'>
  keyRing: KeyRing
  /** Learns every value before anything else sees it. */
  scrubber: Pick<Scrubber, 'add'>
  now: () => number
}

const NAME = /^[A-Z_][A-Z0-9_]{0,99}$/
export const MAX_VALUE_BYTES = 64 * 1024
export const VALUE_TOO_LARGE = 'The value is larger than 64 KB. Use a smaller one.'

/** Secrets for agents, per project or global, sealed in the database. */
export class CredentialStore {
  constructor(private readonly dependencies: CredentialStoreDependencies) {}

  /** Contract: throws `request_invalid` for an invalid name or value, `not_found` for an unknown project. */
  async set(owner: string, name: string, value: string, kind: CredentialKind, note?: Note): Promise<void> {
    const problem = problemOfName(name) ?? problemOfValue(value)
    if (problem !== undefined) throw new GatewayError('request_invalid', problem)
    const { store, keyRing, scrubber, now } = this.dependencies
    scrubber.add([value])
    await store.transaction(async ({ credentials, projects, audit }) => {
      // Seal under the lock: otherwise a rotation could drop the key in between.
      await credentials.lock()
      if (owner !== GLOBAL_OWNER && !(await projects.get(owner))) {
        throw new GatewayError('not_found', `There is no project ${owner}. Check its id, or omit it for all projects.`)
      }
      await credentials.put({ owner, name, kind, ...keyRing.seal(value, associatedDataOf(owner, name)) }, now())
      await note?.({ audit }, { action: 'credential.set', subject: subjectOf(owner, name) })
    })
  }

  /** Those of one owner, or all. */
  async list(owner?: string): Promise<CredentialInfo[]> {
    const records = await this.dependencies.store.credentials.list(owner === undefined ? undefined : [owner])
    return records.map(({ keyId: _keyId, sealed: _sealed, ...info }) => info)
  }

  /** Contract: throws `not_found`. */
  async remove(owner: string, name: string, note?: Note): Promise<void> {
    const isRemoved = await this.dependencies.store.transaction(async ({ credentials, audit }) => {
      if (!(await credentials.remove(owner, name))) return false
      await note?.({ audit }, { action: 'credential.remove', subject: subjectOf(owner, name) })
      return true
    })
    if (isRemoved) return
    const whose = owner === GLOBAL_OWNER ? 'for all projects' : `of the project ${owner}`
    const advice = 'List them with "aetheel credentials list".'
    throw new GatewayError('not_found', `There is no credential ${name} ${whose}. ${advice}`)
  }

  /** Seals everything with a new key and discards the old keys. Returns the number of credentials. */
  async rotate(note?: Note): Promise<number> {
    const { store, keyRing } = this.dependencies
    const count = await store.transaction(async ({ credentials, audit }) => {
      await credentials.lock()
      // Open all of them first: if one fails, nothing changes.
      const opened = (await credentials.list()).map((record) => ({ ...record, value: this.#open(record) }))
      keyRing.advance()
      for (const { owner, name, value } of opened) {
        await credentials.reseal({ owner, name, ...keyRing.seal(value, associatedDataOf(owner, name)) })
      }
      await note?.({ audit }, { action: 'credential.rotate', subject: 'all' })
      return opened.length
    })
    // Only after the commit: had it failed, the old key would still be needed.
    await store.transaction(async ({ credentials }) => {
      await credentials.lock()
      keyRing.retain(new Set((await credentials.list()).map(({ keyId }) => keyId)))
    })
    return count
  }

  /**
   * The credentials for an agent in this project. The project's own take precedence over global ones.
   *
   * Contract: throws if one cannot be opened; an agent must not silently run without it.
   */
  async valuesFor(projectId?: string): Promise<CredentialValue[]> {
    const owners = projectId === undefined ? [GLOBAL_OWNER] : [GLOBAL_OWNER, projectId]
    const records = await this.dependencies.store.credentials.list(owners)
    // The empty (global) owner comes first, and later entries replace earlier ones.
    const byName = new Map(records.map((record) => [record.name, record]))
    return [...byName.values()].map((record) => ({ name: record.name, kind: record.kind, value: this.#open(record) }))
  }

  /** Like `valuesFor`, in the form that a turn takes. */
  async secretsFor(projectId?: string): Promise<Required<Pick<AgentRequest, 'environment' | 'secretFiles'>>> {
    const values = await this.valuesFor(projectId)
    const variables = values.filter(({ kind }) => kind === 'variable').map(({ name, value }) => [name, value])
    const files = values.filter(({ kind }) => kind === 'file')
    return {
      environment: Object.fromEntries(variables) as Record<string, string>,
      secretFiles: files.map(({ name, value }) => ({ variable: name, content: value })),
    }
  }

  /** Registers every value with the scrubber. Returns why some could not be opened; no agent gets those either. */
  async hideAll(): Promise<GatewayError[]> {
    const problems: GatewayError[] = []
    for (const record of await this.dependencies.store.credentials.list()) {
      try {
        this.#open(record)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        problems.push(error)
      }
    }
    return problems
  }

  #open({ owner, name, keyId, sealed }: CredentialRecord): string {
    const { keyRing, scrubber } = this.dependencies
    try {
      const value = keyRing.open({ keyId, sealed }, associatedDataOf(owner, name))
      scrubber.add([value])
      return value
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      throw new GatewayError(error.code, `The credential ${name} cannot be opened. ${error.message}`, { cause: error })
    }
  }
}

/** Undefined if it can be the name of a credential. */
export function problemOfName(name: string): string | undefined {
  if (!NAME.test(name)) {
    return 'A credential name has at most 100 capital letters, digits and "_", and does not start with a digit.'
  }
  if (!canBeSetForRun(name)) return `${name} controls how programs run and cannot be a credential. Use another name.`
  return undefined
}

/** Undefined if it can be the value of a credential. Never quotes it. */
export function problemOfValue(value: string): string | undefined {
  if (value.trim().length < SHORTEST_SECRET) {
    return `The value needs at least ${SHORTEST_SECRET} characters: shorter ones cannot be redacted in agents' output.`
  }
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES) return VALUE_TOO_LARGE
  if (value.includes('\0')) return 'The value contains a NUL, which no variable can hold. Encode it as base64.'
  if (Buffer.from(value).toString() !== value) return 'The value is not valid text. Encode it as base64.'
  return undefined
}

/** Its name in the audit log. */
function subjectOf(owner: string, name: string): string {
  return owner === GLOBAL_OWNER ? name : `${owner}/${name}`
}

/** Authenticated with the seal, so that a row cannot be moved to another project or name. */
function associatedDataOf(owner: string, name: string): string {
  return `${owner}\0${name}`
}
