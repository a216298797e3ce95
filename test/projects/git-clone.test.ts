import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { gitRunner } from '../../src/projects/git-clone.js'
import { createRepository, gitEnvironment, NOW, problemOf, setup } from './stage.js'
import { listen } from '../kit/loopback.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const ADVICE = "Check the URL, the ref, and that the gateway's user may read the repository."

describe('a project from git', () => {
  it('has the files of the repository, and its name', async () => {
    const { projects, root, second } = await setup()
    createRepository(join(second, 'Site.git'), { 'src/a.txt': 'one\n' }, { 'src/a.txt': 'two\n' })
    const project = await projects.create({ git: { url: join(second, 'Site.git') } })
    expect([project, readFileSync(join(root, 'site/src/a.txt'), 'utf8')]).toEqual([
      {
        id: 'site',
        name: 'Site',
        directory: join(root, 'site'),
        source: 'api',
        instance: expect.any(String),
        isMadeHere: true,
        backend: 'codex',
        createdAt: NOW,
        updatedAt: NOW,
      },
      'two\n',
    ])
  })

  it('takes a branch or a tag', async () => {
    const { projects, root, second } = await setup()
    createRepository(join(second, 'site'), { a: 'one\n' }, { a: 'two\n' })
    await projects.create({ id: 'x', git: { url: join(second, 'site'), ref: 'v1' } })
    expect(readFileSync(join(root, 'x/a'), 'utf8')).toBe('one\n')
  })

  it("runs no hook, neither the operator's nor a template's, and copies none", async () => {
    const { directory, second, root, projects } = await setup()
    createRepository(join(second, 'site'), { a: 'one\n' })
    const mark = join(directory, 'ran')
    for (const place of ['hooks', 'template/hooks']) {
      mkdirSync(join(directory, place), { recursive: true })
      for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change']) {
        writeFileSync(join(directory, place, hook), `#!/bin/sh\ntouch ${mark}\n`)
        chmodSync(join(directory, place, hook), 0o755)
      }
    }
    const settings = `[core]\n\thooksPath = ${directory}/hooks\n[init]\n\ttemplateDir = ${directory}/template\n`
    writeFileSync(join(directory, 'gitconfig'), settings)
    await projects.create({ id: 'x', git: { url: join(second, 'site') } })
    expect([existsSync(mark), existsSync(join(root, 'x/.git/hooks')), existsSync(join(root, 'x/a'))]).toEqual([
      false,
      false,
      true,
    ])
  })

  it('leaves nothing of a clone that fails, and says why', async () => {
    const { projects, root, second } = await setup()
    createRepository(join(second, 'site'), { a: 'one\n' })
    const problem = await problemOf(projects.create({ id: 'x', git: { url: join(second, 'site'), ref: 'nope' } }))
    expect([problem, readdirSync(root), await projects.list()]).toEqual([
      expect.stringMatching(
        /^request_invalid: The repository could not be cloned: git ended with exit code 128: .*nope/,
      ),
      [],
      [],
    ])
  })

  it('leaves no file and no process of a clone that is stopped', async () => {
    const { projects, root } = await setup()
    const { port, connected } = await listenSilently()
    const stop = new AbortController()
    const creation = problemOf(projects.create({ id: 'x', git: { url: `https://127.0.0.1:${port}/x` } }, stop.signal))
    await connected
    const during = readdirSync(root)
    stop.abort()
    expect([during, await creation, readdirSync(root)]).toEqual([
      ['x'],
      'request_invalid: The repository could not be cloned: git was stopped',
      [],
    ])
  })

  it('ends a clone that takes too long', async () => {
    const directory = temporaryDirectory()
    const run = gitRunner(gitEnvironment(directory))
    const { port } = await listenSilently()
    const { projects, root } = await setup({ run: (options) => run({ ...options, timeoutMs: 200 }) })
    expect([
      await problemOf(projects.create({ id: 'x', git: { url: `https://127.0.0.1:${port}/x` } })),
      readdirSync(root),
    ]).toEqual([`request_invalid: The repository could not be cloned: git did not finish within 200 ms. ${ADVICE}`, []])
  })

  it("asks nobody for a password, and reveals none of the operator's", async () => {
    const { directory, projects } = await setup()
    const settings = '[url "https://ada:hunter2@127.0.0.1:9/"]\n\tinsteadOf = https://git.example/\n'
    writeFileSync(join(directory, 'gitconfig'), settings)
    const problem = await problemOf(projects.create({ id: 'x', git: { url: 'https://git.example/x' } }))
    expect([problem.includes('could not be cloned'), problem.includes('hunter2')]).toEqual([true, false])
  })

  it('uses no protocol that was not requested', async () => {
    const { directory, projects, root } = await setup()
    const mark = join(directory, 'ran')
    writeFileSync(join(directory, 'gitconfig'), `[url "ext::touch ${mark} "]\n\tinsteadOf = https://git.example/\n`)
    const problem = await problemOf(projects.create({ id: 'x', git: { url: 'https://git.example/x' } }))
    expect([problem, existsSync(mark), readdirSync(root)]).toEqual([
      `request_invalid: The repository could not be cloned: git ended with exit code 128: fatal: transport 'ext' not allowed. ${ADVICE}`,
      false,
      [],
    ])
  })

  it('clones no submodules', async () => {
    const { directory, projects, root, second } = await setup()
    createRepository(join(second, 'inner'), { b: 'inner\n' })
    createRepository(join(second, 'outer'), { a: 'outer\n' })
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'protocol.file.allow=always', ...args], {
        cwd: join(second, 'outer'),
        env: gitEnvironment(directory),
        stdio: 'ignore',
      })
    git('submodule', 'add', join(second, 'inner'), 'sub')
    git('commit', '--message', 'Add it')
    writeFileSync(join(directory, 'gitconfig'), '[submodule]\n\trecurse = true\n')
    await projects.create({ id: 'x', git: { url: join(second, 'outer') } })
    expect(readdirSync(join(root, 'x/sub'))).toEqual([])
  })
})

