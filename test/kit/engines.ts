import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, describe, onTestFinished } from 'vitest'
import { openPostgres } from '../../src/store/postgres.js'
import { migrate, openStore, type Store, type StoreLocation, storeOn } from '../../src/store/store.js'
import { createDatabase, postgresUrl } from './postgres.js'
import { putDatabase } from './put-database.js'
import { temporaryDirectory } from './temporary-directory.js'
import { SILENT_LOG } from './log.js'

export interface TestEngine {
  name: Store['engine']
  /** An empty database without tables, until the test ends. */
  createLocation(): Promise<StoreLocation>
  /** An open, empty store, for one test at a time. */
  createStore(): Promise<Store>
}

/** Runs a suite on both engines; on PostgreSQL only if it is installed. */
export function describeEngines(title: string, suite: (engine: TestEngine) => void): void {
  describe(`${title} (sqlite)`, () => {
    suite(sqlite)
  })
  describe.skipIf(postgresUrl() === undefined)(`${title} (postgres)`, () => {
    suite(createPostgres())
  })
}

/** A store that is closed when the test ends. */
export async function openTestStore(location: StoreLocation): Promise<Store> {
  const store = await openStore(location, SILENT_LOG)
  onTestFinished(() => store.close())
  return store
}

const sqlite: TestEngine = {
  name: 'sqlite',
  createLocation: async () => ({ file: createFile() }),
  createStore: () => {
    const file = createFile()
    putDatabase({ file })
    return openTestStore({ file })
  },
}

/** Creating a database takes longer than most tests, so one is reused and emptied each time. */
function createPostgres(): TestEngine {
  let shared: ReturnType<typeof openShared> | undefined
  afterAll(async () => {
    await (await shared)?.close()
  })
  return {
    name: 'postgres',
    createLocation: async () => {
      const { url, drop } = await createDatabase()
      onTestFinished(drop)
      return { file: createFile(), databaseUrl: url }
    },
    createStore: async () => {
      shared ??= openShared()
      const { store } = await shared
      await sql.raw(EMPTY_ALL_TABLES).execute(store.db)
      return store
    },
  }
}

async function openShared() {
  const { url, drop } = await createDatabase()
  const store = storeOn(await openPostgres(url, SILENT_LOG))
  await migrate(store.db)
  const close = async (): Promise<void> => {
    await store.close()
    await drop()
  }
  return { store, close }
}

// A replica checks no references, so any order works.
const EMPTY_ALL_TABLES = `do $$
  declare name text;
  begin
    set local session_replication_role = replica;
    for name in select tablename from pg_tables where schemaname = 'public' and tablename not like 'kysely%' loop
      execute format('delete from %I', name);
    end loop;
  end $$`

function createFile(): string {
  return join(temporaryDirectory(), 'aetheel.db')
}
