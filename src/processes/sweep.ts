// Started by the guardian when its gateway has died: ends every process of that owner, removes their files, ends itself.

import { wait } from '../core/async.js'
import { OWNER_MARKER } from './process-owner.js'
import { endLeftovers, NO_PID } from './process-tree.js'
import { removeRunDirectories } from './run-directory.js'

const [, , ownerId = ''] = process.argv
if (ownerId === '') throw new Error('Usage: sweep <owner id>')

const DEADLINE_MS = 8_000
const ROUNDS = 6
const PAUSE_MS = 250

// The service manager or the terminal that ended the gateway may mean us too.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(signal, () => {})

// What cannot be ended, such as a process in an uninterruptible call, must not keep us for ever.
setTimeout(() => process.exit(), DEADLINE_MS).unref()

// More than once: a process that was just being started when the gateway died is not marked yet.
for (let round = 0; round < ROUNDS; round += 1) {
  if (round > 0) await wait(PAUSE_MS)
  await endLeftovers({ pid: NO_PID, startTime: 0, marker: `${OWNER_MARKER}=${ownerId}`, hasExited: () => true })
}
// Nobody is there to be told; the next gateway tries again.
removeRunDirectories(ownerId, () => {})
