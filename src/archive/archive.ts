// Conversations as Markdown, one file per UTC day, generated from the database.
//
// Invariants:
// - The database is the source of truth; a lost or deleted file can be regenerated.
// - A file exists completely or not at all: it is written to a temporary name and moved into place.
// - The mark of a conversation says up to when its files are current. It is written last, so if we are killed before,
//   the next update fills the gap.

import { readdirSync, rmSync, statSync } from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { makePrivateDirectory } from '../core/paths.js'
import { type ArchivedConversation, DAY_MS } from '../store/archive-queries.js'
import type { Store } from '../store/store.js'
import { conversationPath } from './conversation-path.js'
import { renderDay } from './render-day.js'

/** Hidden, since readers of the archive have no use for it. */
const MARK = '.written-until'
/** A transaction may become visible later than its timestamp, and the clocks of two gateways differ. */
const OVERLAP_MS = 3_600_000
const CONVERSATIONS_AT_ONCE = 100
/** The whole day is rewritten: better once for several turns in a row. */
const DELAY_MS = 5_000
/** No write takes that long: anything older was left by a process that died. */
const LEFTOVER_MS = 3_600_000

export class Archive {
  readonly #pending = new Set<string>()
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(
    private readonly directory: string,
    private readonly store: Pick<Store, 'archive'>,
    private readonly log: Log,
    private readonly now: () => number = Date.now,
    /** Removes secrets. */
    private readonly scrub: (text: string) => string = (text) => text,
  ) {}

  /** Writes changes soon, but not while the next turn is starting. Contract: returns at once and never throws. */
  update({ id }: { id: string }): void {
    this.#pending.add(id)
    this.#timer ??= setTimeout(() => this.#begin(), DELAY_MS)
  }

  /** Writes everything pending; resolves when nothing is being written. */
  async flush(): Promise<void> {
    this.#begin()
    await this.#writing
  }

  /** Removes the files of a conversation. Contract: the database no longer has it, so nothing writes them again. */
  async remove(conversation: Pick<ArchivedConversation, 'channel' | 'address'>): Promise<void> {
    await this.#writing
    await rm(this.#pathOf(conversation), { recursive: true, force: true })
  }

  /** Rewrites every day of every conversation. Files unknown to the database are left alone. */
  async rebuild(): Promise<{ conversations: number; days: number }> {
    const rebuilt = { conversations: 0, days: 0 }
    for (let afterId = ''; ;) {
      const conversations = await this.store.archive.conversations(afterId, CONVERSATIONS_AT_ONCE)
      const last = conversations.at(-1)
      if (!last) return rebuilt
      for (const conversation of conversations) {
        const days = await this.#write(conversation, 0)
        if (days === 0) continue
        rebuilt.conversations += 1
        rebuilt.days += days
        removeLeftovers(this.#pathOf(conversation), this.now())
      }
      afterId = last.id
    }
  }

  #begin(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // A write under way may have included it.
    if (this.#pending.size > 0) this.#writing ??= this.#writePending()
  }

  async #writePending(): Promise<void> {
    for (const id of this.#pending) {
      // Before reading, so that a change from now on re-adds it.
      this.#pending.delete(id)
      try {
        const conversation = await this.store.archive.conversation(id)
        if (conversation) await this.#write(conversation, (await readMark(this.#pathOf(conversation))) - OVERLAP_MS)
      } catch (error) {
        this.log.warn('archive.not-written', { conversationId: id, error: messageOf(error) })
      }
    }
    this.#writing = undefined
  }

  /** Returns the number of days rendered. */
  async #write(conversation: ArchivedConversation, since: number): Promise<number> {
    const days = await this.store.archive.changedDays(conversation.id, since)
    if (days.length === 0) return 0
    const path = this.#pathOf(conversation)
    for (const day of days) {
      const entries = await this.store.archive.entries(conversation.id, day, day + DAY_MS)
      await replaceFile(path, `${dateOf(day)}.md`, this.scrub(renderDay(conversation, dateOf(day), entries)))
    }
    await replaceFile(path, MARK, `${new Date(conversation.updatedAt).toISOString()}\n`)
    return days.length
  }

  #pathOf({ channel, address }: Pick<ArchivedConversation, 'channel' | 'address'>): string {
    return join(this.directory, conversationPath(channel, address))
  }
}

/** In milliseconds since the epoch; 0 if there is no readable mark. */
async function readMark(path: string): Promise<number> {
  const mark = await readIfExists(join(path, MARK))
  return Date.parse(mark?.toString().trim() ?? '') || 0
}

/** Contract: a reader sees either the old content or the new. An unchanged file is not touched. */
async function replaceFile(path: string, name: string, content: string): Promise<void> {
  const file = join(path, name)
  const bytes = Buffer.from(content)
  // Per process: `aetheel archive` may write the same day as a gateway.
  const temporary = join(path, `.${name}.${process.pid}.tmp`)
  try {
    if ((await readIfExists(file))?.equals(bytes)) return
    makePrivateDirectory(path)
    const handle = await open(temporary, 'w', 0o600)
    try {
      await handle.writeFile(bytes)
      // Otherwise a power cut could leave the new name with nothing in it.
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (error) {
    const advice = 'Check for free disk space and that this user may write there.'
    const message = `The archive cannot be written: ${messageOf(error)}. ${advice}`
    throw new GatewayError('store_unavailable', message, { cause: error })
  }
}

async function readIfExists(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function removeLeftovers(path: string, now: number): void {
  for (const name of readdirSync(path)) {
    const file = join(path, name)
    // A gateway may be about to rename it.
    const leftAt = name.endsWith('.tmp') ? statSync(file, { throwIfNoEntry: false })?.mtimeMs : undefined
    if (leftAt !== undefined && now - leftAt > LEFTOVER_MS) rmSync(file, { force: true })
  }
}

function dateOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}
