// The script itself, in the shells found in images, with this machine's processes in place of the pod's.

import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, test as bareTest } from 'vitest'
import { canBeSetForRun } from '../../src/core/environment.js'
import { ControlLines } from '../../src/kubernetes/control-lines.js'
import { headerOf, POD_LIMITS } from '../../src/kubernetes/pod-process.js'
import { END_SCRIPT, isShellVariable, LOADER, RUN_SCRIPT } from '../../src/kubernetes/supervisor.js'
import { type PodProcessOptions, podFilesPath } from '../../src/kubernetes/types.js'
import { endNow } from '../kit/living-processes.js'
import { until } from '../kit/waiting.js'
import { SILENT_SHELL } from './silent-shell.js'

/** Each as `sh`, its name in an image. */
const SHELLS = ['dash', 'bash', 'busybox'].filter(
  (shell) => spawnSync(shell, ['-c', 'exit'], { argv0: 'sh' }).error === undefined,
)
const NONCE = 'n0nce'
interface Supervised {
  runId: string
  child: ChildProcessWithoutNullStreams
  stdout: () => Buffer
  stderr: () => string
  records: string[]
  closed: Promise<void>
}

function startShell(
  shell: string,
  name: string,
  container: Record<string, string> = {},
): ChildProcessWithoutNullStreams {
  const env = { PATH: process.env['PATH'], ...container }
  return spawn(shell, ['-c', LOADER, name], { argv0: 'sh', env, detached: true })
}

type Options = Partial<PodProcessOptions> & {
  beatMs?: number
  input?: (text: string) => string
  container?: Record<string, string>
}

function startSupervised(
  shell: string,
  { beatMs = 10_000, input = (text) => text, container = {}, ...options }: Options = {},
): Supervised {
  const runId = options.runId ?? randomUUID()
  const header = headerOf(
    NONCE,
    { environment: container, limits: { ...POD_LIMITS, beatMs } },
    {
      ...SILENT_SHELL,
      args: [],
      ...options,
      runId,
    },
  )
  const child = startShell(shell, `aetheel-run-${runId}`, container)
  const stdout: Buffer[] = []
  let stderr = ''
  const records: string[] = []
  const control = new ControlLines(
    NONCE,
    (words) => records.push(words.join(' ')),
    (rest) => {
      stderr += rest.toString('utf8')
    },
  )
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => control.push(chunk))
  child.stdin.on('error', () => {})
  child.stdin.write(input(`${RUN_SCRIPT}${header}`))
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
  })
  return { runId, child, stdout: () => Buffer.concat(stdout), stderr: () => stderr, records, closed }
}

type Supervise = typeof startSupervised

/** Everything a test supervises is gone when the test ends. */
const test = bareTest.extend<{ supervise: Supervise }>({
  supervise: async ({ task: _task }, use) => {
    const runs: Supervised[] = []
    await use((...args) => {
      const run = startSupervised(...args)
      runs.push(run)
      return run
    })
    for (const run of runs) for (const { pid } of living(run)) endNow(pid)
  },
})

/** The processes of the run and its supervisor: all have its id in their environment. */
function living({ runId }: Supervised): Array<{ pid: number; command: string }> {
  return allProcesses().filter(({ command, variables }) => command.includes(runId) || variables.includes(runId))
}

function allProcesses(): Array<{ pid: number; command: string; variables: string }> {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const [command, variables] = ['cmdline', 'environ'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8'))
      return [{ pid: Number(pid), command: command ?? '', variables: variables ?? '' }]
    } catch {
      return [] // It has ended since it was listed.
    }
  })
}

/** Prints arguments, environment and input, each value followed by a NUL. */
const MIRROR = 'printf "%s\\000" "$@"; printf "\\000"; cat "/proc/$$/environ"; printf "\\000"; cat'

/** Never exits and ignores polite signals, like its children, some of which have lost every trace of their origin. */
const STUBBORN = `
trap '' TERM INT
idle() { env -i sh -c 'while :; do sleep 1; done' "$1"; }
setsid sh -c 'while :; do sleep 1; done' "$1" &
env -i setsid sh -c 'while :; do sleep 1; done' "$1" &
(idle "$1" &)
echo working
while :; do sleep 1; done
`

const text = fc.string({ unit: 'binary', maxLength: 40 }).map((value) => value.replaceAll('\0', ''))
const name = fc
  .stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,10}$/)
  .filter((name) => canBeSetForRun(name) && !isShellVariable(name) && !SHOWN.has(name))
