import { basename } from 'node:path'
import { projectIdSchema } from '../config/schema.js'
import { GatewayError } from '../errors.js'

const MAX_ID_CHARACTERS = 64

/** Contract: throws `request_invalid` unless it is an id. */
export function checkProjectId(id: string): string {
  const parsed = projectIdSchema.safeParse(id)
  if (parsed.success) return id
  const rule = 'It must have 1 to 64 letters, digits, "-" and "_", and start with a letter or a digit.'
  throw new GatewayError('request_invalid', `${JSON.stringify(id.slice(0, 100))} is not a project id. ${rule}`)
}

/** An id derived from the name; empty if no character of it is allowed in an id. */
export function idFromName(name: string): string {
  return name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, MAX_ID_CHARACTERS)
    .replace(/-+$/, '')
}

/** The name of a directory or repository: the last part of its path, without `.git`. */
export function nameFromPath(path: string): string {
  const last = basename(path.replace(/\/+$/, '')).split(':').at(-1) ?? ''
  return last.replace(/\.git$/, '')
}
