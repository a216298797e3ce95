import { randomUUID } from 'node:crypto'
import type { Log } from '../log.js'
import { startGuardian } from './guardian.js'
import type { ProcessOwner } from './process-owner.js'

/** An owner without a ledger: if this process is killed, only the guardian cleans up. */
export function guardedOwner(log: Log): { owner: ProcessOwner; stop(): Promise<void> } {
  const id = randomUUID()
  const guardian = startGuardian(id, log)
  return { owner: { id, started: async () => {}, ended: async () => {} }, stop: () => guardian.stop() }
}
