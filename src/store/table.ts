import type { Kysely } from 'kysely'
import type { Engine } from './engine.js'
import type { Schema } from './schema.js'

/** Queries of the database, or within one transaction. */
export abstract class Table {
  constructor(
    protected readonly db: Kysely<Schema>,
    /** For queries that may take long. */
    protected readonly reads: Kysely<Schema>,
    protected readonly engine: Engine,
  ) {}
}
