import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDatabase, postgresUrl } from './postgres.js'
import { livingProcesses } from './living-processes.js'

describe.skipIf(postgresUrl() === undefined)('the PostgreSQL of the tests', () => {
  it('is a real server', async () => {
    const { query } = await setup()
    expect(await query('select version()')).toEqual([{ version: expect.stringMatching(/^PostgreSQL \d+/) }])
  })

  it("keeps what is committed, as an operator's server does", async () => {
    const { query } = await setup()
    expect(
      await query(`select name, setting from pg_settings where name in ('fsync', 'synchronous_commit') order by 1`),
    ).toEqual([
      { name: 'fsync', setting: 'on' },
      { name: 'synchronous_commit', setting: 'on' },
    ])
  })

  it('does not run as root', async () => {
    const { query } = await setup()
    const [row] = await query('show data_directory')
    // The server refuses a data directory that is not its own.
    expect(statSync(String(row?.['data_directory'])).uid).not.toBe(0)
  })

  it('gives every test its own database', async () => {
    const [one, other] = await Promise.all([setup(), setup()])
    await one.query('create table note (text text)')
    const tables = `select tablename from pg_tables where schemaname = 'public'`
    expect([await one.query(tables), await other.query(tables)]).toEqual([[{ tablename: 'note' }], []])
  })

  it('drops a database that is still in use', async () => {
    const server = await setup()
    const { url, drop } = await createDatabase()
    const client = new Client({ connectionString: url })
    client.on('error', () => {}) // The lost connection.
    await client.connect()
    await drop()
    const name = new URL(url).pathname.slice(1)
    expect(await server.query(`select datname from pg_database where datname = '${name}'`)).toEqual([])
  })

  it('leaves nothing behind when the test run is killed', async () => {
    const cluster = new URL('postgres-cluster.ts', import.meta.url).href
    const program = `
      const { findPostgres, startPostgresCluster } = await import('${cluster}')
      const { url } = await startPostgresCluster(findPostgres(process.env.PATH))
      process.stdout.write(new URL(url).searchParams.get('host'))
      setInterval(() => {}, 60_000)`
    const run = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void run.kill('SIGKILL'))
    const directory = String(await once(run.stdout, 'data'))
    const isRunning = () => livingProcesses(directory).some(({ command }) => command.includes('postgres'))
    const before = { isRunning: isRunning(), hasFiles: existsSync(directory) }
    run.kill('SIGKILL')
    expect(before).toEqual({ isRunning: true, hasFiles: true })
    await expect
      .poll(() => ({ isRunning: isRunning(), hasFiles: existsSync(directory) }))
      .toEqual({ isRunning: false, hasFiles: false })
  })
})

async function setup(): Promise<{ query(statement: string): Promise<Array<Record<string, unknown>>> }> {
  const { url, drop } = await createDatabase()
  onTestFinished(drop)
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return { query: async (statement) => (await client.query(statement)).rows }
}
