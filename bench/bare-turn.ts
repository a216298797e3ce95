/** The bare CLI, started as a backend starts it: same arguments, environment, input and directory. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Agent } from '../conformance/agents.js'
import type { Sandbox } from '../conformance/sandbox.js'
import type { BackendDependencies } from '../src/backends/engine/cli-backend.js'
import { createBackend } from '../src/backends/registry.js'
import type { AgentBackend, AgentRequest } from '../src/backends/types.js'
import { createLog } from '../src/log.js'
import { BEGINNING, ENDING, PROMPT, SYSTEM_PROMPT } from './live/script.js'

const TURN_TIMEOUT_MS = 60_000

export const REQUEST: AgentRequest = { prompt: PROMPT, systemPrompt: SYSTEM_PROMPT }

/** How the backend started the CLI. */
export interface Invocation {
  args: string[]
  environment: Record<string, string>
  cwd: string
  stdin: string
  /** The run directory, and the copy of its contents. */
  directory: string
  files: string
}

interface BareTimes {
  firstTextMs: number
  totalMs: number
}

/** Measured until its exit. */
export async function timeBare(cliPath: string, invocation: Invocation, signal: AbortSignal): Promise<BareTimes> {
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
    let said = ''
    let firstTextMs: number | undefined
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      if (said.includes(BEGINNING)) firstTextMs ??= performance.now() - startedAt
    })
    child.stdin.end(stdin)
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    const totalMs = performance.now() - startedAt
    assert.equal(exitCode, 0, `the bare ${cliPath} exits with 0`)
    assert.ok(firstTextMs !== undefined && said.includes(ENDING), `the bare ${cliPath} prints the answer`)
    return { firstTextMs, totalMs }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

export async function recordInvocation(agent: Agent, sandbox: Sandbox, signal: AbortSignal): Promise<Invocation> {
  const recording = await mkdtemp(join(tmpdir(), 'recording-'))
  const environment = { ...sandbox.environment, BENCH_RECORDING: recording, BENCH_RUN_DIRECTORIES: tmpdir() }
  const recorder = backendFor(agent, sandbox, join(import.meta.dirname, 'record-invocation.mjs'), {
    environment,
    passVariables: ['BENCH_RECORDING', 'BENCH_RUN_DIRECTORIES'],
  })
  // The recorder does not answer, so the outcome of the run is meaningless; only what it recorded counts.
  for await (const event of recorder.run(REQUEST, signal)) if (event.type === 'complete') break
  const recorded = JSON.parse(await readFile(join(recording, 'invocation.json'), 'utf8')) as Omit<Invocation, 'files'>
  return { ...recorded, files: join(recording, 'files') }
}

export function backendFor(
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
