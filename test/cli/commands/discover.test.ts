import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { BackendRegistry, createBackend } from '../../../src/backends/registry.js'
import { type DiscoverFlags, projectsDiscover } from '../../../src/cli/commands/discover.js'
import { GatewayError } from '../../../src/errors.js'
import type { LabelledPod } from '../../../src/kubernetes/types.js'
import { ProjectService } from '../../../src/projects/project-service.js'
import { notesOf } from '../../../src/store/audit.js'
import { describeEngines, openTestStore, type TestEngine } from '../../kit/engines.js'
import { FakePods } from '../../kit/fake-pods.js'
import { SILENT_LOG } from '../../kit/log.js'
import { queueOn } from '../../kit/queue.js'
import { adapterConfig } from '../../kit/adapter-config.js'

const NOW = 1_800_000_000_000
describeEngines('projects discover', (engine) => {
  it('makes a project of each pod, with the agent that its label says', async () => {
    const { discover, store, pods, said } = await setup(engine)
    pods.labels = [pod('web', 'claudecode'), pod('api', 'opencode'), pod('old', 'cursor'), pod('plain', '')]
    const printed = await discover({})
    const projects = await store.projects.list()
    expect([pods.asked, said, rowsOf(printed)]).toEqual([
      [['example.com/agent', { namespace: 'agents' }]],
      ['Looking for pods with the label example.com/agent in the namespace agents …\n', 'Found 4 pods.\n'],
      [
        ['PROJECT', 'AGENT', 'RESULT', 'POD'],
        ['web', 'claude', 'new', 'the pod web-0 (namespace agents)'],
        ['api', 'opencode', 'new', 'the pod api-0 (namespace agents)'],
        ['old', 'codex, because cursor is unknown', 'new', 'the pod old-0 (namespace agents)'],
        ['plain', 'codex', 'new', 'the pod plain-0 (namespace agents)'],
      ],
    ])
    expect(projects.map(({ id, source, backend, directory }) => [id, source, backend, directory])).toEqual([
      ['api', 'cluster', 'opencode', '/workspace'],
      ['old', 'cluster', 'cursor', '/workspace'],
      ['plain', 'cluster', 'codex', '/workspace'],
      ['web', 'cluster', 'claude', '/workspace'],
    ])
  })

  it('follows pods and labels, and keeps manual settings', async () => {
    const { discover, store, projects, pods } = await setup(engine)
    pods.labels = [pod('web', 'claude'), pod('api', 'claude'), pod('same', 'claude')]
    await discover({})
    await projects.update('web', { name: 'The web', model: 'opus', queryTimeoutMs: 5 })
    await projects.update('api', { model: 'opus', maxTurns: 3 })
    pods.labels = [pod('web', 'claude', { name: 'web-1' }), pod('api', 'pi'), pod('same', 'claude')]
    const printed = await discover({})
    expect([rowsOf(printed).map((row) => row.slice(0, 3)), await store.projects.list()]).toMatchObject([
      [
        ['PROJECT', 'AGENT', 'RESULT'],
        ['web', 'claude', 'changed'],
        ['api', 'pi', 'changed'],
        ['same', 'claude', 'unchanged'],
      ],
      [
        { id: 'api', backend: 'pi', maxTurns: 3 },
        { id: 'same' },
        { id: 'web', pod: { name: 'web-1' }, name: 'The web', model: 'opus', queryTimeoutMs: 5 },
      ],
    ])
    // A model of one agent is unknown to another.
    expect((await store.projects.get('api'))?.model).toBeUndefined()
  })

  it('begins new sessions when the label names another agent', async () => {
    const { discover, store, pods, queue } = await setup(engine)
    pods.labels = [pod('web', 'claude')]
    await discover({})
    const { conversationId } = await queue.accept({ ...message('1'), projectId: 'web' })
    const session = { conversationId, backend: 'claude', sessionId: 's1', directory: 'pod::agents:web-0::/workspace' }
    await store.sessions.set(session, NOW, NOW)
    pods.labels = [pod('web', 'codex')]
    await discover({})
    expect(await store.sessions.get(conversationId)).toBeUndefined()
  })

  it('ignores projects outside the cluster, or in another of its namespaces', async () => {
    const { discover, store, pods } = await setup(engine)
    await store.projects.put({ id: 'file', directory: '/srv/file' }, 'file', NOW)
    await store.projects.add({ id: 'api', directory: '/srv/api' }, NOW)
    pods.labels = [
      pod('file', 'pi'),
      pod('api', 'pi'),
      pod('web', 'claude'),
      pod('web', 'codex', { namespace: 'other' }),
    ]
    const printed = await discover({ allNamespaces: true })
    expect([
      rowsOf(printed)
        .slice(1)
        .map(([id, , result]) => [id, result]),
      await store.projects.list(),
    ]).toMatchObject([
      [
        ['file', 'skipped: its id is taken'],
        ['api', 'skipped: its id is taken'],
        ['web', 'new'],
        ['web', 'skipped: its id is taken'],
      ],
      [
        { id: 'api', source: 'api', directory: '/srv/api' },
        { id: 'file', source: 'file', directory: '/srv/file' },
        { id: 'web', backend: 'claude', pod: { namespace: 'agents' } },
      ],
    ])
  })

  it('identifies a pod by its location, whatever id it would get now', async () => {
    const { discover, store, pods } = await setup(engine)
    pods.labels = [pod('web', 'claude')]
    await discover({})
    const { address } = pod('web', 'claude')
    pods.labels = [{ projectId: 'agents-web', provider: 'pi', address }, pod('other-web', 'pi', { namespace: 'other' })]
    await discover({ allNamespaces: true })
    expect((await store.projects.list()).map(({ id, backend }) => [id, backend])).toEqual([
      ['other-web', 'pi'],
      ['web', 'pi'],
    ])
  })

  it('creates no project from an ending pod, and keeps the one it had', async () => {
    const { discover, store, pods } = await setup(engine)
    pods.labels = [pod('web', 'claude')]
    await discover({})
    pods.labels = [
      { ...pod('web', 'pi'), isEnding: true },
      { ...pod('job', 'pi'), isEnding: true },
    ]
    const printed = await discover({ removeMissing: true })
    expect([rowsOf(printed).slice(1), await store.projects.list()]).toMatchObject([
      [['web', 'claude', 'unchanged; its pod is terminating', 'the pod web-0 (namespace agents)']],
      [{ id: 'web', backend: 'claude' }],
    ])
  })

  it('reports missing pods, and removes their projects on request', async () => {
    const { discover, store, pods, queue } = await setup(engine)
    const far = pod('far', 'claude', { namespace: 'other' })
    pods.labels = [pod('web', 'claude'), pod('busy', 'claude'), pod('here', 'claude'), far]
    await discover({ allNamespaces: true })
    await queue.accept({ ...message('1'), projectId: 'busy' })
    pods.labels = [pod('here', 'claude')]
    const told = rowsOf(await discover({}))
    const kept = (await store.projects.list()).length
    const removed = rowsOf(await discover({ removeMissing: true }))
    const results = (rows: string[][]) => rows.slice(1).map(([id, , result]) => [id, result])
    expect([results(told), kept, results(removed), (await store.projects.list()).map(({ id }) => id)]).toEqual([
      [
        ['here', 'unchanged'],
        ['busy', 'gone; --remove-missing removes it'],
        ['web', 'gone; --remove-missing removes it'],
      ],
      4,
      [
        ['here', 'unchanged'],
        ['busy', 'gone; kept because it is in use'],
        ['web', 'gone; removed'],
      ],
      ['busy', 'far', 'here'],
    ])
  })

  it('reports nothing as missing if it does not know which namespace kubectl used', async () => {
    const { discover, pods } = await setup(engine, {})
    pods.labels = [pod('web', 'claude')]
    await discover({})
    pods.labels = []
    expect(await discover({ removeMissing: true })).toBe(
      'No pod has the label example.com/agent in the namespace of the current context, and no project came from one.',
    )
  })

  it('puts each change on record', async () => {
    const { discover, store, pods } = await setup(engine)
    pods.labels = [pod('web', 'claude')]
    await discover({})
    pods.labels = [pod('web', 'codex')]
    await discover({})
    await discover({})
    pods.labels = []
    await discover({ removeMissing: true })
    expect((await store.audit.list(9)).map(({ action, subject, detail }) => [action, subject, detail])).toEqual([
      ['project.remove', 'web', undefined],
      ['project.update', 'web', 'pod, backend'],
      ['project.create', 'web', undefined],
    ])
  })
})

