// What each of the five agents finds in a pod, and how a turn ends when the pod is at fault.

import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test as bareTest } from 'vitest'
import { createBackend } from '../../src/backends/registry.js'
import type { AgentEvent, AgentRequest, AgentResult, BackendName } from '../../src/backends/types.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { createPods } from '../../src/kubernetes/pods.js'
import { POD_DIRECTORY, type PodAddress, type PodProblem } from '../../src/kubernetes/types.js'
import { CommandRuntime } from '../../src/runtime/command-runtime.js'
import { AgentScript, START } from '../contract/agent-script.js'
import { agentPath } from '../kit/agents.js'
import { printedAnswer } from '../contract/wire-formats.js'
import { livingProcesses } from '../kit/living-processes.js'
import { type LocalCluster, startLocalCluster } from './local-cluster.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { adapterConfig } from '../kit/adapter-config.js'
import { seeRun } from '../kit/seen-run.js'

const KNOWN = '22222222-2222-4222-8222-222222222222'

interface Turn {
  result: AgentResult
  /** What the agent was called with; empty when it was not. */
  args: string[]
  environment: Record<string, string>
}

interface Ground {
  cluster: LocalCluster
  directory: string
  home: string
  /** One turn of an agent that notes how it was called. */
  turn(name: BackendName, request?: Partial<AgentRequest>, options?: TurnOptions): Promise<Turn>
  commands: CommandRuntime
}

interface TurnOptions {
  /** An agent other than the one that records how it was called. */
  agent?: string
  onEvent?: (event: AgentEvent) => void
}

const MIRROR = agentPath('mirror-agent.sh')
const ADDRESS: PodAddress = { name: 'web' }

const test = bareTest.extend<{ ground: Ground }>({
  ground: async ({ onTestFinished }, use) => {
    const root = temporaryDirectory(onTestFinished)
    const [home, directory, bin] = ['home', 'work', 'bin'].map((name) => join(root, name)) as [string, string, string]
    for (const path of [home, directory, bin]) mkdirSync(path)
    const cluster = await startLocalCluster([{ name: 'web' }])
    onTestFinished(() => cluster.close())
    cluster.container = { PATH: `${bin}:${process.env['PATH']}`, HOME: home }
    const environment = { ...cluster.environment, ANTHROPIC_API_KEY: 'of the gateway', LANG: 'de_DE.UTF-8' }
    // The number of requests to the cluster does not depend on how long a turn takes.
    const pods = createPods({ environment, passVariables: [], limits: { freshMs: 600_000 } })
    const turn: Ground['turn'] = async (name, request = {}, { agent = MIRROR, onEvent = () => {} } = {}) => {
      rmSync(join(bin, name), { force: true })
      symlinkSync(agent, join(bin, name))
      writeFileSync(join(directory, 'answer'), printedAnswer(name, 'Hello'))
      const config = adapterConfig({ cliPath: '/nowhere/on/this/machine', workingDir: '/nowhere' })
      const backend = createBackend(name, config, { environment, pods })
      const whole = { prompt: 'Hello', workingDir: directory, pod: ADDRESS, ...request }
      const { result } = await seeRun(backend.run(whole, new AbortController().signal), onEvent)
      const pairs = notesIn(directory, 'call-environment').map((pair) => [
        pair.split('=', 1)[0],
        pair.replace(/^[^=]*=/, ''),
      ])
      return { result, args: notesIn(directory, 'call-arguments'), environment: Object.fromEntries(pairs) }
    }
    const commands = new CommandRuntime({
      environment,
      passVariables: [],
      now: Date.now,
      pods,
      scrubber: createScrubber(),
    })
    await use({ cluster, directory, home, turn, commands })
  },
})

function notesIn(directory: string, name: string): string[] {
  const path = join(directory, name)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\0').slice(0, -1) : []
}

/** The value after an option, which is a separate argument. */
function valueOf(args: string[], option: string): string | undefined {
  return args[args.indexOf(option) + 1]
}