/** The printing shell sets these itself. */
const SHOWN = new Set(['PS1', 'PS2', 'PS4'])
describe('what is sent', () => {
  test.for(SHELLS)('arrives as it was, whatever is in it, in %s', async (shell, { supervise, expect }) => {
    const values = fc.record({
      args: fc.array(text, { maxLength: 8 }),
      environment: fc.dictionary(name, text, { maxKeys: 8 }),
      stdin: fc.string({ unit: 'binary', maxLength: 200 }),
    })
    await fc.assert(
      fc.asyncProperty(values, async ({ args, environment, stdin }) => {
        const run = supervise(shell, { args: ['-c', MIRROR, 'sh', ...args], environment, stdin })
        await run.closed
        const parts = run.stdout().toString('utf8').split('\0')
        const end = args.length === 0 ? 1 : args.length
        const variables = parts.slice(end + 1, parts.indexOf('', end + 1))
        const seen = Object.fromEntries(variables.map((part) => [part.split('=', 1)[0], part]))
        expect([
          args.length === 0 ? [] : parts.slice(0, end),
          Object.keys(environment).map((key) => seen[key]),
          run
            .stdout()
            .subarray(-Buffer.byteLength(stdin) || Infinity)
            .toString('utf8'),
          run.records,
        ]).toEqual([
          args.map((argument) => Buffer.from(argument).toString('utf8')),
          Object.entries(environment).map(([key, value]) => Buffer.from(`${key}=${value}`).toString('utf8')),
          Buffer.from(stdin).toString('utf8'),
          ['ready', 'exit 0'],
        ])
      }),
      { numRuns: shell === SHELLS[0] ? 100 : 10 },
    )
  })
})

function stubborn(shell: string, supervise: Supervise, options: Options = {}): Supervised {
  const runId = randomUUID()
  return supervise(shell, { runId, args: ['-c', STUBBORN, 'sh', runId], ...options })
}

async function works(run: Supervised): Promise<void> {
  await until(() => run.stdout().toString('utf8').includes('working'), 'the agent works')
}

