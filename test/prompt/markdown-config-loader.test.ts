import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FILE_LIMIT_BYTES, MarkdownConfigLoader, TOTAL_LIMIT_BYTES } from '../../src/prompt/markdown-config-loader.js'
import { asNobody } from '../kit/permissions.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { recordingLog } from '../kit/log.js'

const MARK = /\n\[… cut: only the first (\d+) of (\d+) bytes are used, since .* …\]$/

describe('MarkdownConfigLoader', () => {
  it('reads every file and the skills, sorted by name', async () => {
    const { write, load } = setup()
    const names = ['identity', 'soul', 'user', 'memory', 'tools', 'agents', 'heartbeat']
    for (const name of names) write(`${name}.md`, `the ${name}`)
    write('skills/b.md', 'bee')
    write('skills/a-c/SKILL.md', 'dash')
    write('skills/a.md', 'ay')
    write('skills/Z/skill.md', 'zed')
    expect(await load()).toEqual({
      markdown: {
        ...Object.fromEntries(names.map((name) => [name, `the ${name}`])),
        skills: [
          { name: 'Z', text: 'zed' },
          { name: 'a', text: 'ay' },
          { name: 'a-c', text: 'dash' },
          { name: 'b', text: 'bee' },
        ],
      },
      warnings: [],
    })
  })

  it('finds nothing in a directory that does not exist, and does not mind', async () => {
    expect(await setup('not/there').load()).toEqual({ markdown: { skills: [] }, warnings: [] })
  })

  it('finds nothing in an empty directory, and does not mind', async () => {
    expect(await setup().load()).toEqual({ markdown: { skills: [] }, warnings: [] })
  })

  it('ignores other files', async () => {
    const { write, load } = setup()
    for (const name of ['README.md', 'identity.txt', '.identity.md', 'skills/notes.txt', 'skills/.draft.md']) {
      write(name, 'private')
    }
    write('skills/.git/SKILL.md', 'private')
    write('skills/unfinished/notes.md', 'private')
    expect(await load()).toEqual({ markdown: { skills: [] }, warnings: [] })
  })

  it('reads the files again with each call', async () => {
    const { write, load } = setup()
    write('memory.md', 'one')
    await load()
    write('memory.md', 'two')
    write('soul.md', 'new')
    expect((await load()).markdown).toEqual({ memory: 'two', soul: 'new', skills: [] })
  })

  it('takes names in upper case', async () => {
    const { write, load } = setup()
    write('IDENTITY.md', 'shouted')
    write('Soul.MD', 'mixed')
    write('SKILLS/one.MD', 'skill')
    expect(await load()).toEqual({
      markdown: { identity: 'shouted', soul: 'mixed', skills: [{ name: 'one', text: 'skill' }] },
      warnings: [],
    })
  })

  it.runIf(process.platform === 'linux')(
    'prefers lower case where both exist, and names the file it did not read',
    async () => {
      const { path, write, load } = setup()
      write('identity.md', 'lower')
      write('IDENTITY.md', 'upper')
      expect(await load()).toEqual({
        markdown: { identity: 'lower', skills: [] },
        warnings: [{ file: path('IDENTITY.md'), problem: 'not read, since identity.md is in the same directory' }],
      })
    },
  )

  it('takes away a byte order mark and carriage returns', async () => {
    const { write, load } = setup()
    write('user.md', '\uFEFFone\r\ntwo\rthree\n')
    expect(await load()).toEqual({ markdown: { user: 'one\ntwo\nthree\n', skills: [] }, warnings: [] })
  })

  it('replaces what is not valid UTF-8, and says so', async () => {
    const { path, write, load } = setup()
    write('user.md', Buffer.from([0x61, 0xff, 0x62]))
    expect(await load()).toEqual({
      markdown: { user: 'a\uFFFDb', skills: [] },
      warnings: [{ file: path('user.md'), problem: expect.stringContaining('UTF-8') }],
    })
  })

  it('follows a symbolic link out of the directory', async () => {
    const { path, write, load } = setup()
    const { path: elsewhere, write: writeElsewhere } = setup()
    writeElsewhere('shared.md', 'shared')
    writeElsewhere('skill/SKILL.md', 'shared skill')
    symlinkSync(elsewhere('shared.md'), path('soul.md'))
    write('skills/own.md', 'own')
    symlinkSync(elsewhere('skill'), path('skills/linked'))
    expect(await load()).toEqual({
      markdown: {
        soul: 'shared',
        skills: [
          { name: 'linked', text: 'shared skill' },
          { name: 'own', text: 'own' },
        ],
      },
      warnings: [],
    })
  })

  it.each<[string, (path: string) => void, string]>([
    ['a directory', (path) => mkdirSync(path), 'not a regular file'],
    ['a pipe', (path) => execFileSync('mkfifo', [path]), 'not a regular file'],
    ['a device without end', (path) => symlinkSync('/dev/zero', path), 'not a regular file'],
    ['a link to itself', (path) => symlinkSync(path, path), 'ELOOP'],
    ['a link to nothing', (path) => symlinkSync('/nowhere/soul.md', path), 'ENOENT'],
  ])('continues without %s in place of a file, and says so', async (_, make, problem) => {
    const { path, write, load } = setup()
    write('skills/kept.md', 'kept')
    make(path('soul.md'))
    make(path('skills/lost.md'))
    expect(await load()).toEqual({
      markdown: { skills: [{ name: 'kept', text: 'kept' }] },
      warnings: ['soul.md', 'skills/lost.md'].map((name) => ({
        file: path(name),
        problem: expect.stringContaining(problem),
      })),
    })
  })

  it('continues without a file it may not read, and says so', async () => {
    const { path, write, load } = setup()
    write('soul.md', 'secret')
    chmodSync(path('soul.md'), 0)
    chmodSync(path('.'), 0o755)
    expect(await asNobody(load)).toEqual({
      markdown: { skills: [] },
      warnings: [{ file: path('soul.md'), problem: expect.stringContaining('EACCES') }],
    })
  })

  it('continues without skills that are not a directory, and says so', async () => {
    const { path, write, load } = setup()
    write('skills', 'not a directory')
    expect(await load()).toEqual({
      markdown: { skills: [] },
      warnings: [{ file: path('skills'), problem: expect.stringContaining('ENOTDIR') }],
    })
  })

  it('says so when its own directory is a file', async () => {
    const { path, write } = setup()
    write('prompt', 'not a directory')
    const { load } = setup('prompt', path('.'))
    expect(await load()).toEqual({
      markdown: { skills: [] },
      warnings: [{ file: path('prompt'), problem: expect.stringContaining('ENOTDIR') }],
    })
  })

  it('reads all of a file of exactly the limit', async () => {
    const { write, load } = setup()
    const text = 'x'.repeat(FILE_LIMIT_BYTES)
    write('memory.md', text)
    expect(await load()).toEqual({ markdown: { memory: text, skills: [] }, warnings: [] })
  })

  it('cuts a longer file where a character begins, with a mark in the text', async () => {
    const { write, load } = setup()
    // One byte, then characters of four: the limit falls inside one of them.
    write('memory.md', `x${'🦆'.repeat(FILE_LIMIT_BYTES / 4)}`)
    const { markdown, warnings } = await load()
    const text = markdown.memory ?? ''
    expect({
      kept: text.replace(MARK, '') === `x${'🦆'.repeat(FILE_LIMIT_BYTES / 4 - 1)}`,
      mark: MARK.exec(text)?.slice(1).map(Number),
      warnings: warnings.length,
    }).toEqual({ kept: true, mark: [FILE_LIMIT_BYTES - 3, FILE_LIMIT_BYTES + 1], warnings: 1 })
  })

  it('does not read all of a file of many gigabytes', async () => {
    const { path, write, load } = setup()
    write('memory.md', '')
    truncateSync(path('memory.md'), 20 * 1024 ** 3)
    const { markdown } = await load()
    expect(
      MARK.exec(markdown.memory ?? '')
        ?.slice(1)
        .map(Number),
    ).toEqual([FILE_LIMIT_BYTES, 20 * 1024 ** 3])
  })

  it('cuts at the total limit of all files, and leaves out further skills', async () => {
    const { path, write, load } = setup()
    const size = FILE_LIMIT_BYTES - 10
    for (const name of ['identity', 'soul', 'user']) write(`${name}.md`, 'x'.repeat(size))
    for (const name of ['a', 'b', 'c', 'd']) write(`skills/${name}.md`, name.repeat(size))
    const { markdown, warnings } = await load()
    const lengths = markdown.skills.map(({ name, text }) => [name, text.replace(MARK, '').length])
    expect({ lengths, warnings }).toEqual({
      lengths: [
        ['a', size],
        ['b', TOTAL_LIMIT_BYTES - 4 * size],
      ],
      warnings: [
        { file: path('skills/b.md'), problem: expect.stringMatching(/^only the first 40 of 65526 bytes/) },
        { file: path('skills'), problem: expect.stringMatching(/^2 skills are skipped/) },
      ],
    })
  })

  it('reports a file once, and again if its size has changed or it was fine in between', async () => {
    const { path, write, load } = setup()
    const counts: number[] = []
    for (const size of [FILE_LIMIT_BYTES + 1, FILE_LIMIT_BYTES + 1, FILE_LIMIT_BYTES + 2, 5, FILE_LIMIT_BYTES + 2]) {
      write('memory.md', 'x'.repeat(size))
      counts.push((await load()).warnings.length)
    }
    rmSync(path('memory.md'))
    counts.push((await load()).warnings.length)
    expect(counts).toEqual([1, 0, 1, 0, 1, 0])
  })

  it('never fails, whatever bytes the files hold, and never gives more than the limit', async () => {
    const { write, load } = setup()
    const anyBytes = fc.uint8Array({ minLength: 0, maxLength: 64 })
    await fc.assert(
      fc.asyncProperty(anyBytes, fc.nat({ max: 3 }), async (bytes, over) => {
        const filler = Buffer.alloc(Math.max(0, FILE_LIMIT_BYTES - bytes.length + over), 'x')
        write('soul.md', Buffer.concat([filler, bytes]))
        const { markdown } = await load()
        const kept = (markdown.soul ?? '').replace(MARK, '')
        // A byte that is not UTF-8 becomes one character, so there are at most as many characters as bytes.
        expect(kept.length <= FILE_LIMIT_BYTES && kept.startsWith('xxxx')).toEqual(true)
      }),
      { numRuns: 100 },
    )
  })
})

function setup(name = '.', parent?: string) {
  const root = parent ?? temporaryDirectory()
  const log = recordingLog()
  const loader = new MarkdownConfigLoader(join(root, name), log)
  const path = (file: string) => join(root, file)
  return {
    path,
    write(file: string, content: string | Buffer) {
      mkdirSync(dirname(path(file)), { recursive: true })
      writeFileSync(path(file), content)
    },
    async load() {
      const markdown = await loader.load()
      const warnings = log.warnings.splice(0)
      return {
        markdown,
        warnings: warnings.map(([message, fields]) => (message === 'prompt.file-problem' ? fields : message)),
      }
    },
  }
}
