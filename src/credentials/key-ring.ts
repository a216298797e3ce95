// The keys that credentials are sealed with.
//
// Invariants:
// - A key is on disk before anything is sealed with it, and stays there as long as anything is.
// - The file is read every time it is needed: another process may have changed it.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { GatewayError, messageOf } from '../errors.js'
import { makePrivateDirectory } from '../core/paths.js'
import type { Scrubber } from './scrubber.js'

export interface Sealed {
  keyId: string
  /** Base64 of the initialisation vector, the ciphertext and the tag. */
  sealed: string
}

interface Keys {
  current: string
  /** By id. */
  keys: Record<string, Buffer>
}

const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const CIPHER = 'aes-256-gcm'
const KEY_TEXT = /^[A-Za-z0-9+/]{43}=?$/

const KeyFile = z.object({ current: z.string(), keys: z.record(z.string(), z.string().regex(KEY_TEXT)) })

interface KeyRingOptions {
  home: string
  masterKey?: string | undefined
  scrubber?: Pick<Scrubber, 'add'>
}

export class KeyRing {
  readonly #file: string
  readonly #fromEnvironment: Keys | undefined
  readonly #scrubber: Pick<Scrubber, 'add'> | undefined

  /**
   * `masterKey` is `AETHEEL_MASTER_KEY`: a key, then, after commas, earlier ones that may still be in use. Without it, keys
   * are in a file in `home`, created on first use. `scrubber` learns every key, since an agent may print the file.
   */
  constructor({ home, masterKey, scrubber }: KeyRingOptions) {
    this.#file = join(home, 'master.key')
    this.#scrubber = scrubber
    this.#fromEnvironment = masterKey ? this.#register(parseMasterKey(masterKey)) : undefined
  }

  /** The same `associatedData` is needed to open it. */
  seal(plain: string, associatedData: string): Sealed {
    const { current, keys } = this.#fromEnvironment ?? this.#readFile() ?? this.#makeFile()
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv(CIPHER, keyOf(keys, current), iv).setAAD(Buffer.from(associatedData))
    const sealed = Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return { keyId: current, sealed: sealed.toString('base64') }
  }