describe.concurrent.each(SHELLS)('a run under %s', (shell) => {
  test('ends with the exit code of the agent, and nothing is left', async ({ supervise, expect }) => {
    const files = [
      { name: 'a/secret', content: 'x' },
      { name: 'link', linkTo: '/etc' },
    ]
    const script = `stat -c %a "$1/a/secret" "$1"; ls "$1/link/passwd"; mkdir "$1/closed"; touch "$1/closed/x" "$1/left"; chmod 500 "$1/closed"; setsid sleep 1000 & exit 7`
    const runId = randomUUID()
    const args = ['-c', script, 'sh', podFilesPath(runId)]
    const run = supervise(shell, { runId, args, files, expects: 'left' })
    await run.closed
    expect([run.records, run.stdout().toString('utf8'), living(run), existsSync(podFilesPath(runId))]).toEqual([
      ['ready', 'there', 'exit 7'],
      `600\n700\n${podFilesPath(runId)}/link/passwd\n`,
      [],
      false,
    ])
  })

  test("has the container's variables unchanged, and none of the script's", async ({ supervise, expect }) => {
    const container = Object.fromEntries(
      ['s', 'l', 'nonce', 'path', 'file', 'id', 'session'].map((name) => [name, `of ${name}`]),
    )
    const run = supervise(shell, {
      args: ['-c', 'cat "/proc/$$/environ"'],
      container,
      environment: { newline: 'own', file: 'mine' },
    })
    await run.closed
    const entries = run.stdout().toString('utf8').split('\0')
    const names = Object.keys({ ...container, newline: '' })
    expect([entries.filter((entry) => names.includes(entry.split('=')[0] ?? '')).toSorted(), run.records]).toEqual([
      [
        'file=mine',
        'id=of id',
        'l=of l',
        'newline=own',
        'nonce=of nonce',
        'path=of path',
        's=of s',
        'session=of session',
      ],
      ['ready', 'exit 0'],
    ])
  })

  test('exits with 128 and the signal that ended the agent, which nobody else reports', async ({
    supervise,
    expect,
  }) => {
    const run = supervise(shell, { args: ['-c', 'echo own words >&2; kill -9 $$'] })
    await run.closed
    expect([run.records, run.stderr()]).toEqual([['ready', 'exit 137'], 'own words\n'])
  })

  test('has no signal ignored or blocked for its agent', async ({ supervise, expect }) => {
    const run = supervise(shell, { executable: 'grep', args: ['-E', 'Sig(Ign|Blk)', '/proc/self/status'] })
    await run.closed
    const masks = run
      .stdout()
      .toString('utf8')
      .match(/[0-9a-f]{16}/g)
    expect(masks).toEqual(['0000000000000000', '0000000000000000'])
  })

  test('is ended by the signal that the agent cleans up best on', async ({ supervise, expect }) => {
    const script = `trap 'echo cleaned; exit 3' INT; echo working; while :; do sleep 0.05; done`
    const run = supervise(shell, { args: ['-c', script], stopSignal: 'SIGINT' })
    await works(run)
    run.child.stdin.write('stop\n')
    await run.closed
    expect([run.stdout().toString('utf8'), run.records, living(run)]).toEqual([
      'working\ncleaned\n',
      ['ready', 'exit 3'],
      [],
    ])
  })

  test.for([
    ['when it is told to', (run: Supervised) => run.child.stdin.write('stop\n'), ['ready', 'exit 137']],
    // Then nobody is there to read it.
    ['when its input ends', (run: Supervised) => run.child.stdin.end(), ['ready']],
    ['when nobody speaks with it any more', () => {}, ['ready', 'exit 137']],
  ] as const)('ends whatever is left of a stubborn agent %s', async ([, end, records], { supervise, expect }) => {
    const run = stubborn(shell, supervise, { beatMs: 1_000 })
    await works(run)
    end(run)
    await run.closed
    expect([run.records, living(run), existsSync(podFilesPath(run.runId))]).toEqual([records, [], false])
  })

  test('continues while somebody talks to it, and answers', async ({ supervise, expect }) => {
    const run = supervise(shell, { args: ['-c', 'sleep 5; echo done'], beatMs: 1_000 })
    const beats = setInterval(() => run.child.stdin.write('beat\n'), 500)
    await run.closed
    clearInterval(beats)
    expect([run.stdout().toString('utf8'), new Set(run.records), run.records.at(-1)]).toEqual([
      'done\n',
      new Set(['ready', 'beat', 'exit 0']),
      'exit 0',
    ])
  })

  test.for([
    ['its input ends', (run: Supervised) => run.child.stdin.end()],
    ['nobody speaks with it', () => {}],
  ] as const)('leaves nothing behind when nobody reads its output and %s', async ([, end], { supervise, expect }) => {
    const script = 'echo working; while :; do echo flood of words >&2; done'
    const run = supervise(shell, { args: ['-c', script], beatMs: 1_000 })
    run.child.stderr.pause()
    await works(run)
    const exited = once(run.child, 'exit')
    end(run)
    await exited
    await until(() => living(run).length === 0, 'nothing is left')
    expect(existsSync(podFilesPath(run.runId))).toEqual(false)
  })

  test('is ended from outside when its supervisor was killed', async ({ supervise, expect }) => {
    const run = stubborn(shell, supervise)
    await works(run)
    run.child.kill('SIGKILL')
    const ender = startShell(shell, 'aetheel-end')
    let stderr = ''
    ender.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')))
    ender.stdin.end(`${END_SCRIPT}${NONCE}\n${run.runId}\n`)
    await new Promise((resolve) => {
      ender.once('close', resolve)
    })
    expect([stderr, living(run), existsSync(podFilesPath(run.runId))]).toEqual([`\x1e${NONCE} ended\x1e`, [], false])
  })

  test.for([
    ['directory', { directory: '/nowhere' }],
    ['directory', { directory: '/etc/passwd' }],
    ['executable', { executable: 'no-such-agent' }],
    ['executable', { executable: '/etc/passwd' }],
    ['executable', { executable: 'etc' }],
    [
      'files',
      {
        files: [
          { name: 'a', content: '' },
          { name: 'a/b', content: '' },
        ],
      },
    ],
  ] as const)('says what is missing: %s', async ([problem, options], { supervise, expect }) => {
    const run = supervise(shell, options as Options)
    await run.closed
    expect([run.records, existsSync(podFilesPath(run.runId))]).toEqual([[`problem ${problem}`], false])
  })

  test('does not begin if its input breaks off anywhere', async ({ supervise, expect }) => {
    const whole = supervise(shell, { args: ['-c', 'echo began'] })
    await whole.closed
    const runs = [0.2, 0.5, 0.9, 0.97, 0.999].map((part) => {
      const run = supervise(shell, {
        args: ['-c', 'echo began'],
        input: (text) => text.slice(0, Math.floor((text.length - 3) * part)),
      })
      run.child.stdin.end()
      return run
    })
    await Promise.all(runs.map(({ closed }) => closed))
    const seen = [whole, ...runs].map((run) => [run.stdout().toString('utf8'), existsSync(podFilesPath(run.runId))])
    expect(seen).toEqual([['began\n', false], ...runs.map(() => ['', false])])
  })
})

test('a long prompt arrives whole', async ({ supervise, expect }) => {
  const stdin = `${'é😀\\\n'.repeat(30_000)}end`
  const run = supervise('dash', { executable: 'cat', stdin })
  await run.closed
  expect(run.stdout().toString('utf8') === stdin).toEqual(true)
})