describe.concurrent('in a pod', () => {
  test("an agent gets the container's environment, and nothing of the gateway's", async ({ ground, expect }) => {
    ground.cluster.container['ANTHROPIC_API_KEY'] = 'of the container'
    ground.cluster.container['DISABLE_AUTOUPDATER'] = '0'
    const { result, environment } = await ground.turn('claude', { environment: { TOKEN: 'of the run' } })
    expect([result.finalOutput, environment]).toEqual([
      'Hello',
      expect.objectContaining({
        ANTHROPIC_API_KEY: 'of the container',
        HOME: ground.home,
        PWD: ground.directory,
        TOKEN: 'of the run',
        DISABLE_AUTOUPDATER: '0',
        IS_SANDBOX: '1',
      }),
    ])
    expect(Object.keys(environment).filter((name) => /^(?:KUBECONFIG|LANG|AETHEEL_(?!POD_RUN_ID))/.test(name))).toEqual(
      [],
    )
  })

  test('Claude Code is told of a directory other than the usual one', async ({ ground, expect }) => {
    const { args } = await ground.turn('claude')
    const { result } = await ground.turn('claude', { workingDir: POD_DIRECTORY })
    expect([args.slice(0, 3), result.failure]).toEqual([
      ['--add-dir', ground.directory, '--output-format'],
      expect.objectContaining({ message: expect.stringContaining(`has no directory ${POD_DIRECTORY}`) }),
    ])
  })

  test('Claude Code is asked for its version once', async ({ ground, expect }) => {
    const prompt = new AgentScript('claude', ground.directory).prompt([{ start: KNOWN }, { answer: 'Hello' }])
    const request = { sessionId: KNOWN, systemPrompt: 'Be brief.', prompt }
    const options = { agent: agentPath('fake-agent.sh') }
    const answers: unknown[] = []
    for (const _ of [1, 2]) answers.push((await ground.turn('claude', request, options)).result.finalOutput)
    const asked = ground.cluster.calls.filter((call) => call.at(-1)?.startsWith('aetheel-run-version-'))
    expect([answers, asked.length, ground.cluster.calls.length]).toEqual([['Hello', 'Hello'], 1, 6])
  })

  test('Gemini CLI has the home of the container, with our files for this run', async ({ ground, expect }) => {
    const theirs = join(ground.home, '.gemini')
    mkdirSync(theirs)
    writeFileSync(join(theirs, 'settings.json'), '{ "theme": "dark" /* mine */ }')
    writeFileSync(join(theirs, 'GEMINI.md'), 'Of the container.')
    writeFileSync(join(theirs, 'odd \\n name'), '')
    const agent = join(ground.home, 'agent')
    writeFileSync(agent, '#!/bin/sh\ncp -RP "$GEMINI_CLI_HOME/.gemini" seen\ncat answer\n', { mode: 0o755 })
    await ground.turn('gemini', { systemPrompt: 'Of the gateway.', maxTurns: 3 }, { agent })
    const seen = join(ground.directory, 'seen')
    const names = readdirSync(seen, { withFileTypes: true }).map((entry) =>
      entry.isSymbolicLink() ? readlinkSync(join(seen, entry.name)) : entry.name,
    )
    expect([
      names.toSorted(),
      JSON.parse(readFileSync(join(seen, 'settings.json'), 'utf8')),
      readFileSync(join(seen, 'GEMINI.md'), 'utf8'),
    ]).toEqual([
      ['GEMINI.md', 'history', 'odd \\n name', 'tmp']
        .map((name) => (name === 'GEMINI.md' ? name : join(theirs, name)))
        .concat('settings.json')
        .toSorted(),
      expect.objectContaining({ theme: 'dark', model: { maxSessionTurns: 3 } }),
      'Of the container.\n\nOf the gateway.',
    ])
  })

  test("OpenCode and Pi have the container's settings in addition to ours", async ({ ground, expect }) => {
    ground.cluster.container['OPENCODE_CONFIG_CONTENT'] = '{ "instructions": ["mine.md"] }'
    mkdirSync(join(ground.home, '.pi/agent'), { recursive: true })
    writeFileSync(join(ground.home, '.pi/agent/APPEND_SYSTEM.md'), 'mine')
    const opencode = await ground.turn('opencode', { systemPrompt: 'Be brief.' })
    const pi = await ground.turn('pi', { systemPrompt: 'Be brief.' })
    expect([
      JSON.parse(opencode.environment['OPENCODE_CONFIG_CONTENT'] ?? ''),
      valueOf(pi.args, '--append-system-prompt'),
    ]).toEqual([
      { instructions: ['mine.md', expect.stringMatching(/^\/tmp\/aetheel-run-.*\/system-prompt\.md$/)] },
      join(ground.home, '.pi/agent/APPEND_SYSTEM.md'),
    ])
  })
})

