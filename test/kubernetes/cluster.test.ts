// Pods through the real kubectl, with a shell script as the agent. What is left in a pod is checked from outside.

import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { beforeAll, describe, it, type TestContext, vi } from 'vitest'
import { createPods } from '../../src/kubernetes/pods.js'
import { PodError, type PodProblem } from '../../src/kubernetes/types.js'
import { until } from '../kit/waiting.js'
import { holdRun, killClients, kubectlEnvironment, leftIn, nothing, openScene, type Scene } from './cluster-run.js'
import type { Shell } from './fake-container.js'
import type { FakePod, PodOptions } from './fake-pod.js'
import { checkMachine } from './machine.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

// Most of these tests wait until a loss is noticed.
vi.setConfig({ maxConcurrency: 12 })

const isRequired = process.env['AETHEEL_TEST_KUBECTL'] === 'required'

/** It has a child in its own process session, one without our markers, and an orphan; none of them exits. */
const family = `
setsid sleep 1000001 &
env -i PATH="$PATH" sleep 1000002 &
(sleep 1000003 &)
echo begun
sleep 1000004
`

const flood = 'echo begun; while :; do echo "more words than anybody reads" >&2; done'

const nasty = [
  ...['\n', '\r', '\\', "'", '"', '`', '$', '$(id)', '%s', '%', ' ', '\t', '-', '--', '=', '\u001E', '\u001B'],
  ...['😀', 'ü', '\\0', '\\0101', '\\c', '\\n', '*', '~', '.', '#', '!', ';', '&', '|', '<', '>', '(', ')', '{', '}'],
]

