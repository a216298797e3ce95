import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/errors.js'
import { openStore } from '../../src/store/store.js'
import type { NewProject } from '../../src/projects/project-service.js'
import { describeEngines } from '../kit/engines.js'
import { createRepository, NOW, problemOf, setup } from './stage.js'
import { SILENT_LOG } from '../kit/log.js'

const RECORD = { source: 'api', instance: expect.any(String), backend: 'codex', createdAt: NOW, updatedAt: NOW }

describe('create', () => {
  it('accepts a directory, with every setting', async () => {
    const { projects, second } = await setup()
    mkdirSync(join(second, 'web'))
    const wish = {
      id: 'Web_1',
      name: ' The web ',
      directory: join(second, 'web'),
      backend: 'claude' as const,
      model: 'large',
      allowedTools: ['Read'],
      queryTimeoutMs: 1000,
      maxTurns: 3,
      isUntrusted: true,
    }
    const created = await projects.create(wish)
    expect([created, await projects.list()]).toEqual([{ ...RECORD, ...wish, name: 'The web' }, [created]])
  })

  it.each([
    ['Ünder  Construction!', 'under-construction'],
    ['--a--', 'a'],
    [`${'x'.repeat(63)}-yz`, 'x'.repeat(63)],
    ['項目', 'project-01234567'],
  ])('makes of the name %s the id %s', async (name, id) => {
    const { projects, root } = await setup()
    mkdirSync(join(root, 'here'))
    expect(await projects.create({ name, directory: join(root, 'here') })).toEqual({
      ...RECORD,
      id,
      name,
      directory: join(root, 'here'),
    })
  })

  it('names it after its directory', async () => {
    const { projects, root } = await setup()
    mkdirSync(join(root, 'My Site'))
    expect(await projects.create({ directory: join(root, 'My Site/') })).toEqual({
      ...RECORD,
      id: 'my-site',
      name: 'My Site',
      directory: join(root, 'My Site'),
    })
  })

  it('keeps the real path of a directory reached through a link inside the roots', async () => {
    const { projects, root, second } = await setup()
    mkdirSync(join(second, 'real'))
    symlinkSync(join(second, 'real'), join(root, 'link'))
    const { directory } = await projects.create({ directory: join(root, 'link') })
    expect(directory).toBe(join(second, 'real'))
  })

  it.each<[string, (places: { directory: string; root: string; home: string }) => string]>([
    ['that is not there', ({ root }) => join(root, 'missing')],
    ['outside of the roots', ({ directory }) => join(directory, 'outside')],
    ['that begins like a root', ({ root }) => `${root}-like`],
    ['that leads out by dots', ({ root }) => `${root}/a/../../outside`],
    ['that is a link out of the roots', ({ root }) => join(root, 'link-out')],
    ['below a link out of the roots', ({ root }) => join(root, 'link-out/inner')],
    ['that is a link in a circle', ({ root }) => join(root, 'circle')],
    ['that is a file', ({ root }) => join(root, 'file')],
    ['that is a root itself', ({ root }) => root],
    ['that is not absolute', () => 'root/a'],
    ['with NUL in it', ({ root }) => `${root}/a\0b`],
    ['that is empty', () => ''],
  ])('refuses a directory %s', async (_, pathIn) => {
    const stage = await setup()
    const { projects, directory, root } = stage
    for (const path of ['outside/inner', 'root-like', 'root/a']) mkdirSync(join(directory, path), { recursive: true })
    symlinkSync(join(directory, 'outside'), join(root, 'link-out'))
    symlinkSync(join(root, 'circle'), join(root, 'circle'))
    writeFileSync(join(root, 'file'), '')
    const problem = await codeOf(projects.create({ id: 'x', directory: pathIn(stage) }))
    expect([problem, await projects.list()]).toEqual(['request_invalid', []])
  })

  it.each([
    ['is', '/data'],
    ['holds', ''],
    ['is inside', '/data/inner'],
  ])('refuses a directory that %s the data directory', async (_, place) => {
    const { projects, directory, root, home } = await setup()
    mkdirSync(join(home, 'inner'))
    // As if the operator had named a root that is too wide.
    rmSync(root, { recursive: true })
    symlinkSync(join(directory, '..'), root)
    await expect(projects.create({ id: 'x', directory: `${directory}${place}` })).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining('The data directory of the gateway cannot be part of a project.'),
    })
  })

  it('creates nothing in a root inside the data directory', async () => {
    const { projects, root, home } = await setup()
    rmSync(root, { recursive: true })
    mkdirSync(join(home, 'projects'))
    symlinkSync(join(home, 'projects'), root)
    const problem = await codeOf(projects.create({ id: 'x', template: { name: 'empty' } }))
    expect([problem, readdirSync(join(home, 'projects'))]).toEqual(['request_invalid', []])
  })

  it.each([
    ['no source', {}],
    ['two sources', { directory: '/x', template: { name: 'empty' } }],
    ['three sources', { directory: '/x', git: { url: 'https://x.example/y' }, template: { name: 'empty' } }],
  ])('refuses %s', async (_, sources) => {
    const { projects } = await setup()
    await expect(projects.create({ id: 'x', ...sources })).rejects.toEqual(
      new GatewayError('request_invalid', 'A project needs exactly one of directory, git, template and pod.'),
    )
  })

  it('accepts a pod, with the defaults', async () => {
    const { projects } = await setup()
    expect(await projects.create({ pod: { name: 'web-0', context: 'live' } })).toEqual({
      ...RECORD,
      id: 'web-0',
      name: 'web-0',
      directory: '/workspace',
      pod: { context: 'live', namespace: 'agents', name: 'web-0' },
    })
  })

  it('accepts a directory of the pod, which need not exist here', async () => {
    const { projects } = await setup()
    const { directory, pod } = await projects.create({
      id: 'x',
      pod: { selector: 'app=web', container: 'agent' },
      directory: '/srv/../etc/',
    })
    expect([directory, pod]).toEqual(['/etc', { namespace: 'agents', selector: 'app=web', container: 'agent' }])
  })

  it('accepts an agent that is not available here, since the pod may have it', async () => {
    const { projects } = await setup({ available: [] })
    await projects.create({ id: 'x', pod: { name: 'web-0' }, backend: 'claude' })
    expect(await projects.update('x', { backend: 'pi' })).toMatchObject({ backend: 'pi' })
  })

  it.each<[string, NewProject, string]>([
    ['without a name', { pod: {} }, 'pod: needs either "name" or "selector", not both.'],
    [
      'with invalid names',
      { pod: { name: '-n', context: '--kubeconfig=x' } },
      'pod.context: "--kubeconfig=x" is not a kubectl context: list them with "kubectl config get-contexts"; ' +
        'pod.name: "-n" is not a pod name: use lowercase letters, digits, "-" and ".".',
    ],
    [
      'and a directory that is not absolute',
      { pod: { name: 'a' }, directory: 'web' },
      'directory: must be an absolute path in the pod, such as /workspace.',
    ],
    [
      'that is untrusted',
      { pod: { name: 'a' }, isUntrusted: true },
      'is_untrusted: cannot be set for a project in a pod: the pod itself is the sandbox.',
    ],
    [
      'and a repository',
      { pod: { name: 'a' }, git: { url: 'https://x.example/y' } },
      'A project in a pod uses the files in the pod: omit git and template.',
    ],
    [
      'and a template',
      { pod: { name: 'a' }, template: { name: 'empty' } },
      'A project in a pod uses the files in the pod: omit git and template.',
    ],
    ['that gives no name', { pod: { selector: 'app=web' } }, 'Give the new project a name or an id.'],
  ])('refuses a pod %s', async (_, wish, problem) => {
    const { projects, root } = await setup()
    await expect(projects.create(wish)).rejects.toEqual(new GatewayError('request_invalid', problem))
    expect([await projects.list(), readdirSync(root)]).toEqual([[], []])
  })

  it.each(['', '-x', '../x', 'a/b', 'a b', '.x', 'x'.repeat(65), 'ä'])('refuses the id %j', async (id) => {
    const { projects, root } = await setup()
    const problem = await codeOf(projects.create({ id, template: { name: 'empty' } }))
    expect([problem, readdirSync(root)]).toEqual(['request_invalid', []])
  })

  it.each(['', '  ', 'a\nb', 'x'.repeat(201)])('refuses the name %j', async (name) => {
    const { projects } = await setup()
    expect(await codeOf(projects.create({ id: 'x', name, template: { name: 'empty' } }))).toBe('request_invalid')
  })

  it('asks for a name if none can be derived', async () => {
    const { projects } = await setup()
    await expect(projects.create({ template: { name: 'empty' } })).rejects.toEqual(
      new GatewayError('request_invalid', 'Give the new project a name or an id.'),
    )
  })

  it('refuses an id that is taken, and touches nothing', async () => {
    const { projects, root } = await setup()
    const first = await projects.create({ id: 'web', template: { name: 'empty' } })
    const problem = await codeOf(projects.create({ name: 'Web', template: { name: 'go' } }))
    expect([problem, await projects.list(), readdirSync(root), existsSync(join(root, 'web/main.go'))]).toEqual([
      'conflict',
      [first],
      ['web'],
      false,
    ])
  })

  it('refuses to fill an existing directory', async () => {
    const { projects, root } = await setup()
    mkdirSync(join(root, 'web'))
    writeFileSync(join(root, 'web/mine'), '')
    const problem = await codeOf(projects.create({ id: 'web', template: { name: 'empty' } }))
    expect([problem, await projects.list(), readdirSync(join(root, 'web'))]).toEqual(['conflict', [], ['mine']])
  })

  it('creates one project when many want the same id at once', async () => {
    const { projects, root } = await setup()
    const attempts = await Promise.allSettled(
      Array.from({ length: 8 }, () => projects.create({ id: 'web', template: { name: 'empty' } })),
    )
    const problems = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason.code] : []))
    expect([problems, readdirSync(root), (await projects.list()).length]).toEqual([
      Array.from({ length: 7 }, () => 'conflict'),
      ['web'],
      1,
    ])
  })

  it('refuses an agent that is not available', async () => {
    const { projects, root } = await setup({ available: ['codex'] })
    const problem = await problemOf(projects.create({ id: 'x', backend: 'pi', template: { name: 'empty' } }))
    expect([problem, readdirSync(root)]).toEqual([
      'backend_missing: The agent pi is not available here. Available: codex. "aetheel doctor --agent pi" shows why.',
      [],
    ])
  })

  it('accepts the default agent, available or not', async () => {
    const { projects, root } = await setup({ available: [] })
    expect(await projects.create({ id: 'x', template: { name: 'empty' } })).toEqual({
      ...RECORD,
      id: 'x',
      directory: join(root, 'x'),
      isMadeHere: true,
    })
  })

  it('creates the first root if it does not exist', async () => {
    const { projects, root } = await setup()
    rmSync(root, { recursive: true })
    const { directory } = await projects.create({ id: 'x', template: { name: 'empty' } })
    expect([directory, existsSync(join(directory, 'README.md'))]).toEqual([join(root, 'x'), true])
  })

  it('leaves nothing of a project whose id was taken while its files were cloned', async () => {
    const taken = { id: 'x', directory: '/elsewhere' }
    const { projects, root, store } = await setup({
      run: async ({ cwd }) => {
        writeFileSync(join(cwd, 'README.md'), '')
        await store.projects.add(taken, NOW)
        return { ok: true }
      },
    })
    const problem = await codeOf(projects.create({ id: 'x', git: { url: 'https://git.example/x' } }))
    expect([problem, readdirSync(root), await projects.list()]).toEqual([
      'conflict',
      [],
      [{ ...taken, source: 'api', instance: expect.any(String), createdAt: NOW, updatedAt: NOW }],
    ])
  })
})

