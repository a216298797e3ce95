// Pods through a fake kubectl. The real one, with a cluster, is tested in cluster.test.ts.

import { randomUUID } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, test as bareTest } from 'vitest'
import { configuredPods } from '../../src/runtime/configured-pods.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { createPods } from '../../src/kubernetes/pods.js'
import { POD_MARKER } from '../../src/kubernetes/supervisor.js'
import {
  type PodAddress,
  PodError,
  type PodExit,
  type PodProcess,
  type PodProcessOptions,
  type Pods,
  podFilesPath,
} from '../../src/kubernetes/types.js'
import type { ProcessOwner, StartedProcess } from '../../src/processes/process-owner.js'
import { endLivingProcesses, livingProcesses } from '../kit/living-processes.js'
import { until } from '../kit/waiting.js'
import { type LocalCluster, type LocalPod, startLocalCluster } from './local-cluster.js'
import { SILENT_SHELL } from './silent-shell.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

/** Short limits, except for the cache: nothing here depends on timing. */
const QUICK = { readyMs: 20_000, beatMs: 1_000, confirmMs: 6_000, closeMs: 2_000, answerMs: 20_000, freshMs: 600_000 }
/** The limits for questions that are never answered, and for some that are. */
const UNANSWERED_MS = 8_000
const soon = (): AbortSignal => AbortSignal.timeout(30_000)

interface Started extends PodProcess {
  runId: string
  stdout: () => string
  stderr: () => string
}

interface Ground {
  cluster: LocalCluster
  pods: Pods
  start(options?: Partial<PodProcessOptions>, address?: PodAddress): Promise<Started>
  alive(run: Pick<Started, 'runId'>): string[]
}

const test = bareTest.extend<{ ground: Ground }>({
  ground: async ({ task: _task }, use) => {
    const cluster = await startLocalCluster([{ name: 'web' }])
    const pods = createPods({ environment: cluster.environment, passVariables: [], limits: QUICK })
    const runs: Started[] = []
    const start = async (options: Partial<PodProcessOptions> = {}, address: PodAddress = { name: 'web' }) => {
      const pod = await pods.open(address, soon())
      let [stdout, stderr] = ['', '']
      const runId = randomUUID()
      const process = pod.start({
        ...SILENT_SHELL,
        args: [],
        onStdout: (chunk) => (stdout += chunk.toString('utf8')),
        onStderr: (chunk) => (stderr += chunk.toString('utf8')),
        runId,
        ...options,
      })
      const run = { ...process, runId, stdout: () => stdout, stderr: () => stderr }
      runs.push(run)
      return run
    }
    const alive = ({ runId }: Pick<Started, 'runId'>): string[] =>
      livingProcesses(`${POD_MARKER}=${runId}`).map(({ command }) => command)
    await use({ cluster, pods, start, alive })
    cluster.close()
    for (const { runId, stop } of runs) {
      stop()
      endLivingProcesses(`${POD_MARKER}=${runId}`)
      rmSync(podFilesPath(runId), { recursive: true, force: true })
    }
  },
})

/** Prints when it runs, and never exits; neither do its children. */
const WORKER = { args: ['-c', 'setsid sleep 1000 & echo working; sleep 1000'] }

async function working(run: Started): Promise<Started> {
  await until(() => run.stdout().includes('working'), `the agent works: ${run.stderr()}`)
  return run
}

async function refusalOf(work: Promise<unknown>): Promise<{ problem: string; message: string }> {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof PodError)) throw new Error(`It was no PodError: ${String(error)}`)
  return { problem: error.problem, message: error.message }
}

/** The problem and the parts that its message must contain. */
function problemIn(exit: PodExit, ...pieces: string[]): Array<string | undefined> {
  const { problem, message } = 'problem' in exit ? exit : { problem: JSON.stringify(exit), message: '' }
  return [problem, ...pieces.map((piece) => (message.includes(piece) ? piece : message))]
}