describe('where a repository may come from', () => {
  const forms =
    'its URL must begin with https:// or ssh://, be like git@host:path, or be a path inside the project roots'
  const secret = 'its URL contains a password or a token; remove it and use a git credential helper'

  it.each([
    ['', forms],
    ['--upload-pack=touch x', 'its URL is too long or contains spaces'],
    ['--upload-pack=touch', 'its URL must not start with "-"'],
    ['http://git.example/x', forms],
    ['git://git.example/x', forms],
    ['file:///srv/x', forms],
    ['ftp://git.example/x', forms],
    ['ext::sh', forms],
    ['EXT::sh', forms],
    ['https::https://git.example/x', forms],
    ['site', forms],
    ['./site', forms],
    ['../site', forms],
    ['~/site', forms],
    ['host:path', forms],
    ['root@host:path', forms],
    ['git@-oProxyCommand=x:path', forms],
    ['git@host:-path', forms],
    ['git@host:ext::sh', forms],
    ['https://', forms],
    ['https://git.example/x\n', 'its URL is too long or contains spaces'],
    [`https://git.example/${'x'.repeat(2000)}`, 'its URL is too long or contains spaces'],
    ['https://ada@git.example/x', secret],
    ['https://ada:hunter2@git.example/x', secret],
    ['https://:hunter2@git.example/x', secret],
    ['ssh://ada:hunter2@git.example/x', secret],
    ['https://git.example/x?token=hunter2', 'its URL has a query or a fragment; remove it'],
    ['https://git.example/x#hunter2', 'its URL has a query or a fragment; remove it'],
    ['ssh://-oProxyCommand=x/path', 'its URL has no host'],
    ['ssh://-x@git.example/path', 'its URL has no host'],
  ])('refuses %j without running anything', async (url, problem) => {
    const { runs, projects, root } = await watched()
    expect([await problemOf(projects.create({ id: 'x', git: { url } })), runs, readdirSync(root)]).toEqual([
      `request_invalid: The repository cannot be cloned: ${problem}.`,
      [],
      [],
    ])
  })

  it.each(['', '-x', '--upload-pack=x', 'a..b', 'a b', 'x/', 'x.lock', 'a//b', '@{u}', 'x\ny', 'a:b'])(
    'refuses the ref %j',
    async (ref) => {
      const { runs, projects } = await watched()
      const problem = await problemOf(projects.create({ id: 'x', git: { url: 'https://git.example/x', ref } }))
      expect([problem, runs]).toEqual([
        `request_invalid: ${JSON.stringify(ref)} is not a branch or tag name. Omit ref to use the default branch.`,
        [],
      ])
    },
  )

  it('refuses a path outside the roots, even through a link', async () => {
    const { runs, projects, root, directory } = await watched()
    createRepository(join(directory, 'outside'), { a: 'one\n' })
    symlinkSync(join(directory, 'outside'), join(root, 'link'))
    const problems = await Promise.all(
      [join(directory, 'outside'), join(root, 'link'), `${root}/../outside`].map((url) =>
        problemOf(projects.create({ id: 'x', git: { url } })),
      ),
    )
    expect([problems, runs]).toEqual([
      problems.map(() => expect.stringMatching(/^request_invalid: ".*" is not a directory inside the project roots/)),
      [],
    ])
  })

  it.each([
    ['https://git.example:8443/team/x.git'],
    ['ssh://git@git.example:22/team/x.git'],
    ['ssh://git.example/x'],
    ['git@git.example:team/x.git'],
  ])('takes %s, as the last argument but one', async (url) => {
    const { runs, projects, root } = await watched()
    await projects.create({ id: 'x', git: { url, ref: 'feature/a-1' } })
    expect(runs).toEqual([
      [
        ...['-c', 'core.hooksPath=/dev/null', '-c', 'protocol.allow=never', '-c', 'protocol.ext.allow=never'],
        ...['-c', 'protocol.https.allow=always', '-c', 'protocol.ssh.allow=always', '-c', 'protocol.file.allow=always'],
        ...['clone', '--quiet', '--template=', '--no-recurse-submodules', '--no-local', '--depth=100'],
        ...['--branch=feature/a-1', '--', url, join(root, 'x')],
      ],
    ])
  })
})

