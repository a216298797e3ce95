import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { GatewayError } from '../../src/errors.js'
import { locateOutgoingFile, openOutgoing, openOutgoingFile } from '../../src/media/outgoing-files.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const MAX_BYTES = 1024
const OUTSIDE = "it is outside the project's directory. If it may be sent, ask for a copy inside it."
const SECRET = 'files of this kind may hold secrets and are never sent. Get it from the machine itself.'
const MISSING = 'it does not exist. Ask where it is.'

describe('openOutgoingFile', () => {
  it.each<[what: string, path: (root: string) => string, name: string]>([
    ['a path from the root', () => 'out/chart.png', 'chart.png'],
    ['one with a dot before it', () => './out/chart.png', 'chart.png'],
    ['one that goes out and comes back', () => 'out/../out/chart.png', 'chart.png'],
    ['an absolute path', (root) => join(root, 'out/chart.png'), 'chart.png'],
    ['a link to a file inside, under the name of the link', () => 'latest.png', 'latest.png'],
    ['a name that begins with two dots', () => '..chart.png', '..chart.png'],
  ])('reads %s', async (_, path, name) => {
    const { root, write, open } = setup()
    write('out/chart.png', 'pixels')
    write('..chart.png', 'pixels')
    symlinkSync('out/chart.png', join(root, 'latest.png'))
    expect(await open(path(root))).toEqual({ name, content: Buffer.from('pixels') })
  })

  it('reads a file of exactly the largest size', async () => {
    const { write, open } = setup()
    write('large', 'x'.repeat(MAX_BYTES))
    expect((await open('large')).content.length).toEqual(MAX_BYTES)
  })

  it('reads an empty file', async () => {
    const { write, open } = setup()
    write('empty.txt', '')
    expect(await open('empty.txt')).toEqual({ name: 'empty.txt', content: Buffer.alloc(0) })
  })

  it('reads from any root, even through a link, and skips missing ones', async () => {
    const { root, elsewhere, write, open } = setup()
    write('a.txt', 'a')
    symlinkSync(elsewhere, join(root, 'link'))
    writeFileSync(join(elsewhere, 'b.txt'), 'b')
    const roots = [join(root, 'gone'), join(root, 'link')]
    const paths = ['a.txt', join(root, 'link/b.txt'), join(elsewhere, 'b.txt')]
    const files = await Promise.all(paths.map((path) => open(path, roots)))
    expect(files.map(({ content }) => content.toString())).toEqual(['a', 'b', 'b'])
  })

  it.each<[what: string, path: (places: { root: string; elsewhere: string }) => string, reason: string]>([
    ['a way out', () => '../../etc/passwd', OUTSIDE],
    ['an absolute path elsewhere', () => '/etc/passwd', OUTSIDE],
    ['something elsewhere that is not there', () => '/etc/no-such-file', OUTSIDE],
    ['a directory that begins like the root', ({ root }) => `${root}-other/a.txt`, OUTSIDE],
    ['a link to a file elsewhere', () => 'link-to-file', OUTSIDE],
    ['a file in a linked directory', () => 'link-to-directory/note.txt', OUTSIDE],
    ['the home directory', () => '~/.bashrc', MISSING],
    ['what is not there', () => 'nothing.png', MISSING],
    ['a path through a file', () => 'note.txt/more', MISSING],
    ['a link to nothing', () => 'link-to-nothing', MISSING],
    ['a link to itself', () => 'loop', 'it cannot be read (ELOOP). Check the path, and that the gateway may read it.'],
    [
      'an impossible name',
      () => 'a\0b',
      'it cannot be read (ERR_INVALID_ARG_VALUE). Check the path, and that the gateway may read it.',
    ],
    ['a directory', () => 'directory', 'it is a directory. Ask for an archive of it.'],
    ['the root itself', () => '.', 'it is a directory. Ask for an archive of it.'],
    ['a pipe', () => 'pipe', 'it is not a regular file. Ask for a copy of its content.'],
    ['a socket', () => 'socket', 'it cannot be read (ENXIO). Check the path, and that the gateway may read it.'],
    ['what is too large', () => 'large', 'it has 1.1 KB, and the limit is 1 KB. Ask for a smaller part.'],
    ['a link to a secret', () => 'harmless.txt', SECRET],
  ])('refuses %s', async (_, path, reason) => {
    const { root, elsewhere, write, refusal } = setup()
    writeFileSync(join(elsewhere, 'note.txt'), 'private')
    write('note.txt', 'note')
    write('.env', 'KEY=1')
    write('directory/a.txt', '')
    write('large', '')
    truncateSync(join(root, 'large'), MAX_BYTES + 1)
    execFileSync('mkfifo', [join(root, 'pipe')])
    const server = createServer().listen(join(root, 'socket'))
    onTestFinished(() => void server.close())
    const links = {
      'link-to-file': join(elsewhere, 'note.txt'),
      'link-to-directory': elsewhere,
      'link-to-nothing': 'nothing',
      'harmless.txt': '.env',
      loop: 'loop',
    }
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name))
    const wanted = path({ root, elsewhere })
    expect(await refusal(wanted)).toEqual(
      new GatewayError('request_invalid', `The file "${wanted.replace('\0', ' ')}" was not sent: ${reason}`),
    )
  })

  it.each([
    ...['.git/config', 'vendor/lib/.git/HEAD', '.GIT/config', '.ssh/known_hosts', '.aws/config', '.kube/config'],
    ...['.env', '.env.local', '.ENV', 'app/.envrc', 'prod.env', '.npmrc', '.netrc', '.pypirc', '.pgpass'],
    ...['server.pem', 'tls/server.KEY', 'id_rsa', 'id_rsa.pub', 'id_ed25519', 'store.p12', 'vault.kdbx'],
    ...['credentials', 'credentials.json', '.credentials.json', '.git-credentials', 'secrets.yaml', 'auth.json'],
    ...['oauth_creds.json', 'client_secret_1.json', 'service-account-prod.json', 'terraform.tfstate', '.bash_history'],
    ...['.claude/.credentials.json', '.codex/sessions/a.jsonl', '.config/gh/hosts.yml', '.local/share/x/auth.json'],
    ...['aetheel.json5', 'aetheel.json5.bak', 'aetheel.db', 'aetheel.db-wal'],
    ...['.aetheel/aetheel.db', '.aetheel/archive/discord/1/2026-01-31.md', '.aetheel/.gitignore'],
    ...['.aetheel/inbox/1/.env', '.aetheel/inboxes', 'sub/.aetheel/prompt/memory.md'],
  ])('refuses the secret or state %s', async (path) => {
    const { write, refusal } = setup()
    write(path, 'x')
    expect((await refusal(path)).message).toEqual(`The file "${path}" was not sent: ${SECRET}`)
  })

  it.each([
    ...['.aetheel/inbox/1/photo.png', '.github/workflows/ci.yml', '.gitignore', 'docs/env.md', 'environment.ts'],
    ...['src/credentials.ts', 'test/fixtures/opencode/run.jsonl', 'keys.md', 'monkey.png', 'chat_history', 'auth.ts'],
  ])('lets %s go', async (path) => {
    const { write, open } = setup()
    write(path, 'x')
    expect((await open(path)).content.toString()).toEqual('x')
  })

  it('allows a root inside a denied directory', async () => {
    const { root, write, open } = setup()
    write('.config/out/a.txt', 'x')
    expect((await open('.config/out/a.txt', [join(root, '.config/out')])).content.toString()).toEqual('x')
  })

  it('sends nothing when the directory does not exist', async () => {
    const { root, elsewhere } = setup()
    writeFileSync(join(elsewhere, 'a.txt'), 'x')
    const file = { path: join(elsewhere, 'a.txt'), directory: join(root, 'gone') }
    await expect(openOutgoingFile(file, { roots: [], denied: [] }, MAX_BYTES)).rejects.toThrow(OUTSIDE)
  })

  it.each<[what: string, roots: (home: string) => string[]]>([
    ['holds it', () => []],
    ['is it', (home) => [home]],
    ['is reached by a link, and holds it', (home) => [`${home}-link`]],
  ])('sends nothing of a denied directory when a root %s', async (_, roots) => {
    const { root, write, refusal } = setup()
    const home = join(root, 'data')
    write('data/note.txt', 'private')
    symlinkSync(home, `${home}-link`)
    const paths = ['data/note.txt', 'data-link/note.txt', join(home, 'note.txt')]
    const answers = await Promise.all(paths.map((path) => refusal(path, roots(home), [`${home}-link`])))
    expect(answers.map(({ message }) => message)).toEqual(
      paths.map((path) => `The file "${path}" was not sent: ${SECRET}`),
    )
  })

  it('sends from a project inside a denied directory, and nothing else in it', async () => {
    const { root, write } = setup()
    write('data/projects/site/a.txt', 'public')
    write('data/a.txt', 'private')
    const directory = join(root, 'data/projects/site')
    const ask = (path: string) =>
      openOutgoingFile({ path, directory }, { roots: [root], denied: [join(root, 'data')] }, MAX_BYTES).then(
        ({ content }) => content.toString(),
        () => 'refused',
      )
    expect([await ask('a.txt'), await ask('../../a.txt'), await ask(join(root, 'data/a.txt'))]).toEqual([
      'public',
      'refused',
      'refused',
    ])
  })

  it('shows no more of a path than fits a sentence', async () => {
    const { refusal } = setup()
    expect((await refusal(`a\n\u202e${'b'.repeat(1000)}`)).message).toMatch(/^The file "a b{197}…" was not sent: /)
  })

  it('never returns a file from elsewhere, whatever path is requested', async () => {
    const { root, elsewhere, write, open } = setup()
    writeFileSync(join(elsewhere, 'a'), 'private')
    write('a', 'public')
    write('b/a', 'public')
    symlinkSync(elsewhere, join(root, 'c'))
    const anyPart = fc.constantFrom(
      ...['a', 'b', 'c', '.', '..', '', root, elsewhere, elsewhere.slice(1), 'a\0'],
      // Spellings of dots and slashes that have fooled other programs.
      ...['%2e%2e', '..%2f', '%252e%252e', '\uff0e\uff0e', '\u2024\u2024', '..\\', '\u2215', '\uff0f', '~', 'file:'],
    )
    await fc.assert(
      fc.asyncProperty(fc.array(anyPart, { maxLength: 6 }), async (parts) => {
        const answer = await open(parts.join('/')).catch((error: unknown) => error)
        const isRefusal = answer instanceof GatewayError && answer.code === 'request_invalid'
        expect(isRefusal ? 'public' : (answer as { content: Buffer }).content.toString()).toEqual('public')
      }),
      { numRuns: 300 },
    )
  })

  describe.runIf(process.platform === 'linux')('while a directory is swapped for a link', () => {
    it.each<[what: string, target: (places: { root: string; elsewhere: string }) => string]>([
      ['elsewhere', ({ elsewhere }) => elsewhere],
      ['of secrets', ({ root }) => join(root, '.ssh')],
      ['that is denied', ({ root }) => join(root, 'data')],
    ])('never gives a file of a directory %s', async (_, target) => {
      const { root, elsewhere, write, open } = setup()
      writeFileSync(join(elsewhere, 'a'), 'private')
      write('.ssh/a', 'private')
      write('data/a', 'private')
      write('b/a', 'public')
      symlinkSync(target({ root, elsewhere }), join(root, 'link'))
      const swap = () => {
        renameSync(join(root, 'b'), join(root, 'kept'))
        renameSync(join(root, 'link'), join(root, 'b'))
      }
      const swapBack = () => {
        renameSync(join(root, 'b'), join(root, 'link'))
        renameSync(join(root, 'kept'), join(root, 'b'))
      }
      const given = new Set<string>()
      for (let round = 0; round < 300; round += 1) {
        const answer = open('b/a', [], [join(root, 'data')]).then(
          ({ content }) => content.toString(),
          () => 'refused',
        )
        // At another moment each time: the steps of opening pass between two turns of the loop.
        for (let turn = 0; turn < round % 10; turn += 1) await new Promise(setImmediate)
        swap()
        for (let turn = 0; turn < round % 7; turn += 1) await new Promise(setImmediate)
        swapBack()
        given.add(await answer)
      }
      expect(given).not.toContain('private')
    })
  })
})

