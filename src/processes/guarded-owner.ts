import { randomUUID } from 'node:crypto'
import type { Log } from '../log.js'
import { startGuardian } from './guardian.js'
import type { ProcessOwner } from './process-owner.js'

/** Keeps no record: only the guardian ends what is left, should this process be killed. */
export function guardedOwner(log: Log): { owner: ProcessOwner; stop(): Promise<void> } {
  const id = randomUUID()
  const guardian = startGuardian(id, log)
  return { owner: { id, started: async () => {}, ended: async () => {} }, stop: () => guardian.stop() }
}
