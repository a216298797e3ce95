import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { saveIncomingFiles } from '../../src/media/inbox-files.js'
import { MAY_MOUNT, mountSmallDisk } from '../kit/small-disk.js'

it.skipIf(!MAY_MOUNT)('saves what fits on a full disk, and reports what does not', async () => {
  const directory = mountSmallDisk()
  const large = Buffer.alloc(64 * 1024 * 1024, 'x')
  const files = [
    { name: 'large.txt', type: 'text/plain', bytes: large.length, read: async () => large },
    { name: 'small.txt', type: 'text/plain', bytes: 5, read: async () => Buffer.from('small') },
  ]
  const { signal } = new AbortController()
  const limits = { maxBytes: large.length, types: ['text/*'], signal }
  const { lines, notes } = await saveIncomingFiles(files, { directory, messageId: '100', ...limits })
  expect({ lines, notes, saved: readFileSync(join(directory, '.aetheel/inbox/100/small.txt'), 'utf8') }).toEqual({
    lines: ['Attached file: .aetheel/inbox/100/small.txt (text/plain, 5 bytes)'],
    notes: ['The file "large.txt" was not saved: the gateway\'s disk is full. Free some space, and send it again.'],
    saved: 'small',
  })
})