describe('locateOutgoingFile', () => {
  it('returns the path of a file that could be sent, and refuses others as sending would', async () => {
    const { root, write } = setup()
    write('out/a.txt', 'x')
    write('.env', 'x')
    const rules = { roots: [], denied: [] }
    const locate = (path: string) => locateOutgoingFile({ path, directory: root }, rules).catch(String)
    expect(await Promise.all(['out/a.txt', '.env', '../a.txt', 'b.txt'].map(locate))).toEqual([
      join(root, 'out/a.txt'),
      `GatewayError: The file ".env" was not sent: ${SECRET}`,
      `GatewayError: The file "../a.txt" was not sent: ${OUTSIDE}`,
      `GatewayError: The file "b.txt" was not sent: ${MISSING}`,
    ])
  })
})

describe('openOutgoing', () => {
  it('says why an address may not be fetched, and what to do', async () => {
    const { signal } = new AbortController()
    const file = { url: 'http://127.0.0.1/a.png' }
    await expect(openOutgoing(file, { roots: [], denied: [] }, MAX_BYTES, signal)).rejects.toThrow(
      'The file "http://127.0.0.1/a.png" was not sent: 127.0.0.1 is not on the public internet, and files are fetched only ' +
        "from there. Open it yourself, or ask for a copy in the project's directory.",
    )
  })
})

function setup() {
  const [root, elsewhere] = [temporaryDirectory(), temporaryDirectory()]
  const open = (path: string, roots: string[] = [], denied: string[] = []) =>
    openOutgoingFile({ path, directory: root }, { roots, denied }, MAX_BYTES)
  return {
    root,
    elsewhere,
    open,
    write(name: string, content: string): void {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), content)
    },
    refusal: async (path: string, roots?: string[], denied?: string[]): Promise<GatewayError> => {
      const answer = await open(path, roots, denied).catch((error: unknown) => error)
      if (answer instanceof GatewayError) return answer
      throw new Error(`${path} was not refused`)
    },
  }
}