describe.concurrent('a pod', () => {
  test('is named with everything that was left out', async ({ ground: { cluster, pods }, expect }) => {
    cluster.pods.push({
      name: 'two',
      containers: ['first', 'second'],
      annotations: { 'kubectl.kubernetes.io/default-container': 'second' },
    })
    const addresses: PodAddress[] = [
      { name: 'web' },
      { name: 'two' },
      { name: 'two', container: 'first', context: 'c' },
    ]
    const opened = await Promise.all(addresses.map((address) => pods.open(address, soon())))
    expect(opened.map(({ address, title }) => [address, title])).toEqual([
      [{ namespace: 'default', name: 'web', container: 'main' }, 'the pod web (container main, namespace default)'],
      [{ namespace: 'default', name: 'two', container: 'second' }, 'the pod two (container second, namespace default)'],
      [
        { context: 'c', namespace: 'default', name: 'two', container: 'first' },
        'the pod two (container first, namespace default, context c)',
      ],
    ])
  })

  test('is named with the context that was the current one', async ({ ground: { cluster, pods }, expect }) => {
    cluster.context = 'live'
    const { address } = await pods.open({ name: 'web' }, soon())
    cluster.context = 'other'
    await pods.endRun(address, 'some-run')
    const scopes = cluster.calls.map((call) => [call[0], call.find((word) => word.startsWith('--context='))])
    expect([address.context, scopes]).toEqual([
      'live',
      [
        ['config', undefined],
        ['get', '--context=live'],
        ['exec', '--context=live'],
        ['exec', '--context=live'],
      ],
    ])
  })

  test.for([
    'OCI runtime exec failed: exec: "sh": executable file not found in $PATH: unknown',
    'executable file `sh` not found in $PATH: No such file or directory',
  ])('that has no shell is reported: %s', async (words, { ground: { cluster, pods }, expect }) => {
    cluster.refuse('exec', words, 126)
    expect(await refusalOf(pods.open({ name: 'web' }, soon()))).toEqual({
      problem: 'cli_missing',
      message:
        'The pod web (container main, namespace default) has no shell. Use a container image with sh: every agent is started by it.',
    })
  })

  test('says which file it cannot give', async ({ ground: { pods }, expect, onTestFinished }) => {
    const directory = temporaryDirectory(onTestFinished)
    const [most, more] = ['most', 'more'].map((name) => join(directory, name)) as [string, string]
    writeFileSync(most, 'x'.repeat(1_000_000))
    writeFileSync(more, 'x'.repeat(1_000_001))
    const pod = await pods.open({ name: 'web' }, soon())
    const whole = await pod.readFile(most, soon())
    const refusals = [
      await refusalOf(pod.readFile(more, soon())),
      // A file whose first byte nobody can read.
      await refusalOf(pod.readFile('/proc/self/mem', soon())),
    ]
    expect([whole?.length, refusals.map(({ message }) => message)]).toEqual([
      1_000_000,
      [
        expect.stringContaining(`has more than 1000000 bytes in ${more}`),
        expect.stringContaining('cannot read /proc/self/mem'),
      ],
    ])
  })

  test('does not report an agent as missing if nobody can tell', async ({ ground: { cluster, pods }, expect }) => {
    const pod = await pods.open({ name: 'web' }, soon())
    cluster.refuse('exec', 'Unable to connect to the server: net/http: TLS handshake timeout')
    const lost = await refusalOf(pod.version('node', soon()))
    const late = await refusalOf(pod.version('node', AbortSignal.abort()))
    expect([lost.problem, late.problem]).toEqual(['unreachable', 'unreachable'])
  })

  test('tells the gateway which keys must be hidden', async ({ ground: { cluster }, expect }) => {
    cluster.container['ANTHROPIC_API_KEY'] = 'sk-of-the-container'
    const scrubber = createScrubber()
    const pods = configuredPods({ kubectlPath: 'kubectl', agentEnvPass: [] }, cluster.environment, { scrubber })
    await pods.open({ name: 'web' }, soon())
    expect(scrubber.scrub('It is sk-of-the-container.')).toEqual('It is [secret].')
  })

  test('is found by a kubeconfig whose path goes from here', async ({ ground: { cluster }, expect }) => {
    const KUBECONFIG = relative(process.cwd(), cluster.environment['KUBECONFIG'] ?? '')
    const pods = createPods({ environment: { ...cluster.environment, KUBECONFIG }, passVariables: [] })
    expect((await pods.open({ name: 'web' }, soon())).address.name).toEqual('web')
  })

  test('is the first one by name that has the labels and is ready', async ({ ground: { cluster, pods }, expect }) => {
    const labels = { app: 'x', tier: 'dev' }
    cluster.pods.push(
      { name: 'd', labels },
      { name: 'a', labels, isReady: false },
      { name: 'b', labels, isBeingDeleted: true },
      { name: 'c', labels },
      { name: 'aa', labels: { app: 'x' } },
    )
    const { address } = await pods.open({ selector: 'app=x,tier=dev' }, soon())
    expect(address.name).toEqual('c')
  })

  test('is looked at once for several runs, each of which is one exec', async ({ ground, expect }) => {
    for (let turn = 0; turn < 3; turn += 1) await (await ground.start({ args: ['-c', 'exit 0'] })).ended
    expect(ground.cluster.calls.map(([command, ...args]) => [command, args.at(-1)])).toEqual([
      ['config', 'current-context'],
      ['get', 'web'],
      ['exec', 'aetheel-look'],
      ...[0, 0, 0].map(() => ['exec', expect.stringMatching(/^aetheel-run-/)]),
    ])
  })

  test('is looked at to the end for the next run, when the one that asked has ended', async ({
    ground,
    expect,
    onTestFinished,
  }) => {
    const { cluster, pods } = ground
    const bin = temporaryDirectory(onTestFinished)
    const slow = `#!/bin/sh\nuntil [ -e ${bin}/go ]; do sleep 0.1; done\nexec /bin/cat "$@"\n`
    writeFileSync(join(bin, 'cat'), slow, { mode: 0o755 })
    cluster.container['PATH'] = `${bin}:${cluster.container['PATH']}`
    const controller = new AbortController()
    const asked = refusalOf(pods.open({ name: 'web' }, controller.signal))
    await until(() => livingProcesses(bin).length > 0, 'the look')
    controller.abort()
    const { problem } = await asked
    const next = pods.open({ name: 'web' }, soon())
    writeFileSync(join(bin, 'go'), '')
    const { environment } = await next
    const execs = cluster.calls.filter(([command]) => command === 'exec')
    expect([problem, environment['PATH'], execs.length, livingProcesses(bin)]).toEqual([
      'unreachable',
      cluster.container['PATH'],
      1,
      [],
    ])
  })

  test('answers several questions at once', async ({ ground: { cluster, pods }, expect, onTestFinished }) => {
    const directory = temporaryDirectory(onTestFinished)
    const pod = await pods.open({ name: 'web' }, soon())
    const before = cluster.calls.length
    const answers = await Promise.all([
      pod.readFile('/etc/hostname', soon()),
      pod.readFile('/nowhere', soon()),
      pod.list(directory, soon()),
      pod.list('/proc/self/ns', soon()),
    ])
    expect([answers, cluster.calls.length - before]).toEqual([
      [expect.any(String), undefined, [], expect.arrayContaining(['pid', 'mnt'])],
      1,
    ])
  })

  test('reports the version of its programs', async ({ ground: { pods }, expect }) => {
    const pod = await pods.open({ name: 'web' }, soon())
    const versions = [await pod.version('node', soon()), await pod.version('no-such-agent', soon())]
    expect(versions).toEqual([`${process.version}\n`, undefined])
  })

  test('has nothing alive of a version that nobody waits for any more', async ({
    ground: { pods },
    expect,
    onTestFinished,
  }) => {
    const directory = temporaryDirectory(onTestFinished)
    const slow = join(directory, 'slow-agent')
    writeFileSync(slow, `#!/bin/sh\ncd ${directory}\nwhile :; do sleep 0.1; done\n`, { mode: 0o755 })
    const pod = await pods.open({ name: 'web' }, soon())
    const stop = new AbortController()
    const refusal = refusalOf(pod.version(slow, stop.signal))
    await until(() => livingProcesses(directory).length > 0, 'the agent')
    stop.abort()
    const { problem } = await refusal
    expect([problem, livingProcesses(directory)]).toEqual(['unreachable', []])
  })

  const NOT_RUNNING: LocalPod[] = [
    { name: 'x', phase: 'Pending', waitingFor: 'ImagePullBackOff' },
    { name: 'x', waitingFor: 'CrashLoopBackOff' },
    { name: 'x', phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory' },
  ]
  test.for(NOT_RUNNING)('that is not running says why: %o', async (pod, { ground: { cluster, pods }, expect }) => {
    cluster.pods.push(pod)
    const { problem, message } = await refusalOf(pods.open({ name: 'x' }, soon()))
    expect([problem, message]).toEqual(['pod_not_running', expect.stringContaining(pod.waitingFor ?? 'low on memory')])
  })

  test.for([
    ['pod_not_found', { name: 'nowhere' }, 'pods "nowhere" not found'],
    ['pod_not_found', { selector: 'app=nothing' }, 'no pod has these labels'],
    ['container_not_found', { name: 'web', container: 'other' }, 'only main'],
  ] as const)('that cannot be used is %s', async ([problem, address, words], { ground: { pods }, expect }) => {
    expect(await refusalOf(pods.open(address, soon()))).toEqual({ problem, message: expect.stringContaining(words) })
  })

  test.for([
    [
      'forbidden',
      'Error from server (Forbidden): pods "web" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "default"',
    ],
    ['forbidden', 'error: You must be logged in to the server (Unauthorized)'],
    ['unreachable', 'The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?'],
    ['unreachable', 'Unable to connect to the server: dial tcp: lookup nowhere: no such host'],
    ['unreachable', 'Error in configuration: context was not found for specified context: x'],
    ['unreachable', 'Error from server (NotFound): the server could not find the requested resource'],
    ['unreachable', 'something new'],
  ] as const)(
    'that the cluster keeps from us is %s',
    async ([problem, words], { ground: { cluster, pods }, expect }) => {
      cluster.refuse('get', words)
      const seen = await refusalOf(pods.open({ name: 'web' }, soon()))
      expect([seen.problem, problem === 'forbidden' ? seen.message.includes(words) : true]).toEqual([problem, true])
    },
  )

  test.for([
    { name: '--help' },
    { name: 'web', namespace: '-n' },
    { name: 'web', context: '--kubeconfig=/x' },
    { name: 'web', container: 'a b' },
    { selector: '--all-namespaces' },
    { name: 'web', selector: 'app=x' },
    { name: 'Web;id' },
    {},
  ])('is never asked for by %o', async (address, { ground: { cluster, pods }, expect }) => {
    const { problem } = await refusalOf(pods.open(address, soon()))
    const isEnded = await pods.endRun(address, 'some-run')
    expect([problem, isEnded, cluster.calls]).toEqual(['pod_not_found', true, []])
  })
})

describe.concurrent('a process in a pod', () => {
  test('has its input, its files and its own exit code', async ({ ground, expect }) => {
    const runId = randomUUID()
    const run = await ground.start({
      runId,
      args: ['-c', 'cat - "$1/a"; pwd; echo "$SET $UNSET $HELD" >&2; exit 3', 'sh', podFilesPath(runId)],
      directory: '/usr',
      stdin: 'Hello\n',
      files: [{ name: 'a', content: 'file\n' }],
      environment: { SET: 'set' },
      defaults: { UNSET: 'default', HOME: 'not this', HELD: '' },
    })
    expect([await run.ended, run.stdout(), run.stderr()]).toEqual([
      { exitCode: 3, hasExpected: false },
      'Hello\nfile\n/usr\n',
      'set default \n',
    ])
  })

  test('is named to kubectl only by the run', async ({ ground, expect }) => {
    const run = await ground.start({
      args: ['-c', 'echo "$KEY"', 'secret-argument'],
      stdin: 'secret-prompt',
      environment: { KEY: 'secret-value' },
      files: [{ name: 'x', content: 'secret-file' }],
    })
    await run.ended
    expect([run.stdout(), JSON.stringify(ground.cluster.calls).includes('secret')]).toEqual(['secret-value\n', false])
  })

  test.for([
    ['cli_missing', { executable: 'no-such-agent' }, 'has no "no-such-agent"'],
    ['directory_missing', { directory: '/nowhere' }, 'has no directory /nowhere'],
    [
      'directory_missing',
      {
        files: [
          { name: 'a', content: '' },
          { name: 'a/b', content: '' },
        ],
      },
      'emptyDir',
    ],
  ] as const)('that lacks something is %s', async ([problem, options, words], { ground, expect }) => {
    const run = await ground.start(options as Partial<PodProcessOptions>)
    expect(problemIn(await run.ended, words)).toEqual([problem, words])
  })

  test.for([
    [
      'forbidden',
      'Error from server (Forbidden): pods "web" is forbidden: User "u" cannot create resource "pods/exec" in API group "" in the namespace "default"',
    ],
    ['pod_not_found', 'Error from server (NotFound): pods "web" not found'],
    ['pod_not_running', 'error: cannot exec into a container in a completed pod; current phase is Succeeded'],
    ['container_not_found', 'Error from server (BadRequest): container main is not valid for pod web'],
    [
      'cli_missing',
      'error: Internal error occurred: OCI runtime exec failed: exec failed: unable to start container process: exec: "sh": executable file not found in $PATH: unknown',
    ],
    ['unreachable', 'Error from server (NotFound): the server could not find the requested resource'],
    [
      'unreachable',
      'Error from server (InternalError): error dialing backend: dial tcp 10.0.0.3:10250: connect: connection refused',
    ],
  ] as const)('that was refused is %s', async ([problem, words], { ground, expect }) => {
    await ground.pods.open({ name: 'web' }, soon())
    ground.cluster.refuse('exec', words)
    const run = await ground.start()
    expect(problemIn(await run.ended, words)).toEqual([problem, words])
  })

  test('is lost when the stream is cut, and nothing of it continues', async ({ ground, expect }) => {
    ground.cluster.endsInput = false
    const run = await working(await ground.start(WORKER))
    ground.cluster.cut()
    expect([
      ...problemIn(await run.ended, 'close 1006'),
      ground.alive(run),
      existsSync(podFilesPath(run.runId)),
    ]).toEqual(['stream_lost', 'close 1006', [], false])
  })

  test("is lost when kubectl exits with 0 without the supervisor's final word", async ({ ground, expect }) => {
    ground.cluster.endsInput = false
    const run = await working(await ground.start(WORKER))
    ground.cluster.cut(0)
    expect([...problemIn(await run.ended), ground.alive(run)]).toEqual(['stream_lost', []])
  })

  test('is lost when the stream stands still', async ({ ground, expect }) => {
    ground.cluster.endsInput = false
    const run = await working(await ground.start(WORKER))
    ground.cluster.freeze()
    expect([...problemIn(await run.ended), ground.alive(run)]).toEqual(['stream_lost', []])
  })

  test.for([
    ['was deleted', () => []],
    ['was evicted', () => [{ name: 'web', phase: 'Failed', reason: 'Evicted', message: 'low on memory' }]],
    ['was restarted', () => [{ name: 'web', restartCount: 1 }]],
    ['was restarted', () => [{ name: 'web', uid: 'another' }]],
    ['was deleted', () => [{ name: 'web', isBeingDeleted: true }]],
    ['ended', () => [{ name: 'web', waitingFor: 'CrashLoopBackOff' }]],
  ] as const)('is gone with its pod, which %s', async ([what, pods], { ground, expect }) => {
    const run = await working(await ground.start(WORKER))
    ground.cluster.pods = [...(pods() as LocalPod[])]
    ground.cluster.cut()
    expect(problemIn(await run.ended, what)).toEqual(['pod_gone', what])
  })

  test('that is stopped is gone when it says so', async ({ ground, expect }) => {
    const run = await working(await ground.start(WORKER))
    run.stop()
    expect([await run.ended, ground.alive(run)]).toEqual([{ exitCode: 143, hasExpected: false }, []])
  })

  test('that is stopped is gone, even if its stream stalls', async ({ ground, expect }) => {
    ground.cluster.endsInput = false
    const run = await working(await ground.start(WORKER))
    ground.cluster.freeze()
    run.stop()
    expect([...problemIn(await run.ended), ground.alive(run)]).toEqual(['stream_lost', []])
  })

  test('that is stopped is not waited for when the cluster says nothing', async ({ ground, expect }) => {
    const { cluster } = ground
    const pods = createPods({
      environment: cluster.environment,
      passVariables: [],
      limits: { ...QUICK, confirmMs: 1_000, answerMs: UNANSWERED_MS },
    })
    const pod = await pods.open({ name: 'web' }, soon())
    let printed = ''
    const runId = randomUUID()
    const options = { ...SILENT_SHELL, ...WORKER, runId, onStdout: (chunk: Buffer) => void (printed += String(chunk)) }
    const run = pod.start(options)
    await until(() => printed.includes('working'), 'the agent works')
    cluster.freeze()
    cluster.isDeaf = true
    const before = cluster.calls.length
    run.stop()
    expect([...problemIn(await run.ended), cluster.calls.slice(before).map((call) => call.at(-1))]).toEqual([
      'stream_lost',
      ['aetheel-end'],
    ])
    endLivingProcesses(`${POD_MARKER}=${runId}`)
  })

  test('whose output arrives is alive, even if no heartbeat gets through', async ({
    ground,
    expect,
    onTestFinished,
  }) => {
    const directory = temporaryDirectory(onTestFinished)
    const end = join(directory, 'end')
    const script = 'echo working; while [ ! -e "$1" ]; do sleep 0.2; echo .; done'
    const run = await working(await ground.start({ args: ['-c', script, 'sh', end] }))
    ground.cluster.isMuted = true
    // Longer than the silence that ends a run.
    await until(() => run.stdout().split('.').length > 20, 'it has printed for four seconds')
    ground.cluster.isMuted = false
    writeFileSync(end, '')
    const exit = await run.ended
    expect(exit).toEqual({ exitCode: 0, hasExpected: false })
  })

  test('that is stopped before it begins does not begin', async ({ ground, expect }) => {
    const run = await ground.start({ args: ['-c', 'echo began'] })
    run.stop()
    expect([...problemIn(await run.ended), run.stdout(), ground.alive(run)]).toEqual(['unreachable', '', []])
  })

  test('whose pod never answers is not waited for', async ({ ground, expect }) => {
    const { cluster } = ground
    const pods = createPods({
      environment: cluster.environment,
      passVariables: [],
      limits: { ...QUICK, readyMs: 300, answerMs: UNANSWERED_MS },
    })
    const pod = await pods.open({ name: 'web' }, soon())
    cluster.isDeaf = true
    const ended: string[] = []
    const owner: ProcessOwner = {
      id: 'o',
      started: async () => {},
      ended: async (runId) => void ended.push(runId),
    }
    const { ended: exit } = pod.start({ ...SILENT_SHELL, runId: randomUUID(), owner })
    // Whatever may have started there stays on record.
    expect([...problemIn(await exit), ended]).toEqual(['unreachable', []])
  })

  test('is on record with its pod from before it begins until nothing of it is left', async ({ ground, expect }) => {
    const seen: Array<StartedProcess | string> = []
    let runId = ''
    const owner: ProcessOwner = {
      id: 'some-owner',
      started: async (process) => void seen.push(process),
      ended: async (id) => void seen.push(`${id} ${ground.alive({ runId: id }).length}`),
    }
    ground.cluster.endsInput = false
    const run = await working(await ground.start({ ...WORKER, owner }))
    ;({ runId } = run)
    ground.cluster.cut()
    await run.ended
    const pod = JSON.stringify({ namespace: 'default', name: 'web', container: 'main' })
    expect(seen).toEqual([{ runId, pid: expect.any(Number), startTime: expect.any(Number), pod }, `${runId} 0`])
  })

  test('does not begin when it cannot be put on record', async ({ ground, expect }) => {
    const owner: ProcessOwner = {
      id: 'some-owner',
      started: async () => Promise.reject(new Error('no room')),
      ended: async () => {},
    }
    const run = await ground.start({ args: ['-c', 'echo began'], owner })
    expect([await run.ended, run.stdout()]).toEqual([{ spawnError: new Error('no room') }, ''])
  })
})

describe.concurrent('the end of a run from outside', () => {
  test('leaves nothing of it, and all of another one', async ({ ground, expect }) => {
    const [run, other] = await Promise.all([ground.start(WORKER), ground.start(WORKER)])
    await Promise.all([working(run), working(other)])
    const isEnded = await ground.pods.endRun({ name: 'web' }, run.runId)
    const alive = [ground.alive(run).length, ground.alive(other).length > 0]
    other.stop()
    await Promise.all([run.ended, other.ended])
    expect([isEnded, alive]).toEqual([true, [0, true]])
  })

  test.for([{ name: 'nowhere' }, { selector: 'app=nothing' }, { name: 'web', container: 'other' }, { name: 'web' }])(
    'is sure where nothing of it can be: %o',
    async (address, { ground: { cluster, pods }, expect }) => {
      if (address.container === 'other') {
        cluster.refuse('exec', 'Error from server (BadRequest): container other is not valid for pod web')
      }
      expect(await pods.endRun(address, 'no-such-run')).toEqual(true)
    },
  )

  test.for([
    'Unable to connect to the server: net/http: TLS handshake timeout',
    // Of a proxy, or a load balancer.
    'Error from server (NotFound): the server could not find the requested resource',
  ])('is not known while the cluster is out of reach: %s', async (words, { ground: { cluster, pods }, expect }) => {
    cluster.refuse('exec', words)
    expect(await pods.endRun({ name: 'web' }, 'some-run')).toEqual(false)
  })
})

describe.concurrent('pods with a label', () => {
  test('become projects: a Deployment once, by labels that last', async ({ ground: { cluster, pods }, expect }) => {
    const label = 'example.com/agent'
    const web = { [label]: 'claude', app: 'web' }
    cluster.pods.push(
      { name: 'web-7d9c-abcde', labels: { ...web, 'pod-template-hash': '7d9c' } },
      { name: 'web-7d9c-zzzzz', labels: { ...web, 'pod-template-hash': '7d9c' } },
      { name: 'web-7d9b-fghij', labels: { ...web, 'pod-template-hash': '7d9b' }, isBeingDeleted: true },
      { name: 'db-0', labels: { [label]: 'pi' } },
      { name: 'done', labels: { [label]: 'pi' }, phase: 'Succeeded' },
      { name: 'set-0', labels: { [label]: 'pi' }, isBeingDeleted: true },
      { name: 'other.name', namespace: 'two', labels: { [label]: 'codex' } },
      { name: 'db-0', namespace: 'two', labels: { [label]: '' } },
      { name: `${'x'.repeat(80)}-a`, namespace: 'two', labels: { [label]: 'pi' } },
      { name: `${'x'.repeat(80)}-b`, namespace: 'two', labels: { [label]: 'pi' } },
    )
    const [here, all] = await Promise.all([
      pods.labelled(label, { context: 'c' }),
      pods.labelled(label, { namespace: '*' }),
    ])
    const ids = all.map(({ projectId }) => projectId)
    expect([here, ids.slice(0, 6), ids.every((id) => /^[A-Za-z0-9][\w-]{0,63}$/.test(id)), new Set(ids).size]).toEqual([
      [
        { address: { context: 'c', namespace: 'default', name: 'db-0' }, projectId: 'db-0', provider: 'pi' },
        ...['done', 'set-0'].map((name) => ({
          address: { context: 'c', namespace: 'default', name },
          projectId: name,
          provider: 'pi',
          isEnding: true,
        })),
        {
          address: { context: 'c', namespace: 'default', selector: 'app=web,example.com/agent=claude' },
          projectId: 'web',
          provider: 'claude',
        },
      ],
      ['default-db-0', 'done', 'set-0', 'web', 'two-db-0', 'other-name'],
      true,
      8,
    ])
  })

  test.for(['--all', 'a b', 'a=b,c'])('are never asked for by %s', async (label, { ground, expect }) => {
    const { problem } = await refusalOf(ground.pods.labelled(label, {}))
    expect([problem, ground.cluster.calls]).toEqual(['pod_not_found', []])
  })
})

describe.concurrent('kubectl', () => {
  test('is complained of when it is missing, old or broken', async ({ ground: { cluster, pods }, expect }) => {
    const without = createPods({ environment: { PATH: '/nowhere' }, passVariables: [] })
    const problems = [await pods.problems(), await without.problems()]
    cluster.refuse('version', 'broken')
    problems.push(await pods.problems())
    expect(problems).toEqual([
      [],
      [expect.stringContaining('kubectl was not found. Install version 1.30 or newer')],
      ['The version of kubectl could not be read: broken'],
    ])
  })

  test('is missed in a sentence when a pod is needed', async ({ ground: _ground, expect }) => {
    const without = createPods({ environment: { PATH: '/nowhere' }, passVariables: [] })
    const { problem, message } = await refusalOf(without.open({ name: 'web' }, soon()))
    expect([problem, message]).toEqual(['unreachable', expect.stringContaining('Install version 1.30')])
  })
})