describe('projects discover', () => {
  it('searches the given namespace, and prints JSON', async () => {
    const { discover, pods } = await setup()
    const address = { context: 'live', namespace: 'team', name: 'web-0' }
    pods.labels = [{ projectId: 'web', address, provider: 'cursor' }]
    const flags = { context: 'live', namespace: 'team', label: 'team/agent', json: true } as const
    expect([JSON.parse(await discover(flags)), pods.asked]).toEqual([
      [{ id: 'web', outcome: 'made', label: 'cursor', agent: 'codex', pod: address }],
      [['team/agent', { context: 'live', namespace: 'team' }]],
    ])
  })

  it.each<[DiscoverFlags, string]>([
    [{ namespace: 'a', allNamespaces: true }, 'Use either --namespace or --all-namespaces, not both.'],
    [
      { context: '--token=x' },
      '--context: "--token=x" is not a kubectl context: list them with "kubectl config get-contexts".',
    ],
    [{ namespace: '-A' }, '--namespace: "-A" is not a namespace: use lowercase letters, digits, "-" and ".".'],
    [
      { label: 'a/b', removeMissing: true },
      '--remove-missing with --label would remove projects found by another label. Set KUBERNETES_LABEL instead.',
    ],
    [{ label: 'a=b' }, '--label: "a=b" is not a label key, such as example.com/agent.'],
  ])('refuses %j', async (flags, problem) => {
    const { discover, pods } = await setup()
    await expect(discover(flags)).rejects.toEqual(new GatewayError('request_invalid', problem))
    expect(pods.asked).toEqual([])
  })

  it('changes nothing when the cluster does not answer', async () => {
    const { discover, store, pods } = await setup()
    pods.labels = [pod('web', 'claude')]
    await discover({})
    pods.answers = false
    await expect(discover({ removeMissing: true })).rejects.toMatchObject({
      code: 'cluster_unavailable',
      message: 'The cluster does not answer. Check the context.',
    })
    expect((await store.projects.list()).length).toBe(1)
  })
})