describe('update', () => {
  it('changes only the given fields; null resets', async () => {
    const { projects, after } = await setup()
    const before = await projects.create({
      ...{ id: 'x', name: 'X', template: { name: 'empty' }, backend: 'claude' as const },
      ...{ model: 'large', allowedTools: ['Read'], queryTimeoutMs: 5, maxTurns: 6, isUntrusted: true },
    })
    after(1000)
    const { name: _, allowedTools: __, isUntrusted: ___, ...rest } = before
    expect(await projects.update('x', { name: null, allowedTools: null, maxTurns: 7, isUntrusted: false })).toEqual({
      ...rest,
      maxTurns: 7,
      updatedAt: NOW + 1000,
    })
  })

  it.each([{ allowedTools: ['Read'] }, { maxTurns: 3 }])(
    'refuses %j for an agent that does not support it',
    async (limit) => {
      const { projects } = await setup()
      const template = { name: 'empty' }
      const held = await projects.create({ id: 'held', template, backend: 'claude', ...limit })
      const free = await projects.create({ id: 'free', template, backend: 'codex' })
      const problems = [
        await codeOf(projects.create({ id: 'new', template, backend: 'codex', ...limit })),
        await codeOf(projects.update('free', limit)),
        await codeOf(projects.update('held', { backend: 'codex' })),
      ]
      expect([problems, await projects.list()]).toEqual([
        ['request_invalid', 'request_invalid', 'request_invalid'],
        [free, held],
      ])
    },
  )

  it('switches to an agent that does not support a limit if the limit is removed', async () => {
    const { projects } = await setup()
    await projects.create({
      id: 'x',
      template: { name: 'empty' },
      backend: 'claude',
      allowedTools: ['Read'],
      maxTurns: 3,
    })
    const changed = await projects.update('x', { backend: 'codex', allowedTools: null, maxTurns: null })
    expect(changed).toMatchObject({ backend: 'codex' })
  })

  it('refuses an agent that is not available, and keeps the previous one', async () => {
    const { projects } = await setup()
    const before = await projects.create({ id: 'x', template: { name: 'empty' } })
    const problem = await codeOf(projects.update('x', { backend: 'gemini', name: 'Other' }))
    expect([problem, await projects.get('x')]).toEqual(['backend_missing', before])
  })

  it('drops the model with the agent, unless another is given', async () => {
    const { projects } = await setup()
    await projects.create({ id: 'x', model: 'large', template: { name: 'empty' } })
    const { model: first } = await projects.update('x', { backend: 'codex' })
    const { model: second } = await projects.update('x', { backend: 'claude' })
    const { model: third } = await projects.update('x', { backend: 'codex', model: 'small' })
    expect([first, second, third]).toEqual(['large', undefined, 'small'])
  })

  it('says where to change a project of the configuration file', async () => {
    const { projects, store } = await setup()
    await store.projects.put({ id: 'web', directory: '/srv/web' }, 'file', NOW)
    const advice = 'conflict: The project web is defined in /etc/aetheel.json5. Change it there.'
    expect([
      await problemOf(projects.update('web', { name: 'X' })),
      await problemOf(projects.remove('web')),
      await projects.get('web'),
    ]).toEqual([
      advice,
      advice,
      {
        id: 'web',
        directory: '/srv/web',
        source: 'file',
        instance: expect.any(String),
        createdAt: NOW,
        updatedAt: NOW,
      },
    ])
  })

  it('refuses an unknown project', async () => {
    const { projects } = await setup()
    const problem = 'not_found: There is no project "nope". List them with "aetheel projects list" or GET /projects.'
    expect([
      await problemOf(projects.get('nope')),
      await problemOf(projects.update('nope', {})),
      await problemOf(projects.remove('nope')),
    ]).toEqual([problem, problem, problem])
  })
})

