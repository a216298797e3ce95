import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { localFile } from '../../src/media/local-file.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

it('reads a file, and refuses a pipe without waiting for a writer', async () => {
  const directory = temporaryDirectory(onTestFinished)
  const [file, pipe] = [join(directory, 'a.txt'), join(directory, 'pipe')]
  writeFileSync(file, 'abc')
  execFileSync('mkfifo', [pipe])
  const read = async (path: string): Promise<string> =>
    Buffer.from(await (await localFile(path)).read(new AbortController().signal)).toString()
  await expect(read(pipe)).rejects.toThrow('it is not a file')
  expect(await read(file)).toBe('abc')
})
