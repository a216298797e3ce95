import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { inject } from 'vitest'

export interface TestDatabase {
  url: string
  /** Ends open connections, too. */
  drop(): Promise<void>
}

/** The server of this test run; undefined if PostgreSQL is not installed, so its tests are skipped. */
export function postgresUrl(): string | undefined {
  return inject('postgresUrl')
}

/** A fresh, empty database for one test. */
export async function createDatabase(): Promise<TestDatabase> {
  const serverUrl = postgresUrl()
  if (serverUrl === undefined)
    throw new Error('PostgreSQL is not installed: skip this test when postgresUrl() is undefined.')
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await execute(serverUrl, `create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => execute(serverUrl, `drop database ${name} with (force)`) }
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