describeEngines('a switch of agents', ({ createStore }) => {
  it('clears the sessions of the conversations that follow the project', async () => {
    const { projects, store } = await setup({ store: await createStore() })
    await projects.create({ id: 'web', template: { name: 'empty' } })
    await projects.create({ id: 'api', template: { name: 'empty' } })
    const enter = async (address: string, more: { projectId?: string; parent?: string } = {}) => {
      await store.conversations.enter({ channel: 'discord', address, ...more }, address, NOW)
      await store.sessions.set({ conversationId: address, backend: 'codex', sessionId: address, directory: '/' }, NOW)
    }
    await enter('given', { projectId: 'web' })
    await enter('chosen', { projectId: 'api' })
    await store.conversations.configure('chosen', { projectId: 'web' })
    await enter('parent')
    await store.conversations.configure('parent', { projectId: 'web' })
    await enter('child', { parent: 'parent' })
    await enter('left', { projectId: 'web' })
    await store.conversations.configure('left', { projectId: 'api' })
    await enter('own-agent', { projectId: 'web' })
    await store.conversations.configure('own-agent', { backend: 'codex' })
    await enter('other', { projectId: 'api' })
    await enter('none')

    await projects.update('web', { backend: 'codex' })
    const untouched = (await store.sessions.list(50)).length
    const { backend } = await projects.update('web', { backend: 'claude' })
    // A turn that began before the switch brings its session too late.
    await store.sessions.set(
      { conversationId: 'given', backend: 'codex', sessionId: 's', directory: '/' },
      NOW,
      NOW - 1,
    )
    const left = (await store.sessions.list(50)).map(({ sessionId }) => sessionId).toSorted()
    expect([untouched, backend, left]).toEqual([8, 'claude', ['left', 'none', 'other', 'own-agent']])
  })

  it('keeps a project that messages wait for', async () => {
    const { projects, store } = await setup({ store: await createStore() })
    await projects.create({ id: 'web', template: { name: 'empty' } })
    const { id: conversationId, seq } = await store.conversations.enter(
      { channel: 'http', address: 'web/1', projectId: 'web' },
      'c',
      NOW,
    )
    const message = { id: 'm', conversationId, channel: 'http', platformId: 'p', seq, author: 'ada', text: 'Hello' }
    await store.inbox.add({ ...message, kind: 'message' }, 'open', null, NOW)
    await store.jobs.enqueue(message, 0, NOW)
    expect([await problemOf(projects.remove('web', { deletesFiles: true })), (await projects.list()).length]).toEqual([
      'conflict: The project web is in use: 1 message is waiting or running. Cancel them, or wait until they finish.',
      1,
    ])
  })
})

