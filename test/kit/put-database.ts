import { copyFileSync, existsSync } from 'node:fs'
import { inject } from 'vitest'
import type { StoreLocation } from '../../src/store/store.js'

/** A file of SQLite with its tables, where there is none: to make them takes longer than most tests. What is about how they
 *  are made does without it. */
export function putDatabase({ file, databaseUrl }: StoreLocation): void {
  if (databaseUrl === undefined && !existsSync(file)) copyFileSync(inject('emptyDatabase'), file)
}