  /** Contract: throws if the key is missing, or if a single bit of the ciphertext or `associatedData` was changed. */
  open({ keyId, sealed }: Sealed, associatedData: string): string {
    const key = this.#fromEnvironment?.keys[keyId] ?? this.#readFile()?.keys[keyId]
    if (!key) {
      const where = this.#fromEnvironment
        ? `neither in AETHEEL_MASTER_KEY nor in ${this.#file}`
        : `not in ${this.#file}`
      const advice = 'Restore the key, or set the credential again.'
      throw new GatewayError('config_invalid', `Its key ${keyId} is ${where}. ${advice}`)
    }
    const bytes = Buffer.from(sealed, 'base64')
    try {
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(associatedData)).setAuthTag(bytes.subarray(-TAG_BYTES))
      const plain = [decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]
      return Buffer.concat(plain).toString()
    } catch (error) {
      const message = 'It was changed or moved in the database. Set it again.'
      throw new GatewayError('store_corrupt', message, { cause: error })
    }
  }

  /** Seals with a new key from now on; with `AETHEEL_MASTER_KEY`, with its first key. Older keys still open. */
  advance(): void {
    if (this.#fromEnvironment) return
    const known = this.#readFile()
    const key = randomBytes(KEY_BYTES)
    this.#replaceFile({ current: idOf(key), keys: { ...known?.keys, [idOf(key)]: key } })
  }

  /** Discards every key in the file that is neither current nor one of these. */
  retain(keyIds: ReadonlySet<string>): void {
    const known = this.#readFile()
    if (!known) return
    const current = this.#fromEnvironment ? undefined : known.current
    const kept = Object.entries(known.keys).filter(([id]) => id === current || keyIds.has(id))
    if (kept.length === 0) rmSync(this.#file)
    else if (kept.length < Object.keys(known.keys).length) {
      this.#replaceFile({ current: current ?? kept[0]?.[0] ?? '', keys: Object.fromEntries(kept) })
    }
  }

  #readFile(): Keys | undefined {
    let descriptor: number
    try {
      descriptor = openSync(this.#file, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw unusable(this.#file, `It cannot be read: ${messageOf(error)}. Give this user read access.`, error)
    }
    try {
      // Stat the open descriptor: the file could be swapped between two calls by path.
      const stats = fstatSync(descriptor)
      if (!stats.isFile()) throw unusable(this.#file, 'It is not a file. Move it away; a new one is created.')
      if ((stats.mode & 0o077) !== 0) {
        throw unusable(this.#file, 'Other users can read it. Run "chmod 600" on it, then rotate the key.')
      }
      return this.#register(parseKeyFile(this.#file, readFileSync(descriptor, 'utf8')))
    } finally {
      closeSync(descriptor)
    }
  }

  #makeFile(): Keys {
    const key = randomBytes(KEY_BYTES)
    const made = { current: idOf(key), keys: { [idOf(key)]: key } }
    const draft = this.#writeDraft(made)
    try {
      // Not by rename, which would overwrite a file that another process has created meanwhile.
      linkSync(draft, this.#file)
    } catch (error) {
      const theirs = this.#readFile()
      if (theirs) return theirs
      throw unusable(this.#file, `It cannot be created: ${messageOf(error)}. Give this user write access.`, error)
    } finally {
      rmSync(draft)
    }
    syncDirectory(dirname(this.#file))
    return made
  }

  #replaceFile(keys: Keys): void {
    renameSync(this.#writeDraft(keys), this.#file)
    syncDirectory(dirname(this.#file))
  }

  #register(keys: Keys): Keys {
    this.#scrubber?.add(Object.values(keys.keys).map((key) => key.toString('base64')))
    return keys
  }

  #writeDraft({ current, keys }: Keys): string {
    const draft = `${this.#file}.${randomBytes(6).toString('hex')}.tmp`
    this.#register({ current, keys })
    const texts = Object.fromEntries(Object.entries(keys).map(([id, key]) => [id, key.toString('base64')]))
    try {
      makePrivateDirectory(dirname(this.#file))
      writeFileSync(draft, `${JSON.stringify({ current, keys: texts }, null, 2)}\n`, {
        mode: 0o600,
        flag: 'wx',
        flush: true,
      })
    } catch (error) {
      rmSync(draft, { force: true })
      const advice = 'Free some space, or give this user write access.'
      throw unusable(this.#file, `It cannot be written: ${messageOf(error)}. ${advice}`, error)
    }
    return draft
  }
}

export function parseMasterKey(text: string): Keys {
  const keys = text.split(',').map((part) => part.trim())
  if (!keys.every((key) => KEY_TEXT.test(key))) {
    const advice = 'Generate one with "openssl rand -base64 32". Earlier keys may follow, separated by commas.'
    throw new GatewayError('config_invalid', `AETHEEL_MASTER_KEY must be 32 bytes in base64. ${advice}`)
  }
  const entries = keys.map((key) => Buffer.from(key, 'base64')).map((key) => [idOf(key), key] as const)
  return { current: entries[0]?.[0] ?? '', keys: Object.fromEntries(entries) }
}

function parseKeyFile(file: string, text: string): Keys {
  try {
    const { current, keys: texts } = KeyFile.parse(JSON.parse(text))
    const keys = Object.fromEntries(Object.entries(texts).map(([id, key]) => [id, Buffer.from(key, 'base64')]))
    const isWhole = Object.entries(keys).every(([id, key]) => id === idOf(key)) && keys[current] !== undefined
    if (isWhole) return { current, keys }
  } catch {
    // The error is dropped: it may quote a key.
  }
  throw unusable(file, 'It is damaged. Restore a backup, or move it away and set every credential again.')
}

/** Identifies a key and reveals nothing about it. */
function idOf(key: Buffer): string {
  return createHash('sha256').update('aetheel master key\0').update(key).digest('hex').slice(0, 16)
}

function keyOf(keys: Record<string, Buffer>, id: string): Buffer {
  const key = keys[id]
  if (!key) throw new Error(`There is no key ${id}`)
  return key
}

function unusable(file: string, sentences: string, cause?: unknown): GatewayError {
  const message = `The key file ${file} cannot be used. ${sentences}`
  return new GatewayError('config_invalid', message, cause === undefined ? {} : { cause })
}

/** A new directory entry is durable only once the directory is synced. */
function syncDirectory(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