describe('remove', () => {
  it('keeps the files', async () => {
    const { projects, root } = await setup()
    await projects.create({ id: 'web', template: { name: 'empty' } })
    await projects.remove('web')
    expect([await projects.list(), existsSync(join(root, 'web/README.md'))]).toEqual([[], true])
  })

  it('deletes the files that it created, and follows no link out of them', async () => {
    const { projects, root, directory } = await setup()
    await projects.create({ id: 'web', template: { name: 'empty' } })
    writeFileSync(join(directory, 'precious'), '')
    symlinkSync(directory, join(root, 'web/link'))
    await projects.remove('web', { deletesFiles: true })
    expect([await projects.list(), readdirSync(root), existsSync(join(directory, 'precious'))]).toEqual([[], [], true])
  })

  it('does not delete an existing directory', async () => {
    const { projects, root } = await setup()
    mkdirSync(join(root, 'web'))
    await projects.create({ id: 'web', directory: join(root, 'web') })
    const problem = await codeOf(projects.remove('web', { deletesFiles: true }))
    expect([problem, (await projects.list()).length, readdirSync(root)]).toEqual(['conflict', 1, ['web']])
  })

  it('does not delete files that an earlier project with its id created', async () => {
    const { projects, root } = await setup()
    await projects.create({ id: 'web', template: { name: 'empty' } })
    await projects.remove('web')
    await projects.create({ id: 'web', directory: join(root, 'web') })
    expect(await codeOf(projects.remove('web', { deletesFiles: true }))).toBe('conflict')
  })

  it('does not delete through a link that replaced the directory', async () => {
    const { projects, root, second } = await setup()
    await projects.create({ id: 'web', template: { name: 'empty' } })
    rmSync(join(root, 'web'), { recursive: true })
    writeFileSync(join(second, 'precious'), '')
    symlinkSync(second, join(root, 'web'))
    const problem = await codeOf(projects.remove('web', { deletesFiles: true }))
    expect([problem, readdirSync(second)]).toEqual(['conflict', ['precious']])
  })

  it('does not delete the files of another project with its own', async () => {
    const { projects, root } = await setup()
    await projects.create({ id: 'web', template: { name: 'node-typescript' } })
    await projects.create({ id: 'inner', directory: join(root, 'web/src') })
    expect([await problemOf(projects.remove('web', { deletesFiles: true })), readdirSync(root)]).toEqual([
      `conflict: The project inner works in ${join(root, 'web/src')}, which would be deleted too. Remove that project first.`,
      ['web'],
    ])
  })
})

