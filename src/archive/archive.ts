// Conversations as Markdown, one file for each UTC day, made from the database.
//
// What must stay true:
// - The database is what holds; a file can be lost or deleted, and is made again.
// - A file is there as a whole or not at all: it is written beside its place and moved there.
// - The mark of a conversation says up to where its files are right. It is written last, so that whatever ends us
//   before, the next update makes good what is missing.

import { readdirSync, rmSync, statSync } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { makePrivateDirectory } from '../core/private-directory.js'
import { type ArchivedConversation, DAY_MS } from '../store/archive-queries.js'
import type { Store } from '../store/store.js'
import { conversationPath } from './conversation-path.js'
import { renderDay } from './render-day.js'

/** The name is hidden: a reader of the archive has no use for it. */
const MARK = '.written-until'
/** A transaction may be seen later than the time it carries, and the clocks of two gateways differ. */
const OVERLAP_MS = 3_600_000
const CONVERSATIONS_AT_ONCE = 100
/** All of a day is written anew: better once for several turns that follow each other. */
const DELAY_MS = 5_000
/** Nobody writes one file for so long: what is older was left by a process that died. */
const LEFTOVER_MS = 3_600_000

export interface Rebuilt {
  conversations: number
  days: number
}

export class Archive {
  readonly #waiting = new Set<string>()
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(
    private readonly directory: string,
    private readonly store: Pick<Store, 'archive'>,
    private readonly log: Log,
    private readonly now: () => number = Date.now,
    /** Takes out what must not be written. */
    private readonly scrub: (text: string) => string = (text) => text,
  ) {}

  /** Writes what has changed, soon, and not while the next turn begins. Contract: returns at once and never throws. */
  update({ id }: { id: string }): void {
    this.#waiting.add(id)
    this.#timer ??= setTimeout(() => this.#begin(), DELAY_MS)
  }

  /** Writes what waits; settles when nothing is being written. */
  async written(): Promise<void> {
    this.#begin()
    await this.#writing
  }

  /** Writes every day of every conversation again. Files of which the database knows nothing are left. */
  async rebuild(): Promise<Rebuilt> {
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
    // A write that is under way may have taken it along.
    if (this.#waiting.size > 0) this.#writing ??= this.#writeWaiting()
  }

  async #writeWaiting(): Promise<void> {
    for (const id of this.#waiting) {
      // Before it is read, so that a change from now on brings it back.
      this.#waiting.delete(id)
      try {
        const conversation = await this.store.archive.conversation(id)
        if (conversation) await this.#write(conversation, (await readMark(this.#pathOf(conversation))) - OVERLAP_MS)
      } catch (error) {
        this.log.warn('archive.not-written', { conversationId: id, error: messageOf(error) })
      }
    }
    this.#writing = undefined
  }

  /** How many days there were to look at. */
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

  #pathOf({ channel, address }: ArchivedConversation): string {
    return join(this.directory, conversationPath(channel, address))
  }
}

/** Milliseconds since the epoch; 0 when there is no mark that can be read. */
async function readMark(path: string): Promise<number> {
  const mark = await readIfThere(join(path, MARK))
  return Date.parse(mark?.toString().trim() ?? '') || 0
}

/** Contract: a reader finds the old content or the new one. A file that has the content already is not touched. */
async function replaceFile(path: string, name: string, content: string): Promise<void> {
  const file = join(path, name)
  const bytes = Buffer.from(content)
  // By the process: `aetheel archive` may write the same day as a gateway.
  const beside = join(path, `.${name}.${process.pid}.tmp`)
  try {
    if ((await readIfThere(file))?.equals(bytes)) return
    makePrivateDirectory(path)
    const handle = await open(beside, 'w', 0o600)
    try {
      await handle.writeFile(bytes)
      // Else a power cut could leave the new name with nothing in it.
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(beside, file)
  } catch (error) {
    const advice = 'Check that there is room on the disk and that this user may write there.'
    const message = `The archive cannot be written: ${messageOf(error)}. ${advice}`
    throw new GatewayError('store_unavailable', message, { cause: error })
  }
}

async function readIfThere(file: string): Promise<Buffer | undefined> {
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
    // A gateway may be about to move it.
    const leftAt = name.endsWith('.tmp') ? statSync(file, { throwIfNoEntry: false })?.mtimeMs : undefined
    if (leftAt !== undefined && now - leftAt > LEFTOVER_MS) rmSync(file, { force: true })
  }
}

function dateOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}