function pod(projectId: string, provider: string, address: object = {}): LabelledPod {
  return { projectId, provider, address: { namespace: 'agents', name: `${projectId}-0`, ...address } }
}

function message(platformId: string) {
  return { channel: 'chat', address: 'a', platformId, author: 'ann', text: 'Look' }
}

function rowsOf(printed: string): string[][] {
  return printed.split('\n').map((row) => row.split(/ {2,}/))
}

async function setup(engine?: TestEngine, place: object = { kubernetesNamespace: 'agents' }) {
  const store = engine ? await engine.createStore() : await openTestStore({ file: ':memory:' })
  const now = (): number => NOW
  const agents = new BackendRegistry(now)
  for (const name of ['codex', 'claude', 'opencode', 'pi'] as const)
    agents.register(createBackend(name, adapterConfig()))
  const config = {
    kubernetesLabel: 'example.com/agent',
    projectRoots: ['/srv/projects'],
    home: '/data',
    agentBackend: 'claude' as const,
    codeAgentDefault: 'codex' as const,
    ...place,
  }
  const run = async (): Promise<never> => {
    throw new Error('No git here')
  }
  const projects = new ProjectService({ store, config, agents, run, now, newId: randomUUID, log: SILENT_LOG })
  const pods = new FakePods()
  const said: string[] = []
  const stderr = { write: (text: string) => said.push(text) > 0 }
  const changer = { store, agents, projects, pods, now, note: notesOf('terminal', now) }
  return {
    store,
    projects,
    pods,
    said,
    queue: queueOn(store, { now }),
    discover: (flags: DiscoverFlags) => projectsDiscover(flags, { ...changer, config, width: 200, stderr }),
  }
}
