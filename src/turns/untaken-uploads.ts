// Removes uploaded files that were never sent with a message.

import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { UploadedFiles } from '../media/uploaded-files.js'
import type { Store } from '../store/store.js'

interface UploadDependencies {
  store: Pick<Store, 'uploads'>
  uploads: UploadedFiles
  log: Log
  now: () => number
}

const KEPT_MS = 3_600_000
const LOOK_MS = 600_000

/** Returns a function that stops it. Contract: nothing is being uploaded when it starts. */
export function removeUntakenUploads({ store, uploads, log, now }: UploadDependencies): () => void {
  const look = async (isFirst: boolean): Promise<void> => {
    try {
      await uploads.remove(await store.uploads.removeUntaken(now() - KEPT_MS))
      // Left behind by a process that died.
      if (isFirst) await uploads.remove(await store.uploads.unknown(await uploads.list()))
    } catch (error) {
      log.warn('upload.not-removed', { error: messageOf(error) })
    }
  }
  void look(true)
  const timer = setInterval(() => void look(false), LOOK_MS).unref()
  return () => clearInterval(timer)
}