describe.concurrent('a turn', () => {
  const SPOILS: Array<[PodProblem, boolean, (cluster: LocalCluster) => void]> = [
    ['cli_missing', true, (cluster) => (cluster.container['PATH'] = '/usr/bin:/bin')],
    ['pod_not_found', false, (cluster) => (cluster.pods = [])],
    ['pod_not_running', false, (cluster) => (cluster.pods = [{ name: 'web', waitingFor: 'CrashLoopBackOff' }])],
    [
      'container_not_found',
      true,
      (cluster) => cluster.refuse('exec', 'Error from server (BadRequest): container main is not valid for pod web'),
    ],
    ['forbidden', true, (cluster) => cluster.refuse('get', 'Error from server (Forbidden): no')],
    ['unreachable', false, (cluster) => cluster.refuse('get', 'The connection to the server x was refused')],
  ]
  test.for(SPOILS)('that cannot begin says why: %s', async ([podProblem, isLasting, spoil], { ground, expect }) => {
    spoil(ground.cluster)
    const { result } = await ground.turn('pi')
    expect(result).toEqual({
      isError: true,
      durationMs: expect.any(Number),
      failure: expect.objectContaining({
        reason: 'spawn',
        podProblem,
        message: expect.stringMatching(/\. [A-Z]/),
        ...(isLasting && { isLasting }),
      }),
    })
  })

  test('that loses its pod says so, and may be tried again', async ({ ground, expect }) => {
    const { cluster, directory } = ground
    const prompt = new AgentScript('pi', directory).prompt([START, { say: 'Working' }, { hang: true }])
    const onEvent = ({ type }: AgentEvent): void => {
      if (type !== 'output') return
      cluster.pods = []
      cluster.cut()
    }
    const { result } = await ground.turn('pi', { prompt }, { agent: agentPath('fake-agent.sh'), onEvent })
    expect([result.exitCode, result.failure]).toEqual([
      undefined,
      expect.objectContaining({
        reason: 'exit',
        podProblem: 'pod_gone',
        message: expect.stringContaining('was deleted'),
      }),
    ])
    expect(result.failure?.isLasting).toEqual(undefined)
  })

  test('in a pod needs a gateway that knows kubectl, and a trusted project', async ({ ground, expect }) => {
    const backend = createBackend('pi', adapterConfig(), { environment: {} })
    const without = await seeRun(backend.run({ prompt: 'Hello', pod: ADDRESS }, new AbortController().signal))
    const { result } = await ground.turn('pi', { isUntrusted: true })
    const reasons = [without.result, result].map(({ failure }) => failure?.reason)
    expect([reasons, ground.cluster.calls]).toEqual([['refused', 'refused'], []])
  })
})

describe.concurrent('a variable of a run that a shell reserves', () => {
  const message =
    'The variable UID is reserved by the shell in a pod and cannot be set there. Give the credential another name.'

  test('is refused to an agent in a pod', async ({ ground, expect }) => {
    const { result } = await ground.turn('pi', { environment: { UID: 'secret' } })
    expect([result.failure, ground.cluster.calls]).toEqual([
      expect.objectContaining({ reason: 'refused', message }),
      [],
    ])
  })

  test('is refused to a command in a pod', async ({ ground: { commands, directory }, expect }) => {
    const { exitCode, failure } = await commands.run(
      {
        argv: ['true'],
        directory,
        pod: ADDRESS,
        runId: randomUUID(),
        timeoutMs: 30_000,
        environment: { UID: 'secret' },
      },
      new AbortController().signal,
      () => {},
    )
    expect([exitCode, failure?.message]).toEqual([126, message])
  })
})

describe.concurrent('a command of a project in a pod', () => {
  test('runs there, with its variables and files', async ({ ground, expect }) => {
    const { cluster, commands, directory } = ground
    cluster.container['OWN'] = 'of the container'
    const printed: string[] = []
    const script = 'pwd; echo "$OWN $TOKEN $LANG"; cat "$KEY"; echo no >&2; exit 3'
    const { exitCode, failure } = await commands.run(
      {
        argv: ['sh', '-c', script],
        directory,
        pod: ADDRESS,
        runId: randomUUID(),
        timeoutMs: 30_000,
        environment: { TOKEN: 'of the run' },
        secretFiles: [{ variable: 'KEY', content: 'of the file\n' }],
      },
      new AbortController().signal,
      (event) => void (event.type === 'output' && printed.push(event.content)),
    )
    expect([exitCode, failure, printed.join('').split('\n').toSorted()]).toEqual([
      3,
      undefined,
      ['', directory, 'no', 'of the container of the run ', 'of the file'].toSorted(),
    ])
  })

  test.for([
    ['cli_missing', 127, { argv: ['no-such-command'] }],
    ['cli_missing', 127, { argv: ['./no-such-command'] }],
    ['directory_missing', 126, { directory: '/nowhere' }],
    ['pod_not_found', 126, { pod: { name: 'nowhere' } }],
  ] as const)('that cannot begin says why: %s', async ([podProblem, exitCode, request], { ground, expect }) => {
    const { commands, directory } = ground
    const result = await commands.run(
      { argv: ['true'], directory, pod: ADDRESS, runId: randomUUID(), timeoutMs: 30_000, ...(request as object) },
      new AbortController().signal,
      () => {},
    )
    expect(result).toMatchObject({ isError: true, exitCode, failure: { reason: 'spawn', podProblem } })
  })

  test('is ended when it is cancelled', async ({ ground, expect }) => {
    const { commands, directory } = ground
    const controller = new AbortController()
    const result = await commands.run(
      {
        argv: ['sh', '-c', 'echo working; sleep 1000'],
        directory,
        pod: ADDRESS,
        runId: randomUUID(),
        timeoutMs: 30_000,
      },
      controller.signal,
      ({ type }) => type === 'output' && controller.abort(),
    )
    expect([result.failure?.reason, livingProcesses(directory)]).toEqual(['cancelled', []])
  })
})
