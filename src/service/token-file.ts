// The file with the first token, for the gateway's owner.

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashOf } from './auth.js'

export function tokenFile(home: string): string {
  return join(home, 'http-token')
}

export function writeTokenFile(home: string, token: string): void {
  const path = tokenFile(home)
  rmSync(path, { force: true })
  // `wx`: never write through a file or link that somebody put there meanwhile.
  writeFileSync(path, `${token}\n`, { mode: 0o600, flag: 'wx' })
}

export function removeTokenFile(home: string): void {
  rmSync(tokenFile(home), { force: true })
}

export function tokenFileHash(home: string): string | undefined {
  const token = readTokenFile(home)
  return token === undefined ? undefined : hashOf(token)
}

export function readTokenFile(home: string): string | undefined {
  try {
    return readFileSync(tokenFile(home), 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
