// The write-ahead log of SQLite: flushes commits to disk in the background, and detects the loss of flushed ones.
//
// SQLite would flush within each commit, which blocks the whole process: no agent is read, no reply is sent. Here one flush
// runs at a time in the background, and commits made meanwhile share the next one.
//
// For SQLite the log ends at the first frame with a wrong checksum, as after a power failure. So a frame that is damaged
// later silently discards every commit after it. A small file beside the log, the mark, records how much of the log is on disk.
//
// What must stay true: the mark never covers more than what was flushed, or an intact log would be refused. It may cover
// less.

import { closeSync, constants, openSync, readFileSync, readSync, truncateSync, writeSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { GatewayError, messageOf } from '../errors.js'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const MARK_BYTES = 16

interface CommitLog {
  datasync(): Promise<void>
  close(): Promise<void>
}

export class LogFlush {
  #log: Promise<CommitLog> | undefined
  #underWay: Promise<void> | undefined
  #next: Promise<void> | undefined
  #failure: GatewayError | undefined

  constructor(private readonly open: () => Promise<CommitLog>) {}

  /**
   * Contract: settles when everything committed before the call is on disk. Once a flush has failed, it always rejects: the
   * system may drop what it could not write, and reports that only once.
   */
  flush(): Promise<void> {
    if (!this.#underWay) return this.#begin()
    this.#next ??= this.#underWay.then(() => this.#begin())
    return this.#next
  }

  #begin(): Promise<void> {
    this.#next = undefined
    this.#underWay = this.#sync()
    return this.#underWay
  }

  async #sync(): Promise<void> {
    try {
      this.#log ??= this.open()
      await (await this.#log).datasync()
    } catch (error) {
      const problem = `The latest changes may not be on disk: ${messageOf(error)}.`
      const advice = 'Check the disk, then restart the gateway.'
      this.#failure = new GatewayError('store_unavailable', `${problem} ${advice}`, { cause: error })
      throw this.#failure
    }
    // Otherwise the next one starts when this one has settled.
    if (!this.#next) this.#underWay = undefined
  }

  /** Call before a change. Contract: throws if changes no longer reach the disk. */
  requireSound(): void {
    if (this.#failure) throw this.#failure
  }

  /** Contract: nothing is committed after the call. */
  async close(): Promise<void> {
    // The failure goes to whoever committed.
    await Promise.allSettled([this.#next ?? this.#underWay])
    const [log] = await Promise.allSettled([this.#log])
    if (log.status === 'fulfilled') await log.value?.close()
  }
}

/** A place in a log. */
interface Place {
  /** They change each time the log restarts, when all of it has been moved into the database. */
  salts: bigint
  frames: number
}

export function markFileOf(logFile: string): string {
  return logFile.replace(/-wal$/, '-mark')
}

/** A log whose mark advances with each flush. */
export async function openMarkedLog(logFile: string): Promise<CommitLog> {
  const log = await open(logFile, 'r+')
  return new MarkedLog(log, await open(markFileOf(logFile), constants.O_RDWR | constants.O_CREAT, 0o600))
}

class MarkedLog implements CommitLog {
  #committed: Place = { salts: 0n, frames: 0 }

  constructor(
    private readonly log: FileHandle,
    private readonly mark: FileHandle,
  ) {}

  async datasync(): Promise<void> {
    const { fd } = this.log
    const header = readHeader(fd)
    if (header) this.#committed = lastCommit(fd, header, this.#committed)
    const flushed = this.#committed
    await this.log.datasync()
    try {
      writeSync(this.mark.fd, bytesOf(flushed), 0, MARK_BYTES, 0)
    } catch {
      // On a full disk, for example. The previous mark is still right.
    }
  }

  async close(): Promise<void> {
    await this.mark.close()
    await this.log.close()
  }
}

/** Resets the mark, so that nothing is expected of the log. Contract: called before or after the log is emptied. */
export function clearMark(logFile: string): void {
  ifFound(() => truncateSync(markFileOf(logFile)))
}

/** Whether everything that was on disk is still there. Others may write to the log meanwhile. */
export function isLogWhole(logFile: string): boolean {
  const mark = readMark(markFileOf(logFile))
  if (!mark) return true
  const fd = ifFound(() => openSync(logFile, 'r'))
  if (fd === undefined) return false
  try {
    const header = readHeader(fd)
    if (!header?.isSound) return false
    if (header.salts !== mark.salts || soundFrames(fd, header, mark.frames) === mark.frames) return true
    // It has restarted meanwhile.
    return readHeader(fd)?.salts !== mark.salts
  } finally {
    closeSync(fd)
  }
}

function readMark(markFile: string): Place | undefined {
  const bytes = ifFound(() => readFileSync(markFile))
  if (!bytes || bytes.length < MARK_BYTES || crc32(bytes.subarray(0, 12)) !== bytes.readUInt32BE(12)) return undefined
  return { salts: bytes.readBigUInt64BE(0), frames: bytes.readUInt32BE(8) }
}

/** Undefined if there is no such file. */
function ifFound<T>(use: () => T): T | undefined {
  try {
    return use()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

function bytesOf({ salts, frames }: Place): Buffer {
  const bytes = Buffer.alloc(MARK_BYTES)
  bytes.writeBigUInt64BE(salts, 0)
  bytes.writeUInt32BE(frames, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 12)), 12)
  return bytes
}

interface LogHeader {
  salts: bigint
  frameBytes: number
  isLittleEndian: boolean
  sum: Sum
  /** Whether its checksum is correct. */
  isSound: boolean
}

function readHeader(fd: number): LogHeader | undefined {
  const bytes = Buffer.alloc(HEADER_BYTES)
  if (readSync(fd, bytes, 0, HEADER_BYTES, 0) < HEADER_BYTES) return undefined
  const isLittleEndian = (bytes.readUInt32BE(0) & 1) === 0
  const sum = add({ first: 0, second: 0 }, bytes.subarray(0, 24), isLittleEndian)
  return {
    salts: bytes.readBigUInt64BE(16),
    frameBytes: FRAME_HEADER_BYTES + bytes.readUInt32BE(8),
    isLittleEndian,
    sum,
    isSound: isSumAt(bytes, 24, sum),
  }
}

/** The end of the last commit in the log, searched from an earlier one on. What follows it may be overwritten. */
function lastCommit(fd: number, { salts, frameBytes }: LogHeader, earlier: Place): Place {
  const frame = Buffer.alloc(FRAME_HEADER_BYTES)
  let frames = earlier.salts === salts ? earlier.frames : 0
  for (let index = frames; ; index += 1) {
    const read = readSync(fd, frame, 0, FRAME_HEADER_BYTES, HEADER_BYTES + index * frameBytes)
    if (read < FRAME_HEADER_BYTES || frame.readBigUInt64BE(8) !== salts) return { salts, frames }
    const isCommit = frame.readUInt32BE(4) !== 0
    if (isCommit) frames = index + 1
  }
}

/** How many frames, counted from the first up to a maximum, have correct checksums. */
function soundFrames(fd: number, { salts, frameBytes, isLittleEndian, sum }: LogHeader, most: number): number {
  const frame = Buffer.alloc(frameBytes)
  let running = sum
  for (let index = 0; index < most; index += 1) {
    if (readSync(fd, frame, 0, frameBytes, HEADER_BYTES + index * frameBytes) < frameBytes) return index
    running = add(running, frame.subarray(0, 8), isLittleEndian)
    running = add(running, frame.subarray(FRAME_HEADER_BYTES), isLittleEndian)
    if (frame.readBigUInt64BE(8) !== salts || !isSumAt(frame, 16, running)) return index
  }
  return most
}

/** The checksum of SQLite's log, which runs on from frame to frame. */
interface Sum {
  first: number
  second: number
}

function add({ first, second }: Sum, bytes: Buffer, isLittleEndian: boolean): Sum {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + words.getUint32(at, isLittleEndian) + second) >>> 0
    second = (second + words.getUint32(at + 4, isLittleEndian) + first) >>> 0
  }
  return { first, second }
}

function isSumAt(bytes: Buffer, offset: number, { first, second }: Sum): boolean {
  return bytes.readUInt32BE(offset) === first && bytes.readUInt32BE(offset + 4) === second
}