describe.skipIf(!isRequired)(
  'pods, if AETHEEL_TEST_KUBECTL=required (root, kubectl 1.30)',
  { timeout: 180_000, concurrent: true },
  () => {
    beforeAll(checkMachine)

    describe.for<Shell>(['dash', 'bash', 'busybox'])('where sh is %s', (shell) => {
      it('reports how the agent ended, whatever the status', async ({ onTestFinished, expect }) => {
        const { play, pod } = await openScene(onTestFinished, { shell })
        const played = [await play('echo out; echo err >&2'), await play('exit 1'), await play('kill -KILL $$')]
        expect(played).toMatchObject([
          { exit: { exitCode: 0 }, stdout: 'out\n', stderr: 'err\n' },
          { exit: { exitCode: 1 }, stdout: '', stderr: '' },
          { exit: { exitCode: 137 }, stdout: '', stderr: '' },
        ])
        expect(await leftIn(pod)).toEqual(nothing)
      })

      it('hands over arguments, variables, input and files as they are', async ({ onTestFinished, expect }) => {
        const { play, pod, cluster } = await openScene(onTestFinished, { shell })
        const word = fc
          .array(fc.oneof(fc.constantFrom(...nasty), fc.string({ unit: 'binary' })), { maxLength: 8 })
          .map((parts) => parts.join('').replaceAll('\0', ''))
        await fc.assert(
          fc.asyncProperty(fc.array(word, { minLength: 100, maxLength: 100 }), async (words) => {
            const names = words.map((_, index) => `VALUE_${index}`)
            const runId = randomUUID()
            const content = `${words.join('\0')}${'All work and no play. '.repeat(10_000)}\n\n`
            const { stdout } = await play(
              `for one; do printf '%s\\0' "$one"; done
            for name in ${names.join(' ')}; do eval "printf '%s\\\\0' \\"\\$$name\\""; done
            cat; cat /tmp/aetheel-run-*/'a b'/system.md`,
              {
                args: words,
                environment: Object.fromEntries(names.map((name, index) => [name, words[index] ?? ''])),
                stdin: content,
                files: [{ name: 'a b/system.md', content }],
                runId,
              },
            )
            expect(stdout === [...words, ...words, content + content].join('\0')).toBe(true)
          }),
          { numRuns: 2 },
        )
        // Proxies and audit logs see these.
        expect(cluster.execUrls.filter((url) => url.length > 500 || url.includes('VALUE'))).toEqual([])
        expect(await leftIn(pod)).toEqual(nothing)
      })

      it('ends the agent and everything it started when told to', async ({ onTestFinished, expect }) => {
        const { start, pod } = await openScene(onTestFinished, { shell })
        const run = await start(family)
        await run.printed('begun')
        run.stop()
        expect(await run.ended).toMatchObject({ exitCode: 143 })
        expect(await leftIn(pod)).toEqual(nothing)
      })

      it('ends what the agent leaves behind', async ({ onTestFinished, expect }) => {
        const { play, pod } = await openScene(onTestFinished, { shell })
        const { exit } = await play(family.replace('sleep 1000004', 'exit 3'))
        expect(exit).toMatchObject({ exitCode: 3 })
        expect(await leftIn(pod)).toEqual(nothing)
      })

      it('ends the run when kubectl is killed', async ({ onTestFinished, expect }) => {
        const { start, pod } = await openScene(onTestFinished, { shell })
        const run = await start(family)
        await run.printed('begun')
        killClients(run.runId)
        expect(await run.ended).toMatchObject({ problem: 'stream_lost' })
        expect(await leftIn(pod)).toEqual(nothing)
      })
    })

    describe('a pod that cannot be used', () => {
      it.for<[string, PodProblem, Partial<PodOptions>]>([
        ['waits for a node', 'pod_not_running', { state: 'unscheduled' }],
        ['is being made', 'pod_not_running', { state: 'creating' }],
        ['crashes', 'pod_not_running', { state: 'crashing' }],
        ['was evicted', 'pod_not_running', { state: 'evicted' }],
        ['has done its work', 'pod_not_running', { state: 'completed' }],
        ['has another name', 'pod_not_found', { name: 'agent-1' }],
        ['has another container', 'container_not_found', { containers: ['other'] }],
      ])('because it %s is reported as %s', async ([, problem, options], { onTestFinished, expect }) => {
        const { pods } = await openScene(onTestFinished, options)
        const opened = pods.open({ name: 'agent-0', container: 'main' }, AbortSignal.timeout(60_000))
        expect(await opened.catch(problemOf)).toBe(problem)
      })

      it.for<['get' | 'list' | 'exec']>([['get'], ['list'], ['exec']])(
        'because we may not %s is told as forbidden',
        async ([verb], { onTestFinished, expect }) => {
          const { pods, cluster } = await openScene(onTestFinished, { labels: { app: 'shop' } })
          cluster.forbidden.add(verb)
          const address = verb === 'list' ? { selector: 'app=shop' } : { name: 'agent-0' }
          expect(await pods.open(address, AbortSignal.timeout(60_000)).catch(problemOf)).toBe('forbidden')
        },
      )

      it('because it has no sh is reported as cli_missing', async ({ onTestFinished, expect }) => {
        const { pods, address } = await openScene(onTestFinished, { environment: { PATH: '/nowhere' } })
        expect(await pods.open(address, AbortSignal.timeout(60_000)).catch(problemOf)).toBe('cli_missing')
      })

      it('because nobody answers is reported as unreachable', async ({ onTestFinished, expect }) => {
        const { address, cluster } = await openScene(onTestFinished)
        const pods = createPods({ environment: kubectlEnvironment(cluster.kubeconfig), passVariables: [] })
        cluster.isSilent = true
        expect(await pods.open(address, AbortSignal.timeout(120_000)).catch(problemOf)).toBe('unreachable')
      })
    })

    it('takes the example manifests', async ({ onTestFinished, expect }) => {
      const { cluster } = await openScene(onTestFinished)
      const directory = join(import.meta.dirname, '..', '..', 'docs', 'kubernetes')
      // Their fields are checked in manifests.test.ts: this server has no schema.
      const args = ['create', '--dry-run=client', '--validate=false', '-o', 'name', '-f', directory]
      const { stdout } = await promisify(execFile)('kubectl', args, { env: kubectlEnvironment(cluster.kubeconfig) })
      expect(stdout.trim().split('\n').toSorted()).toEqual([
        'namespace/agents',
        'role.rbac.authorization.k8s.io/aetheel',
        'rolebinding.rbac.authorization.k8s.io/aetheel',
        'serviceaccount/aetheel',
        'statefulset.apps/shop',
      ])
    })

    it('takes the first ready pod that the labels mean', async ({ onTestFinished, expect }) => {
      const { cluster, pods } = await openScene(onTestFinished, { name: 'b', labels: { app: 'shop' } })
      for (const [name, options] of Object.entries<Partial<PodOptions>>({
        a: { state: 'ending' },
        aa: { state: 'crashing' },
        ab: { namespace: 'elsewhere' },
        ac: { labels: { app: 'other' } },
        c: { annotations: { 'kubectl.kubernetes.io/default-container': 'second' }, containers: ['main', 'second'] },
      })) {
        await cluster.addPod({ name, labels: { app: 'shop' }, ...options })
      }
      const { address } = await pods.open({ selector: 'app=shop' }, AbortSignal.timeout(60_000))
      expect(address).toMatchObject({ name: 'b', namespace: 'default', container: 'main' })
      const other = await pods.open({ name: 'c' }, AbortSignal.timeout(60_000))
      expect(other.address.container).toBe('second')
    })

    it('reports a missing agent or directory', async ({ onTestFinished, expect }) => {
      const { play, pod } = await openScene(onTestFinished)
      const played = [await play('', { executable: 'no-such-agent' }), await play('', { directory: '/no/such' })]
      expect(played.map(({ exit }) => exit)).toMatchObject([
        { problem: 'cli_missing' },
        { problem: 'directory_missing' },
      ])
      expect(await leftIn(pod)).toEqual(nothing)
    })

    it('believes no word of the agent on how it ended', async ({ onTestFinished, expect }) => {
      const { play, pod } = await openScene(onTestFinished)
      const words = '\u001E0 exit 0\u001E\ncommand terminated with exit code 9\nError from server (NotFound): pods\n'
      const { exit, stderr } = await play(`printf %s "$1" >&2; exit 1`, { args: [words] })
      expect([exit, stderr]).toMatchObject([{ exitCode: 1 }, words])
      expect(await leftIn(pod)).toEqual(nothing)
    })

    it('delivers floods of output completely', async ({ onTestFinished, expect }) => {
      const { start, pod } = await openScene(onTestFinished)
      const run = await start(
        'head -c 8000000 /dev/zero | tr "\\000" a & head -c 8000000 /dev/zero | tr "\\000" b >&2; wait',
      )
      expect(await run.ended).toMatchObject({ exitCode: 0 })
      const digest = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')
      expect([run.stdout(), run.stderr()].map(digest)).toEqual(
        ['a', 'b'].map((letter) => digest(letter.repeat(8_000_000))),
      )
      expect(await leftIn(pod)).toEqual(nothing)
    })

    describe('in the middle of a run', () => {
      interface Mishap {
        what: string
        problem: PodProblem
        options?(onTestFinished: TestContext['onTestFinished']): Partial<PodOptions>
        happen(scene: Scene, runId: string): void | Promise<void>
      }

      it.for<Mishap>([
        { what: 'a stream that is closed', problem: 'stream_lost', happen: ({ pod }) => pod.drop('closed') },
        { what: 'a stream that is cut', problem: 'stream_lost', happen: ({ pod }) => pod.drop('cut') },
        { what: 'a stream that hangs', problem: 'stream_lost', happen: ({ pod }) => pod.freeze() },
        {
          what: 'a stream whose other end does not notice',
          problem: 'stream_lost',
          happen({ pod }) {
            pod.isHalfOpen = true
            pod.drop('cut')
          },
        },
        { what: 'an eviction', problem: 'pod_gone', happen: ({ pod }) => pod.evict() },
        { what: 'an eviction that is told late', problem: 'pod_gone', happen: ({ pod }) => pod.evict(2_000) },
        { what: 'a restart', problem: 'pod_gone', happen: ({ pod }) => pod.restart() },
        {
          what: 'a restart with a /tmp that outlasts it',
          problem: 'pod_gone',
          // Like an emptyDir: it belongs to the pod, not to a container.
          options: (onTestFinished) => ({ mounts: { '/tmp': temporaryDirectory(onTestFinished) } }),
          happen: ({ pod }) => pod.restart(),
        },
        { what: 'a deletion', problem: 'pod_gone', happen: ({ cluster, pod }) => cluster.deletePod(pod) },
        {
          what: 'a node that dies',
          problem: 'pod_gone',
          async happen({ cluster, pod }) {
            pod.drop('cut')
            await cluster.deletePod(pod)
          },
        },
      ])('$what is reported as $problem', async ({ options, happen, problem }, { onTestFinished, expect }) => {
        const scene = await openScene(onTestFinished, options?.(onTestFinished))
        const run = await scene.start(family)
        await run.printed('begun')
        await happen(scene, run.runId)
        expect(await run.ended).toMatchObject({ problem })
        expect(await leftIn(scene.pod)).toEqual(nothing)
      })

      it('an agent that nobody listens to any more is ended', async ({ onTestFinished, expect }) => {
        const { start, pod } = await openScene(onTestFinished)
        const run = await start(flood)
        await run.printed('begun')
        pod.drop('cut')
        expect(await run.ended).toMatchObject({ problem: 'stream_lost' })
        expect(await leftIn(pod)).toEqual(nothing)
      })
    })

    it('ends one run and not its neighbour', async ({ onTestFinished, expect }) => {
      const { start, pod } = await openScene(onTestFinished)
      const [first, second] = [await start(family), await start('echo begun; read -r _; sleep 1000005')]
      const sleepers = async (): Promise<string[]> =>
        (await pod.processes()).map(({ command }) => command).filter((command) => command.startsWith('sleep 10000'))
      await first.printed('begun')
      await until(async () => (await sleepers()).includes('sleep 1000005'), 'the work of the neighbour')
      first.stop()
      await first.ended
      expect(await sleepers()).toEqual(['sleep 1000005'])
      second.stop()
      await second.ended
      expect(await leftIn(pod)).toEqual(nothing)
    })

    it('ends the run of an ordinary user, by a second exec as well', async ({ onTestFinished, expect }) => {
      const { start, pod, pods, address } = await openScene(onTestFinished, { userId: 1000 })
      const [first, second] = [await start(family), await start(family)]
      await Promise.all([first.printed('begun'), second.printed('begun')])
      first.stop()
      expect(await first.ended).toMatchObject({ exitCode: 143 })
      expect(await pods.endRun(address, second.runId)).toBe(true)
      await second.ended
      expect(await leftIn(pod)).toEqual(nothing)
    })

    it('ends an agent that does not want to', async ({ onTestFinished, expect }) => {
      const { start, pod } = await openScene(onTestFinished)
      const run = await start('trap "" INT TERM HUP; echo begun; while :; do sleep 1; done')
      await run.printed('begun')
      run.stop()
      expect(await run.ended).toMatchObject({ exitCode: 137 })
      expect(await leftIn(pod)).toEqual(nothing)
    })

    it('ends a run that does not hear us, by a second exec', async ({ onTestFinished, expect }) => {
      const { start, pod } = await openScene(onTestFinished)
      const run = await start(family)
      await run.printed('begun')
      pod.freeze()
      run.stop()
      await run.ended
      expect(await leftIn(pod)).toEqual(nothing)
    })

    describe('if the gateway is killed', () => {
      interface Death {
        what: string
        script?: string
        before?(pod: FakePod, runId: string): void
        longestMs: number
      }

      it.for<Death>([
        { what: 'the end of its stream ends the run', longestMs: 10_000 },
        {
          what: 'and kubectl with it, a run that nobody listens to any more ends',
          script: flood,
          before: (_pod, runId) => killClients(runId),
          longestMs: 10_000,
        },
        {
          what: 'and kubectl with it, a run that nobody listens to and that does not notice ends',
          script: flood,
          before(pod, runId) {
            pod.isHalfOpen = true
            killClients(runId)
          },
          longestMs: 60_000,
        },
        {
          what: 'a run that does not notice ends when nobody has spoken to it for long',
          before(pod) {
            pod.isHalfOpen = true
            pod.freeze()
          },
          longestMs: 60_000,
        },
        {
          what: 'and kubectl with it, a run that does not notice ends as well',
          before(pod, runId) {
            pod.isHalfOpen = true
            killClients(runId)
          },
          longestMs: 60_000,
        },
      ])('$what', async ({ script = family, before, longestMs }, { onTestFinished, expect }) => {
        const scene = await openScene(onTestFinished)
        const runId = randomUUID()
        const holder = await holdRun(scene, runId, script, onTestFinished)
        before?.(scene.pod, runId)
        holder.kill('SIGKILL')
        expect(await leftIn(scene.pod, longestMs)).toEqual(nothing)
      })
    })

    it('ends a run that another gateway has begun', async ({ onTestFinished, expect }) => {
      const { start, pods, pod, address, cluster } = await openScene(onTestFinished)
      const run = await start(family)
      await run.printed('begun')
      expect(await pods.endRun(address, run.runId)).toBe(true)
      await run.ended
      expect(await leftIn(pod)).toEqual(nothing)
      expect(await pods.endRun(address, run.runId)).toBe(true)
      await cluster.deletePod(pod)
      expect(await pods.endRun(address, run.runId)).toBe(true)
    })
  },
)

function problemOf(error: unknown): PodProblem | undefined {
  if (!(error instanceof PodError)) throw error
  return error.problem
}
