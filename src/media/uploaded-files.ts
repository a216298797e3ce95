// The content of files that were uploaded over HTTP, until their conversation is deleted.
//
// Invariants:
// - A file is named by its id, never by what its sender called it.
// - Agents cannot write there: what is shown again is what was uploaded.
// - A file is there completely or not at all.

import { createWriteStream } from 'node:fs'
import { open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { makePrivateDirectory } from '../core/paths.js'
import { GatewayError } from '../errors.js'
import { describeBytes } from './byte-size.js'
import { declaredTypeOf, typeOfContent } from './inbox-files.js'

export interface UploadLimits {
  maxBytes: number
  /** MIME types, such as `text/plain` or `image/*`. */
  types: string[]
}

export class UploadedFiles {
  constructor(private readonly directory: string) {}

  /** Contract: throws `too_large`, or `request_invalid` for a type that is not accepted, and leaves nothing behind. */
  async receive(
    id: string,
    content: Readable,
    type: string | undefined,
    { maxBytes, types }: UploadLimits,
  ): Promise<{ bytes: number; mediaType: string }> {
    const declared = declaredTypeOf(type, types)
    makePrivateDirectory(this.directory)
    const part = `${this.#pathOf(id)}.part`
    let bytes = 0
    // Destroying it would also destroy the connection that the answer needs.
    const chunks = content.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
    const counted = async function* (): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        bytes += chunk.length
        if (bytes > maxBytes) throw uploadTooLarge(maxBytes)
        yield chunk
      }
    }
    try {
      await pipeline(counted, createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }))
      const mediaType = declared.type ?? typeOfContent(await readFile(part), declared, types)
      await rename(part, this.#pathOf(id))
      return { bytes, mediaType }
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
  }

  read(id: string): Promise<Buffer> {
    return readFile(this.#pathOf(id))
  }

  /** Undefined if it is not on this machine. */
  async stream(id: string): Promise<Readable | undefined> {
    try {
      return (await open(this.#pathOf(id))).createReadStream()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  async remove(ids: string[]): Promise<void> {
    for (const id of ids) await rm(this.#pathOf(id), { force: true })
  }

  /** The names of all files, including those written only in part. */
  async list(): Promise<string[]> {
    try {
      return await readdir(this.directory)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  }

  /** Contract: the id is one of ours. */
  #pathOf(id: string): string {
    return join(this.directory, id)
  }
}

export function uploadTooLarge(maxBytes: number): GatewayError {
  const advice = 'Send a smaller one, or raise ATTACHMENT_MAX_MB.'
  return new GatewayError('too_large', `The file is larger than ${describeBytes(maxBytes)}. ${advice}`)
}
