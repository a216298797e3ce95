import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRunDirectory, removeRunDirectories } from '../../src/processes/run-directory.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

describe('createRunDirectory', () => {
  const open = () => {
    const directory = createRunDirectory()
    onTestFinished(() => directory.remove())
    return directory
  }

  it('creates a directory that nobody else can read', () => {
    const directory = open()
    const file = directory.write('system-prompt.md', 'Be brief. 🦆')
    expect({
      modes: [directory.path, file].map((path) => (statSync(path).mode & 0o777).toString(8)),
      parent: dirname(file),
      content: readFileSync(file, 'utf8'),
    }).toEqual({ modes: ['700', '600'], parent: directory.path, content: 'Be brief. 🦆' })
  })

  it('creates a new one each time', () => {
    expect(open().path).not.toEqual(open().path)
  })

  it('removes it with everything the agent put there', () => {
    const directory = open()
    mkdirSync(join(directory.path, 'a', 'b'), { recursive: true })
    directory.write('a/b/c', 'left behind')
    directory.remove()
    directory.remove()
    expect(existsSync(directory.path)).toEqual(false)
  })

  it('removes read-only files, such as a module cache', () => {
    const code = `
      import { chmodSync, existsSync, mkdirSync } from 'node:fs'
      import { createRunDirectory } from ${JSON.stringify(new URL('../../src/processes/run-directory.ts', import.meta.url).href)}
      const directory = createRunDirectory()
      mkdirSync(directory.path + '/cache/module', { recursive: true })
      chmodSync(directory.path + '/cache', 0o500)
      directory.remove()
      console.log(existsSync(directory.path))
    `
    // Root may change everything: another user must try.
    const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
    const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', code]
    const env = { PATH: process.env['PATH'], TMPDIR: '/tmp', TSX_DISABLE_CACHE: '1' }
    const { stdout, stderr } = spawnSync(process.execPath, args, { ...user, env, encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['false\n', ''])
  })
})

describe('removeRunDirectories', () => {
  it('removes those of one owner, and never what a link of that name points to', () => {
    const [mine, other] = [createRunDirectory('owner-1'), createRunDirectory('owner-2')]
    const precious = temporaryDirectory()
    const link = join(tmpdir(), 'aetheel-run-owner-1-link')
    writeFileSync(join(precious, 'file'), '')
    symlinkSync(precious, link)
    onTestFinished(() => {
      other.remove()
      rmSync(link)
    })
    removeRunDirectories('owner-1', (_, error) => {
      throw error
    })
    expect([mine.path, other.path, join(precious, 'file')].map((path) => existsSync(path))).toEqual([false, true, true])
  })
})