it('remembers after a restart its projects, and whose files it may delete', async () => {
  const { projects, root, home } = await setup()
  createRepository(join(root, 'upstream'), { 'README.md': 'Hello\n' })
  await projects.create({ id: 'web', git: { url: join(root, 'upstream') } })
  const again = await openStore({ file: join(home, 'aetheel.db') }, SILENT_LOG)
  const kept = [(await again.projects.get('web'))?.directory, readFileSync(join(root, 'web/README.md'), 'utf8')]
  await again.close()
  await projects.remove('web', { deletesFiles: true })
  expect([kept, readdirSync(root).toSorted()]).toEqual([
    [join(root, 'web'), 'Hello\n'],
    ['gitconfig', 'upstream'],
  ])
})

async function codeOf(work: Promise<unknown>): Promise<string> {
  return (await problemOf(work)).split(':')[0] ?? ''
}

it('makes no change that cannot be recorded', async () => {
  const { projects, store, root } = await setup()
  await projects.create({ id: 'shop', template: { name: 'empty' } })
  const before = await store.projects.list()
  const note = (): Promise<void> => Promise.reject(new Error('The disk is full'))
  const attempts = await Promise.allSettled([
    projects.create({ id: 'site', template: { name: 'empty' } }, undefined, note),
    projects.update('shop', { model: 'opus' }, note),
    projects.remove('shop', {}, note),
  ])
  expect([attempts.map(({ status }) => status), await store.projects.list(), existsSync(join(root, 'site'))]).toEqual([
    ['rejected', 'rejected', 'rejected'],
    before,
    false,
  ])
})

