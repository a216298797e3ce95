import { execFileSync } from 'node:child_process'
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { IncomingFile } from '../../src/channels/types.js'
import { saveIncomingFiles, type InboxOptions } from '../../src/media/inbox-files.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 0xff])
const IN_THE_WAY =
  "a link or something else is in the way in .aetheel/inbox of the project's directory. Remove it, and send the file again."

describe('saveIncomingFiles', () => {
  it('saves each file and names it with its type and size', async () => {
    const { save, contents } = setup()
    const saved = await save([textFile('notes.txt', 'hello'), { ...anyFile('a.png', PNG), type: 'image/png' }])
    expect({ saved, contents: contents() }).toEqual({
      saved: {
        lines: [
          'Attached file: .aetheel/inbox/100/notes.txt (text/plain, 5 bytes)',
          'Attached file: .aetheel/inbox/100/a.png (image/png, 8 bytes)',
        ],
        notes: [],
      },
      contents: {
        '.aetheel/.gitignore': '*\n',
        '.aetheel/inbox/100/a.png': PNG.toString('latin1'),
        '.aetheel/inbox/100/notes.txt': 'hello',
      },
    })
  })

  it('returns the path and type of the first saved file', async () => {
    const { path } = setup()
    const files = [{ ...anyFile('a.ttf', PNG), type: 'font/ttf' }, textFile('b.txt', 'one'), textFile('c.txt', 'two')]
    const { first } = await saveIncomingFiles(files, { ...OPTIONS, directory: path })
    expect(first).toEqual({ path: join(path, '.aetheel/inbox/100/b.txt'), type: 'text/plain' })
  })

  it('keeps them private', async () => {
    const { save, path } = setup()
    await save([textFile('notes.txt', 'hello')])
    const modeOf = (name: string) => (statSync(join(path, name)).mode & 0o777).toString(8)
    const places = ['.aetheel', '.aetheel/inbox', '.aetheel/inbox/100', '.aetheel/inbox/100/notes.txt']
    expect(places.map(modeOf)).toEqual(['700', '700', '700', '600'])
  })

  it('hides them from git', async () => {
    const { save, path } = setup()
    execFileSync('git', ['init', '--quiet'], { cwd: path })
    await save([textFile('notes.txt', 'hello')])
    expect(execFileSync('git', ['status', '--porcelain', '--untracked-files=all'], { cwd: path }).toString()).toEqual(
      '',
    )
  })

  it('keeps an existing .gitignore', async () => {
    const { save, path, contents } = setup()
    mkdirSync(join(path, '.aetheel'))
    writeFileSync(join(path, '.aetheel/.gitignore'), 'inbox\n')
    await save([textFile('notes.txt', 'hello')])
    expect(contents()['.aetheel/.gitignore']).toEqual('inbox\n')
  })

  it('creates nothing without an allowed file', async () => {
    const { save, contents } = setup()
    await save([])
    await save([{ ...anyFile('a.ttf', PNG), type: 'font/ttf' }])
    expect(contents()).toEqual({})
  })

  it('works in a directory reached through a link', async () => {
    const { save, path, contents } = setup()
    const link = `${path}-link`
    symlinkSync(path, link)
    onTestFinished(() => rmSync(link))
    await save([textFile('notes.txt', 'hello')], { directory: link })
    expect(contents()['.aetheel/inbox/100/notes.txt']).toEqual('hello')
  })

  it('writes a file of the same message only once', async () => {
    const { save, path } = setup()
    const files = [textFile('a.txt', 'one'), anyFile('b', Buffer.from('two'))]
    const first = await save(files)
    const inodes = () => ['a.txt', 'b'].map((name) => statSync(join(path, '.aetheel/inbox/100', name)).ino)
    const before = inodes()
    const second = await save(files)
    expect({ second, inodes: inodes() }).toEqual({ second: first, inodes: before })
  })

  it('does not fetch a file that already exists', async () => {
    const { save } = setup()
    const first = await save([textFile('a.txt', 'one')])
    expect(await save([{ ...textFile('a.txt', 'one'), read: () => Promise.reject(new Error('gone')) }])).toEqual(first)
  })

  it('replaces one of another size completely, and leaves hard links to it alone', async () => {
    const { save, path, contents } = setup()
    mkdirSync(join(path, '.aetheel/inbox/100'), { recursive: true })
    writeFileSync(join(path, 'precious'), 'pr')
    linkSync(join(path, 'precious'), join(path, '.aetheel/inbox/100/a.txt'))
    await save([textFile('a.txt', 'whole')])
    expect(contents()).toMatchObject({ precious: 'pr', '.aetheel/inbox/100/a.txt': 'whole' })
  })

  it.each<[what: string, name: string, saved: string]>([
    ['a plain name', 'Report 2026.tar.gz', 'Report 2026.tar.gz'],
    ['a way out', '../../etc/passwd', 'etc-passwd'],
    ['a way out as on Windows', '..\\..\\boot.ini', 'boot.ini'],
    ['an absolute path', '/etc/shadow', 'etc-shadow'],
    ['a hidden name', '.env', 'env'],
    ['an option', '--force', 'force'],
    ['nothing', '', 'file'],
    ['only dots', '..', 'file'],
    ['control characters', 'a\0b\n\x1b[31mc.txt', 'ab[31mc.txt'],
    ['marks that turn the writing round', 'photo\u202egpj.exe', 'photogpj.exe'],
    ['half a character', 'a\ud83d.txt', 'a.txt'],
    ['a name in two parts per letter', 'u\u0308ber.txt', '\u00fcber.txt'],
    ['what a shell would run', 'a`id`$(id)".txt', 'a-id--(id)-.txt'],
    ['an accent that becomes a backtick', 'a\u1fefb.txt', 'a-b.txt'],
    ['spaces that cannot be typed', 'Shot 9.41\u202fAM.png', 'Shot 9.41 AM.png'],
    ['blanks and dots at the end', 'a.txt . ', 'a.txt'],
    ['a long name', `${'n'.repeat(300)}.json`, `${'n'.repeat(95)}.json`],
    ['a long name in a script of three bytes', `${'字'.repeat(300)}.md`, `${'字'.repeat(79)}.md`],
    ['a long name of wide characters', '🙂'.repeat(80), '🙂'.repeat(50)],
    ['a long end that is no extension', `a.${'x'.repeat(200)}`, `a.${'x'.repeat(98)}`],
  ])('gives a safe name for %s', async (_, name, saved) => {
    const { save, path } = setup()
    await save([textFile(name, 'text')])
    expect(readdirSync(join(path, '.aetheel/inbox/100'))).toEqual([saved])
  })

  it('keeps equal names apart, even if only the case differs', async () => {
    const { save, contents } = setup()
    const long = 'n'.repeat(120)
    const names = ['a.txt', 'A.txt', 'a-2.txt', '/a.txt', `${long}.md`, `${long}.md`]
    const { lines } = await save(names.map((name, index) => textFile(name, String(index))))
    const cut = (length: number) => long.slice(0, length)
    const expected = ['a.txt', 'A-2.txt', 'a-2-2.txt', 'a-3.txt', `${cut(97)}.md`, `${cut(95)}-2.md`]
    expect({ lines, contents: contents() }).toEqual({
      lines: expected.map((name) => `Attached file: .aetheel/inbox/100/${name} (text/plain, 1 byte)`),
      contents: {
        '.aetheel/.gitignore': '*\n',
        ...Object.fromEntries(expected.map((name, index) => [`.aetheel/inbox/100/${name}`, String(index)])),
      },
    })
  })

  it('keeps the names when an earlier file fails', async () => {
    const { save } = setup()
    const broken = { ...textFile('a.txt', 'one'), read: () => Promise.reject(new Error('gone')) }
    expect((await save([broken, textFile('a.txt', 'two')])).lines).toEqual([
      'Attached file: .aetheel/inbox/100/a-2.txt (text/plain, 3 bytes)',
    ])
  })

  it.each<[id: string, folder: RegExp]>([
    ['1439267770011222333', /^1439267770011222333$/],
    ['0b8f6c1e-9d3a-4b6e-8f4e-0c1d2e3f4a5b', /^0b8f6c1e-9d3a-4b6e-8f4e-0c1d2e3f4a5b$/],
    ['interaction:123', /^interaction-123-[\da-f]{16}$/],
    ['SM00ab', /^SM00ab-[\da-f]{16}$/],
    ['../../up', /^up-[\da-f]{16}$/],
    ['..', /^[\da-f]{16}$/],
    ['', /^[\da-f]{16}$/],
    ['a\0\n', /^a-[\da-f]{16}$/],
    ['x'.repeat(500), /^x{40}-[\da-f]{16}$/],
  ])('puts the files of the message %j into its own folder', async (messageId, folder) => {
    const { save, path } = setup()
    await save([textFile('a.txt', 'text')], { messageId })
    expect(readdirSync(join(path, '.aetheel/inbox'))).toEqual([expect.stringMatching(folder)])
  })

  it("stays in the message's folder, whatever the names and ids", async () => {
    const { path, contents } = setup()
    const anyName = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('..', '/', '-2', 'CON', '.git', 'file'))
    await fc.assert(
      fc.asyncProperty(fc.array(anyName, { minLength: 1, maxLength: 10 }), anyName, async (names, messageId) => {
        const files = names.map((name) => textFile(name, 'text'))
        const saved = await saveIncomingFiles(files, { ...OPTIONS, directory: path, messageId })
        const paths = Object.keys(contents()).filter((name) => name !== '.aetheel/.gitignore')
        rmSync(join(path, '.aetheel'), { recursive: true })
        const folders = new Set(paths.map((name) => name.slice(0, name.lastIndexOf('/'))))
        expect({ count: paths.length, notes: saved.notes, odd: paths.filter((name) => !SAFE_PATH.test(name)) }).toEqual(
          {
            count: names.length,
            notes: [],
            odd: [],
          },
        )
        expect(folders.size).toEqual(1)
        expect(
          saved.lines.map((line) => line.replace(/^Attached file: (.*) \(text\/plain, 4 bytes\)$/, '$1')).toSorted(),
        ).toEqual(paths)
      }),
      { numRuns: 60 },
    )
  })

  it('accepts at most ten files, and names the others', async () => {
    const { save } = setup()
    const { lines, notes } = await save(
      Array.from({ length: 12 }, (_, index) => textFile(`${index + 1}.txt`, String(index))),
    )
    expect({ count: lines.length, notes }).toEqual({
      count: 10,
      notes: [
        'Not saved, since a message may have at most 10 files: "11.txt", "12.txt". Send the rest in another message.',
      ],
    })
  })

  describe('tells the person why a file was not saved:', () => {
    it.each<[what: string, file: Partial<IncomingFile>, reason: string]>([
      [
        'too large by its declared size',
        { bytes: 31, read: () => Promise.reject(new Error('asked for')) },
        'it has 31 bytes, and the limit is 30 bytes. Send a smaller one, or raise ATTACHMENT_MAX_MB.',
      ],
      [
        'too large by its actual size',
        { bytes: 30, read: async () => Buffer.alloc(31) },
        'it has 31 bytes, and the limit is 30 bytes. Send a smaller one, or raise ATTACHMENT_MAX_MB.',
      ],
      [
        'more than declared',
        { bytes: 3, read: async () => Buffer.alloc(4) },
        'it is larger than the announced 3 bytes. Send it again.',
      ],
      [
        'a type that is not allowed',
        { type: 'video/mp4', read: () => Promise.reject(new Error('asked for')) },
        'files of type video/mp4 are not accepted here. ATTACHMENT_TYPES lists the accepted types.',
      ],
      [
        'a type like an allowed one',
        { type: 'image/pngx' },
        'files of type image/pngx are not accepted here. ATTACHMENT_TYPES lists the accepted types.',
      ],
      [
        'of unknown type and not text',
        { read: async () => PNG, bytes: PNG.length },
        'files of type application/octet-stream are not accepted here. ATTACHMENT_TYPES lists the accepted types.',
      ],
      [
        'cannot be fetched',
        { read: () => Promise.reject(new Error('HTTP 404:\n Not Found')) },
        'it could not be fetched (HTTP 404: Not Found). Send it again.',
      ],
    ])('%s', async (_, overrides, reason) => {
      const { save, contents } = setup()
      const file: IncomingFile = { ...anyFile('bad\n"file"', Buffer.from('text')), ...overrides }
      const options = { maxBytes: 30, types: ['text/*', 'image/png', 'image/jpeg'] }
      const saved = await save([file, textFile('good.txt', 'good')], options)
      expect({ saved, contents: contents() }).toEqual({
        saved: {
          lines: ['Attached file: .aetheel/inbox/100/good.txt (text/plain, 4 bytes)'],
          notes: [`The file "bad-file-" was not saved: ${reason}`],
        },
        contents: { '.aetheel/.gitignore': '*\n', '.aetheel/inbox/100/good.txt': 'good' },
      })
    })

    it('no type is allowed', async () => {
      const { save } = setup()
      expect((await save([textFile('a.txt', 'text')], { types: [] })).notes).toEqual([
        'The file "a.txt" was not saved: files of type text/plain are not accepted here. ATTACHMENT_TYPES lists the accepted types.',
      ])
    })

    it('cancelled before it arrived', async () => {
      const { save } = setup()
      const read = async (signal: AbortSignal): Promise<Uint8Array> => {
        signal.throwIfAborted()
        return Buffer.from('text')
      }
      const signal = AbortSignal.abort(new Error('out of time'))
      expect(await save([{ ...textFile('a.txt', 'text'), read }], { signal })).toEqual({
        lines: [],
        notes: ['The file "a.txt" was not saved: it could not be fetched (out of time). Send it again.'],
      })
    })

    it('the working directory does not exist', async () => {
      const { save, path } = setup()
      expect(await save([textFile('a.txt', 'text')], { directory: join(path, 'gone') })).toEqual({
        lines: [],
        notes: [
          'The file "a.txt" was not saved: the gateway cannot write into the project\'s directory (ENOENT). ' +
            'Check that it exists and is writable.',
        ],
      })
    })
  })

  describe('writes through no link:', () => {
    it.each([
      ['the state directory', '.aetheel'],
      ['the inbox', '.aetheel/inbox'],
      ['the folder of the message', '.aetheel/inbox/100'],
      ['the file', '.aetheel/inbox/100/a.txt'],
    ])('%s', async (_, place) => {
      const { save, path, contents } = setup()
      const elsewhere = temporaryDirectory()
      mkdirSync(join(path, place, '..'), { recursive: true })
      symlinkSync(elsewhere, join(path, place))
      const saved = await save([textFile('a.txt', 'text')])
      expect({
        saved,
        elsewhere: readdirSync(elsewhere),
        isLink: lstatSync(join(path, place)).isSymbolicLink(),
      }).toEqual({
        saved: { lines: [], notes: [`The file "a.txt" was not saved: ${IN_THE_WAY}`] },
        elsewhere: [],
        isLink: true,
      })
      expect(Object.keys(contents()).filter((name) => name.endsWith('.part'))).toEqual([])
    })

    it('a dangling link in place of the file', async () => {
      const { save, path } = setup()
      mkdirSync(join(path, '.aetheel/inbox/100'), { recursive: true })
      symlinkSync(join(path, 'planted'), join(path, '.aetheel/inbox/100/a.txt'))
      const { notes } = await save([textFile('a.txt', 'text')])
      expect({ notes, top: readdirSync(path) }).toEqual({
        notes: [`The file "a.txt" was not saved: ${IN_THE_WAY}`],
        top: ['.aetheel'],
      })
    })

    it('a link in place of the .gitignore', async () => {
      const { save, path, contents } = setup()
      mkdirSync(join(path, '.aetheel'))
      writeFileSync(join(path, 'precious'), 'precious')
      symlinkSync('../precious', join(path, '.aetheel/.gitignore'))
      await save([textFile('a.txt', 'text')])
      expect(contents()).toMatchObject({ precious: 'precious', '.aetheel/inbox/100/a.txt': 'text' })
    })

    it('the folder becomes a link while the file is fetched', async () => {
      const { save, path } = setup()
      const elsewhere = temporaryDirectory()
      const read = async (): Promise<Uint8Array> => {
        renameSync(join(path, '.aetheel/inbox'), join(path, 'moved'))
        mkdirSync(join(elsewhere, '100'))
        symlinkSync(elsewhere, join(path, '.aetheel/inbox'))
        return Buffer.from('text')
      }
      const { notes } = await save([{ ...textFile('a.txt', 'text'), read }])
      expect({ notes, elsewhere: readdirSync(join(elsewhere, '100')) }).toEqual({
        notes: [`The file "a.txt" was not saved: ${IN_THE_WAY}`],
        elsewhere: [],
      })
    })
  })

  it('refuses anything else in place of a file or a directory', async () => {
    const { save, path } = setup()
    mkdirSync(join(path, '.aetheel/inbox/100/a.txt'), { recursive: true })
    const { notes } = await save([textFile('a.txt', 'text')])
    writeFileSync(join(path, '.aetheel/inbox/101'), '')
    const { notes: otherNotes } = await save([textFile('a.txt', 'text')], { messageId: '101' })
    const note = `The file "a.txt" was not saved: ${IN_THE_WAY}`
    expect([notes, otherNotes]).toEqual([[note], [note]])
  })

  it.each<[what: string, file: Partial<IncomingFile>, line: string]>([
    ['in another case and with parameters', { type: 'Text/HTML; charset="utf-8"' }, 'text/html, 4 bytes'],
    ['by a group of types', { type: 'image/svg+xml' }, 'image/svg+xml, 4 bytes'],
    ['by content when none is said', {}, 'text/plain, 4 bytes'],
    ['by content when the platform does not know', { type: 'application/octet-stream' }, 'text/plain, 4 bytes'],
    ['of source code by content', { type: 'application/sql' }, 'text/plain, 4 bytes'],
    ['by content when it cannot be a type', { type: 'text/x\n\nDo this:' }, 'text/plain, 4 bytes'],
    ['of an empty file', { bytes: 0, read: async () => new Uint8Array() }, 'text/plain, 0 bytes'],
    ['of less than was said', { bytes: 2048, read: async () => Buffer.alloc(1025, 'x') }, 'text/plain, 1.1 KB'],
  ])('judges the type %s', async (_, overrides, line) => {
    const { save } = setup()
    const file = { ...anyFile('a', Buffer.from('text')), ...overrides }
    expect(await save([file], { types: ['TEXT/*', 'image/*'] })).toEqual({
      lines: [`Attached file: .aetheel/inbox/100/a (${line})`],
      notes: [],
    })
  })

  it('accepts types other than text if allowed', async () => {
    const { save } = setup()
    expect((await save([anyFile('a.bin', PNG)], { types: ['application/octet-stream'] })).lines).toEqual([
      'Attached file: .aetheel/inbox/100/a.bin (application/octet-stream, 8 bytes)',
    ])
  })
})

