// Runs one real turn of an agent to see whether it answers.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentFailure, AgentRequest, AgentResult, BackendName } from '../../backends/types.js'
import { oneLine } from '../../core/one-line.js'
import { EventScrubber, type Scrubber } from '../../credentials/scrubber.js'
import { localTime } from '../../core/local-time.js'
import { adviceToLogIn, type ProbedAgent } from '../probed-agents.js'
import type { Finding } from './findings.js'

export interface LiveOptions {
  /** The credentials of the turn, and whether it asks before tools. */
  request: Pick<AgentRequest, 'environment' | 'secretFiles' | 'approve'>
  scrubber: Scrubber
  signal: AbortSignal
  timeoutMs?: number
  now: () => number
}

const PROMPT = 'Reply with the single word OK. Use no tool.'
const TIMEOUT_MS = 60_000
const MAX_CHARACTERS = 300

/** One harmless tool: the descriptions of all tools are most of what a short turn costs. Codex cannot be restricted. */
const TOOLS: Partial<Record<BackendName, string[]>> = {
  claude: ['Read'],
  gemini: ['read_file'],
  opencode: ['read'],
  pi: ['read'],
}

/** Contract: a failed turn is a finding. No process and no file of the turn is left, except the agent's session. */
export async function liveFinding({ backend, probe }: ProbedAgent, options: LiveOptions): Promise<Finding> {
  const { request, scrubber, signal, timeoutMs = TIMEOUT_MS, now } = options
  const name = backend.name()
  const workingDir = mkdtempSync(join(tmpdir(), 'aetheel-doctor-'))
  const events = new EventScrubber(scrubber)
  let { model } = probe
  let result: AgentResult | undefined
  try {
    const turn = {
      ...request,
      prompt: PROMPT,
      workingDir,
      allowedTools: TOOLS[name] ?? [],
      maxTurns: 1,
      timeoutMs,
      idleTimeoutMs: 0,
    }
    for await (const raw of backend.run(turn, signal)) {
      for (const event of events.scrub(raw)) {
        if (event.type === 'started') model = event.model ?? model
        if (event.type === 'complete') result = event.result
      }
    }
  } finally {
    rmSync(workingDir, { recursive: true, force: true })
  }
  if (result === undefined) throw new Error('A run ended without its complete event')
  const { failure, durationMs } = result
  // It did answer, with a tool call that the turn limit forbids.
  if (!failure || failure.reason === 'max_turns') {
    const by = model === undefined ? '' : ` by ${model}`
    return { mark: '✓', text: `${name}: answered${by} in ${(durationMs / 1000).toFixed(1)} s`, details: [] }
  }
  return { mark: '✗', ...explain(failure, { name, model, login: probe.login, now: now() }) }
}

interface Context {
  name: BackendName
  model: string | undefined
  login: ProbedAgent['probe']['login']
  now: number
}

function explain(failure: AgentFailure, { name, model, login, now }: Context): Omit<Finding, 'mark'> {
  const words = oneLine(failure.message.split('\n').find((line) => line.trim() !== '') ?? '', MAX_CHARACTERS)
  const fix = login ? [adviceToLogIn(login)] : []
  switch (failure.reason) {
    case 'auth':
      if (login?.state === 'logged-out' || NOT_LOGGED_IN.test(failure.message)) {
        return { text: `${name}: not logged in`, details: [words, ...fix] }
      }
      return { text: `${name}: its key or login was refused`, details: [words, ...fix] }
    case 'rate_limit': {
      const { retryAt = 0 } = failure
      const until = retryAt > now ? ` until ${localTime(retryAt, now)}` : ''
      return { text: `${name}: its quota is used up${until}`, details: [words, 'Wait, or choose another agent.'] }
    }
    case 'model_unknown': {
      const which = model === undefined ? 'its model' : `the model ${model}`
      const advice = "Set another with BACKEND_MODEL or in the agent's settings, or log in to an account that has it."
      return { text: `${name}: ${which} is unknown, or not available to this login`, details: [words, advice] }
    }
    case 'timeout':
      return { text: `${name}: no answer in time`, details: [words, "Check the gateway's network and proxy."] }
    default:
      return { text: `${name}: ${words}`, details: [] }
  }
}

/** What CLIs print without calling their model. */
const NOT_LOGGED_IN =
  /not logged in|please run \/login|no api key found|missing environment variable|set an auth method|manual authorization is required|missing or not configured|must specify the \w+ environment variable/i
