import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type ProjectFlags,
  projectsCreate,
  projectsList,
  projectsRemove,
  projectsShow,
} from '../../../src/cli/commands/projects.js'
import { closing, openForChanges } from '../../../src/cli/open-store.js'
import { type ProjectTools, projectTools } from '../../../src/cli/project-tools.js'
import { loadConfig } from '../../../src/config.js'
import { GatewayError } from '../../../src/errors.js'
import { databaseFile } from '../../../src/gateway.js'
import { openStoreReadOnly, type Store } from '../../../src/store/store.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'
import { SILENT_LOG } from '../../kit/log.js'
import { openTestStore } from '../../kit/engines.js'

describe('projects create', () => {
  it('makes a project from a template, on the first start of all', async () => {
    const { create, look, root } = setup()
    const said = await create({ name: 'My Tool', template: 'python', variable: ['module_name=tool', 'package_name=a'] })
    const { projects, audit } = await look(async (store) => ({
      projects: await store.projects.list(),
      audit: await store.audit.list(5),
    }))
    expect([said, projects, audit, existsSync(join(root, 'my-tool/tool/__init__.py'))]).toEqual([
      `Created the project my-tool in ${join(root, 'my-tool')}`,
      [
        {
          id: 'my-tool',
          name: 'My Tool',
          directory: join(root, 'my-tool'),
          backend: 'codex',
          source: 'api',
          instance: expect.any(String),
          isMadeHere: true,
          createdAt: expect.any(Number),
          updatedAt: expect.any(Number),
        },
      ],
      [
        {
          id: expect.any(String),
          at: expect.any(Number),
          actor: 'terminal',
          action: 'project.create',
          subject: 'my-tool',
        },
      ],
      true,
    ])
  })

  it('takes a directory relative to where it is called', async () => {
    const { create, look, root } = setup()
    mkdirSync(join(root, 'web'), { recursive: true })
    await create({ directory: 'web', id: 'x', model: 'large', untrusted: true }, root)
    const [project] = await look(({ projects }) => projects.list())
    expect(project).toMatchObject({ id: 'x', directory: join(root, 'web'), model: 'large', isUntrusted: true })
  })

  it('takes a pod, and lists it with its location', async () => {
    const { create, look } = setup()
    const flags = { podSelector: 'app=web', namespace: 'agents', context: 'dev', container: 'agent' }
    const said = [await create({ pod: 'web-0' }), await create({ ...flags, id: 'web', directory: '/srv' })]
    const listed = await look((store) => projectsList(store, { limit: 50, isJson: false, width: 200 }))
    const shown = await look((store) => projectsShow(store, 'web', false))
    expect([said, listed.split('\n').map((row) => row.split(/ {2,}/).at(-1)), shown.split('\n').slice(2, 4)]).toEqual([
      [
        'Created the project web-0 in /workspace in the pod web-0',
        'Created the project web in /srv in the pod with app=web (container agent, namespace agents, context dev)',
      ],
      [
        'DIRECTORY',
        '/srv in the pod with app=web (container agent, namespace agents, context dev)',
        '/workspace in the pod web-0',
      ],
      ['Directory    /srv', 'Pod          the pod with app=web (container agent, namespace agents, context dev)'],
    ])
  })

  it.each<[ProjectFlags, string]>([
    [{ directory: 'web', namespace: 'agents' }, '--namespace needs --pod or --pod-selector.'],
    [{ pod: 'a', podSelector: 'b' }, 'pod: needs either "name" or "selector", not both.'],
    [{ pod: 'a', directory: 'web' }, 'directory: must be an absolute path in the pod, such as /workspace.'],
    [{ directory: 'web', ref: 'main' }, '--ref needs --git.'],
    [{ directory: 'web', variable: ['a=b'] }, '--variable needs --template.'],
    [{ template: 'empty', variable: ['a'] }, '--variable a: write it as name=value.'],
    [{ template: 'empty', variable: ['=a'] }, '--variable =a: write it as name=value.'],
    [{}, 'A project needs exactly one of directory, git, template and pod.'],
    [{ git: '--upload-pack=x' }, 'The repository cannot be cloned: its URL must not start with "-".'],
  ])('refuses %j', async (flags, problem) => {
    const { create } = setup()
    await expect(create(flags)).rejects.toEqual(new GatewayError('request_invalid', problem))
  })

  it('makes one while a gateway has the database open', async () => {
    const { create, config } = setup()
    await create({ id: 'first', template: 'empty' })
    const store = await openTestStore({ file: databaseFile(config) })
    await create({ id: 'second', template: 'empty' })
    expect((await store.projects.list()).map(({ id }) => id)).toEqual(['first', 'second'])
  })
})