const OPTIONS: Omit<InboxOptions, 'directory'> = {
  messageId: '100',
  maxBytes: 1024 * 1024,
  types: ['text/*', 'image/*'],
  signal: new AbortController().signal,
}
/** No control characters, nothing hidden, no option, nothing below or above; at most 100 characters. */
const SAFE_PATH = /^\.aetheel\/inbox\/[^/\p{Cc}.-][^/\p{Cc}]{0,99}\/[^/\\\p{Cc}.\- ][^/\\\p{Cc}]{0,99}$/u

function setup() {
  const path = temporaryDirectory()
  return {
    path,
    /** What is reported about them. */
    save: async (files: IncomingFile[], options: Partial<InboxOptions> = {}) => {
      const { lines, notes } = await saveIncomingFiles(files, { ...OPTIONS, directory: path, ...options })
      return { lines, notes }
    },
    /** Every file below the directory, as text, except links. */
    contents: (): Record<string, string> =>
      Object.fromEntries(
        readdirSync(path, { recursive: true, encoding: 'utf8' })
          .toSorted()
          .filter((name) => !name.startsWith('.git/') && lstatSync(join(path, name)).isFile())
          .map((name) => {
            const content = readFileSync(join(path, name))
            return [name, content.toString(content.includes(0) ? 'latin1' : 'utf8')]
          }),
      ),
  }
}

function anyFile(name: string, content: Buffer): IncomingFile {
  return { name, bytes: content.length, read: async () => content }
}

function textFile(name: string, text: string): IncomingFile {
  return { ...anyFile(name, Buffer.from(text)), type: 'text/plain' }
}
