import { messageOf } from '../../errors.js'
import type { Store } from '../../store/store.js'
import { bad, type DoctorReport, good, renderFindings } from './findings.js'

/** The part of `aetheel doctor` about the database. Contract: never rejects, and changes nothing. */
export async function storeReport(
  lookUp: (find: (store: Pick<Store, 'engine' | 'check'>) => Promise<string>) => Promise<string>,
): Promise<DoctorReport> {
  try {
    const engine = await lookUp(async (store) => {
      await store.check()
      return store.engine
    })
    return renderFindings('Database', [good(engine === 'sqlite' ? 'SQLite, no damage found' : 'PostgreSQL, reached')])
  } catch (error) {
    return renderFindings('Database', [bad('it cannot be used', messageOf(error))])
  }
}