describe('the names of files', () => {
  it('are those of a checkout that are not ignored, best first, and run nothing that it configures', async () => {
    const { projects, root, after } = await setup()
    const directory = join(root, 'web')
    createRepository(directory, { 'src/app.ts': '', 'app.md': '', '.gitignore': 'built\n', 'docs/my-app.md': '' })
    mkdirSync(join(directory, '.aetheel'))
    for (const name of ['built', 'new app.ts', '.aetheel/app']) writeFileSync(join(directory, name), '')
    appendFileSync(join(directory, '.git/config'), `[core]\n\tfsmonitor = touch ${join(root, 'ran')}; false\n`)
    await projects.create({ id: 'web', directory, backend: 'codex' })
    const matching = await projects.files('web', 'APP', 9)
    writeFileSync(join(directory, 'app-2'), '')
    const soon = await projects.files('web', 'app', 9)
    after(6_000)
    expect([
      matching,
      soon,
      await projects.files('web', 'app', 2),
      await projects.files('web', 'sr', 9),
      await projects.files('web', 'built', 9),
      existsSync(join(root, 'ran')),
    ]).toEqual([
      ['app.md', 'src/app.ts', 'new app.ts', 'docs/my-app.md'],
      ['app.md', 'src/app.ts', 'new app.ts', 'docs/my-app.md'],
      ['app-2', 'app.md'],
      ['src/', 'src/app.ts'],
      [],
      false,
    ])
  })

  it('are found without git too, but not behind links or in hidden places, and not in a pod', async () => {
    const { projects, root, second } = await setup()
    const directory = join(root, 'web')
    mkdirSync(join(directory, 'node_modules'), { recursive: true })
    mkdirSync(join(directory, '.hidden'))
    for (const name of ['a', 'node_modules/a', '.hidden/a']) writeFileSync(join(directory, name), '')
    writeFileSync(join(second, 'a'), '')
    symlinkSync(second, join(directory, 'link'))
    await projects.create({ id: 'web', directory, backend: 'codex' })
    await projects.create({ id: 'far', pod: { namespace: 'agents', name: 'web-0' }, backend: 'codex' })
    expect([
      await projects.files('web', '', 9),
      await projects.files('web', '../', 9),
      await projects.files('far', '', 9),
    ]).toEqual([['a', 'link'], [], undefined])
  })
})
