import { copyFileSync, existsSync } from 'node:fs'
import { inject } from 'vitest'
import type { StoreLocation } from '../../src/store/store.js'

/** Puts an SQLite file with empty tables in place: creating them takes longer than most tests. Tests of migrations do not
 *  use it. */
export function putDatabase({ file, databaseUrl }: StoreLocation): void {
  if (databaseUrl === undefined && !existsSync(file)) copyFileSync(inject('emptyDatabase'), file)
}