describe('projects list and show', () => {
  it('lists them', async () => {
    const { create, look, root } = setup()
    const options = { limit: 50, isJson: false, width: 200 }
    const empty = await look((store) => projectsList(store, options))
    await create({ id: 'web', name: 'The web', template: 'empty' })
    const rows = (await look((store) => projectsList(store, options))).split('\n').map((row) => row.split(/ {2,}/))
    expect([empty, rows]).toEqual([
      'There are no projects. "aetheel projects create" creates one.',
      [
        ['ID', 'NAME', 'AGENT', 'DEFINED IN', 'DIRECTORY'],
        ['web', 'The web', 'codex', '-', join(root, 'web')],
      ],
    ])
  })

  it('shows one', async () => {
    const { create, look, root } = setup()
    await create({ id: 'web', model: 'la\u202Erge', template: 'empty' })
    const rows = (await look((store) => projectsShow(store, 'web', false))).split('\n').map((row) => row.split(/ {2,}/))
    expect(rows).toEqual([
      ['Project', 'web'],
      ['Name', 'web'],
      ['Directory', join(root, 'web')],
      ['Agent', 'codex'],
      ['Model', 'la rge'],
      ['Tools', 'from ALLOWED_TOOLS'],
      ['Time limit', 'from QUERY_TIMEOUT_MS'],
      ['Turn limit', 'from BACKEND_MAX_TURNS'],
      ['Trusted', 'yes'],
      ['Permissions', 'from AGENT_PERMISSIONS'],
      ['Defined in', 'the database'],
    ])
  })

  it('gives the same as JSON', async () => {
    const { create, look } = setup()
    await create({ id: 'web', template: 'empty' })
    const [list, one] = await look(async (store) => [
      JSON.parse(await projectsList(store, { limit: 50, isJson: true, width: 80 })) as unknown[],
      JSON.parse(await projectsShow(store, 'web', true)) as unknown,
    ])
    expect(list).toEqual([one])
  })

  it('knows no other', async () => {
    const { look } = setup()
    await expect(look((store) => projectsShow(store, 'nope', false))).rejects.toEqual(
      new GatewayError('not_found', 'There is no project nope. "aetheel projects list" lists them.'),
    )
  })
})

describe('projects remove', () => {
  it.each([
    [false, true, (path: string) => `Removed the project web. Its files are still in ${path}`],
    [true, false, (path: string) => `Removed the project web and deleted ${path}`],
  ])('with files to delete: %s', async (deletesFiles, isKept, sentence) => {
    const { create, change, look, root } = setup()
    await create({ id: 'web', template: 'empty' })
    const said = await change((changer) => projectsRemove(changer, 'web', deletesFiles))
    const left = await look(({ projects }) => projects.list())
    expect([said, left, existsSync(join(root, 'web'))]).toEqual([sentence(join(root, 'web')), [], isKept])
  })
})

function setup() {
  const directory = temporaryDirectory()
  const environment = { PATH: process.env['PATH'], HOME: directory, CODE_AGENT_DEFAULT: 'codex' }
  const config = loadConfig(environment)
  const change = async <T>(work: (tools: ProjectTools) => Promise<T>): Promise<T> =>
    closing(await openForChanges(config, SILENT_LOG), (store) =>
      work(projectTools(store, config, SILENT_LOG, environment)),
    )
  return {
    config,
    root: join(directory, 'aetheel-projects'),
    change,
    create: (flags: ProjectFlags, cwd = directory) => change((changer) => projectsCreate(changer, flags, cwd)),
    look: async <T>(work: (store: Store) => Promise<T>): Promise<T> => {
      const store = await openStoreReadOnly({ file: databaseFile(config) }, SILENT_LOG)
      try {
        return await work(store)
      } finally {
        await store.close()
      }
    },
  }
}
