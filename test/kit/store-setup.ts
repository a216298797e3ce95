import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openStore } from '../../src/store/store.js'
import { SILENT_LOG } from './log.js'

declare module 'vitest' {
  interface ProvidedContext {
    emptyDatabase: string
  }
}

/** One database with all its tables and nothing in them; see `put-database.ts`. */
export default async function setUpStore(project: TestProject): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-tables-'))
  const file = join(directory, 'aetheel.db')
  const store = await openStore({ file }, SILENT_LOG)
  await store.close()
  project.provide('emptyDatabase', file)
  return () => rmSync(directory, { recursive: true })
}