it('gives git what it needs to reach servers, and nothing that redirects it or prompts', async () => {
  const directory = temporaryDirectory()
  writeFileSync(join(directory, 'git'), '#!/bin/sh\nenv > seen\n')
  chmodSync(join(directory, 'git'), 0o755)
  const run = gitRunner({
    PATH: `${directory}:/usr/bin:/bin`,
    HOME: '/home/ada',
    GIT_SSH_COMMAND: 'ssh -i key',
    GIT_DIR: '/elsewhere',
    GIT_ASKPASS: 'ask',
    SSH_ASKPASS: 'ask',
    AETHEEL_MASTER_KEY: 'secret',
    ANTHROPIC_API_KEY: 'secret',
  })
  await run({ args: [], cwd: directory, timeoutMs: 60_000 })
  const seen = readFileSync(join(directory, 'seen'), 'utf8').trim().split('\n')
  // The marker of the process, and what a shell adds itself.
  expect(seen.filter((line) => !/^(AETHEEL_RUN|PWD|OLDPWD|SHLVL|_)/.test(line)).toSorted()).toEqual([
    'GIT_ASKPASS=',
    'GIT_SSH_COMMAND=ssh -i key',
    'GIT_TERMINAL_PROMPT=0',
    'HOME=/home/ada',
    'LC_ALL=C',
    `PATH=${directory}:/usr/bin:/bin`,
    'SSH_ASKPASS=',
    'SSH_ASKPASS_REQUIRE=never',
  ])
})

/** A service whose git only records its arguments. */
async function watched() {
  const runs: string[][] = []
  const stage = await setup({
    run: async ({ args }) => {
      runs.push(args)
      return { ok: true }
    },
  })
  return { ...stage, runs }
}

/** A server that accepts connections and never answers. */
async function listenSilently(): Promise<{ port: number; connected: Promise<void> }> {
  const server = createServer()
  const connected = new Promise<void>((resolve) => {
    server.on('connection', (socket) => {
      socket.on('error', () => {})
      onTestFinished(() => void socket.destroy())
      resolve()
    })
  })
  return { port: await listen(server), connected }
}
