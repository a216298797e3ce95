import type { TestProject } from 'vitest/node'
import { findPostgres, startPostgresCluster } from './postgres-cluster.js'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string | undefined
  }
}

const missing =
  'The PostgreSQL half of the tests needs a PostgreSQL server, and none was found on PATH or in the usual places. ' +
  'Install it (Debian: apt-get install postgresql; Homebrew: brew install postgresql@17); the tests start it themselves.'

/** One server for the whole test run; vitest calls the returned function when the run is over. */
export default async function setUpPostgres(project: TestProject): Promise<() => void | Promise<void>> {
  const binaries = findPostgres(process.env['PATH'] ?? '')
  if (binaries === undefined) {
    if (process.env['AETHEEL_TEST_POSTGRES'] === 'required') throw new Error(missing)
    // After the summary, where it is seen.
    return () => console.warn(`\nPostgreSQL was NOT tested. ${missing}\n`)
  }
  const cluster = await startPostgresCluster(binaries)
  project.provide('postgresUrl', cluster.url)
  return () => cluster.stop()
}
