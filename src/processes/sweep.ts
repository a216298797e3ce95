// Started by the guardian after its gateway has died: ends every process of that owner, removes their files and exits.

import { wait } from '../core/async.js'
import { OWNER_MARKER } from './process-owner.js'
import { endLeftovers, NO_PID } from './process-tree.js'
import { removeRunDirectories } from './run-directory.js'

const [, , ownerId = ''] = process.argv
if (ownerId === '') throw new Error('Usage: sweep <owner id>')

const DEADLINE_MS = 8_000
const ROUNDS = 6
const PAUSE_MS = 250

// The service manager or terminal that ended the gateway may signal us too.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(signal, () => {})

// A process that cannot be ended, such as one in an uninterruptible call, must not keep us forever.
setTimeout(() => process.exit(), DEADLINE_MS).unref()

// Several rounds: a process that was being started when the gateway died is not marked yet.
for (let round = 0; round < ROUNDS; round += 1) {
  if (round > 0) await wait(PAUSE_MS)
  await endLeftovers({ pid: NO_PID, startTime: 0, marker: `${OWNER_MARKER}=${ownerId}`, hasExited: () => true })
}
// Nobody to report to; the next gateway tries again.
removeRunDirectories(ownerId, () => {})
