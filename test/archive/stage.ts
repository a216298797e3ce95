import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Archive } from '../../src/archive/archive.js'
import { conversationPath } from '../../src/archive/conversation-path.js'
import type { Reply } from '../../src/channels/types.js'
import { Queue } from '../../src/turns/queue.js'
import type { Settlement } from '../../src/turns/types.js'
import type { Store, StoreLocation } from '../../src/store/store.js'
import { openTestStore, type TestEngine } from '../kit/engines.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { recordingLog, type RecordingLog } from '../kit/log.js'
import { queueOn } from '../kit/queue.js'

export const CHANNEL = 'chat'

export interface Stage {
  store: Store
  location: StoreLocation
  queue: Queue
  home: string
  directory: string
  archive: Archive
  log: RecordingLog
  /** Accepts a message; `at` is an ISO time. */
  say(at: string, text: string, options?: { address?: string; author?: string }): Promise<string>
  /** Runs the next message. Returns the conversation's id. */
  work(at: string, settle: (runId: string) => Settlement): Promise<string>
  answer(at: string, text: string, reply?: Partial<Reply>): Promise<string>
  fileOf(name: string, address?: string): string
  read(name: string, address?: string): string
  /** Writes what has changed. */
  write(conversationId: string): Promise<void>
}

const RESULT = { isError: false, durationMs: 1 }

/** A queue with a known clock and known ids: `id-1`, `id-2` and so on. */
export async function createStage(engine: TestEngine): Promise<Stage> {
  const location = await engine.createLocation()
  const store = await openTestStore(location)
  const home = temporaryDirectory()
  const directory = join(home, 'archive')
  const log = recordingLog()
  const archive = new Archive(directory, store, log)

  let now = 0
  let lastId = 0
  const newId = () => `id-${(lastId += 1)}`
  const queue = queueOn(store, { maxQueueDepth: 2, now: () => now, newId })
  const work: Stage['work'] = async (at, settle) => {
    now = Date.parse(at)
    const runId = newId()
    const claimed = await queue.claim([CHANNEL], {}, () => ({ id: runId, backend: 'claude', model: 'opus' }))
    if (!claimed) throw new Error(`There is nothing to work on at ${at}`)
    await queue.settle(claimed, settle(runId))
    return claimed.conversation.id
  }
  const fileOf: Stage['fileOf'] = (name, address = 'room') => join(directory, conversationPath(CHANNEL, address), name)
  return {
    store,
    location,
    queue,
    home,
    directory,
    archive,
    log,
    say: async (at, text, { address = 'room', author = 'ann' } = {}) => {
      now = Date.parse(at)
      const platformId = newId()
      return (await queue.accept({ channel: CHANNEL, address, platformId, author, text })).messageId
    },
    work,
    answer: (at, text, reply) =>
      work(at, (id) => ({
        kind: 'answered',
        run: { id, result: RESULT },
        reply: { text, notes: [], isError: false, ...reply },
      })),
    fileOf,
    read: (name, address) => readFileSync(fileOf(name, address), 'utf8'),
    write: async (id) => {
      archive.update({ id })
      await archive.flush()
    },
  }
}
