/**
 * What `run()` adds to a turn of the real CLI: the same arguments, environment, input and directory once through the
 * backend and once bare, turn about, against a model that answers at once.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agents, type Agent } from '../conformance/agents.js'
import { findPinned } from '../conformance/installations.js'
import { createSandbox, type Sandbox } from '../conformance/sandbox.js'
import { startScriptedModel } from '../conformance/scripted-model.js'
import type { BackendDependencies } from '../src/backends/backend-dependencies.js'
import { createBackend } from '../src/backends/registry.js'
import type { AgentBackend, AgentRequest } from '../src/backends/types.js'
import { createLog } from '../src/log.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'

const RATIO_GOAL = 1.05
const ADDED_GOAL_MS = 20
const WARM_UPS = 2
const TURN_TIMEOUT_MS = 60_000

const answer = 'Something, said by the scripted model.'
const request: AgentRequest = { prompt: 'Please say something.', systemPrompt: 'Answer in one sentence.' }

/** How the backend started the CLI. */
interface Invocation {
  args: string[]
  environment: Record<string, string>
  cwd: string
  stdin: string
  /** The private directory of the run, and where a copy of what was in it is. */
  directory: string
  files: string
}

export async function measureColdTurns(options: BenchOptions): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (const agent of agents) measurements.push(...(await measureAgent(agent, options)))
  return measurements
}

async function measureAgent(agent: Agent, options: BenchOptions): Promise<Measurement[]> {
  const installation = await findPinned(agent)
  const model = await startScriptedModel(() => ({ type: 'text', deltas: [answer] }))
  const sandbox = await createSandbox(agent, model.url, installation.path)
  try {
    const backend = backendFor(agent, sandbox, installation.cliPath)
    const invocation = await recordInvocation(agent, sandbox, options.signal)
    const sides = {
      run: () => timeRun(backend, options.signal),
      bare: () => timeBare(installation.cliPath, invocation, options.signal),
    }
    return await compare(agent, sides, options)
  } finally {
    await sandbox.remove()
    await model.close()
  }
}

async function compare(
  { name }: Agent,
  sides: Record<'run' | 'bare', () => Promise<number>>,
  { pairs, progress }: BenchOptions,
): Promise<Measurement[]> {
  const times = { run: new Array<number>(), bare: new Array<number>() }
  for (let pair = -WARM_UPS; pair < pairs; pair += 1) {
    for (const side of pair % 2 === 0 ? (['run', 'bare'] as const) : (['bare', 'run'] as const)) {
      const time = await sides[side]()
      if (pair >= 0) times[side].push(time)
    }
  }
  const [run, bare] = [lowerQuartile(times.run), lowerQuartile(times.bare)]
  progress(`cold turn of ${name}: bare ${bare.toFixed(0)} ms, run() ${run.toFixed(0)} ms, ${pairs} pairs`)
  const allowedMs = Math.max(ADDED_GOAL_MS, bare * (RATIO_GOAL - 1))
  return [
    atMost(`cold-turn.${name}.ratio`, run / bare, 1 + allowedMs / bare, 'run()/bare'),
    atMost(`cold-turn.${name}.added`, run - bare, allowedMs, 'ms'),
  ]
}

/** To the end of the iteration, when everything of the run is gone. */
async function timeRun(backend: AgentBackend, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted()
  const startedAt = performance.now()
  let finalOutput: string | undefined
  for await (const event of backend.run(request, signal)) {
    if (event.type === 'complete') finalOutput = event.result.finalOutput ?? event.result.failure?.message
  }
  const duration = performance.now() - startedAt
  signal.throwIfAborted()
  assert.equal(finalOutput, answer, `the answer of ${backend.name()}`)
  return duration
}

async function timeBare(cliPath: string, invocation: Invocation, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted()
  const { args, cwd, environment, directory, files, stdin } = invocation
  await cp(files, directory, { recursive: true, verbatimSymlinks: true })
  try {
    const startedAt = performance.now()
    const child = spawn(cliPath, args, {
      cwd,
      env: environment,
      stdio: ['pipe', 'pipe', 'ignore'],
      signal,
      timeout: TURN_TIMEOUT_MS,
    })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stdin.end(stdin)
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    const duration = performance.now() - startedAt
    assert.equal(exitCode, 0, `${cliPath} alone exits with 0`)
    assert.ok(Buffer.concat(chunks).includes(answer), `${cliPath} alone prints the answer`)
    return duration
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function recordInvocation(agent: Agent, sandbox: Sandbox, signal: AbortSignal): Promise<Invocation> {
  const recording = await mkdtemp(join(tmpdir(), 'recording-'))
  const environment = { ...sandbox.environment, BENCH_RECORDING: recording, BENCH_RUN_DIRECTORIES: tmpdir() }
  const recorder = backendFor(agent, sandbox, join(import.meta.dirname, 'record-invocation.mjs'), {
    environment,
    passVariables: ['BENCH_RECORDING', 'BENCH_RUN_DIRECTORIES'],
  })
  // The recorder gives no answer, so how the run ended says nothing; what it wrote does.
  for await (const event of recorder.run(request, signal)) if (event.type === 'complete') break
  const recorded = JSON.parse(await readFile(join(recording, 'invocation.json'), 'utf8')) as Omit<Invocation, 'files'>
  return { ...recorded, files: join(recording, 'files') }
}

function backendFor(
  agent: Agent,
  sandbox: Sandbox,
  cliPath: string,
  dependencies: Partial<BackendDependencies> = {},
): AgentBackend {
  return createBackend(
    agent.name,
    {
      cliPath,
      workingDir: sandbox.workspace,
      queryTimeoutMs: TURN_TIMEOUT_MS,
      allowedTools: [],
      maxTurns: 25,
      model: agent.model,
    },
    { environment: sandbox.environment, log: createLog({ level: 'silent' }), ...dependencies },
  )
}
