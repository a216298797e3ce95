import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createBackend } from '../../src/backends/registry.js'
import { type AgentFailure, type AgentRequest, BACKEND_NAMES, type FailureReason } from '../../src/backends/types.js'
import type { PodProblem } from '../../src/kubernetes/types.js'
import { explainFailure } from '../../src/runtime/explain-failure.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { adapterConfig } from '../kit/adapter-config.js'
import { seeRun } from '../kit/seen-run.js'

const NOW = Date.UTC(2026, 10, 16, 12, 30)
const MINUTE_MS = 60_000

/** What a person can do about each. */
const NEXT_STEPS: Record<FailureReason, RegExp> = {
  auth: /run ".+" there.*, or set .+ for the gateway\. Then try again\./,
  rate_limit: /Try again later, or choose another agent with \/backend\./,
  model_unknown: /Choose another with \/model, or go back to the default with \/model default\./,
  prompt_too_long: /Start a fresh session with \/new, .*, or send less at once\./,
  timeout: /Ask for a smaller step\./,
  max_turns: /the limit for one message\./,
  refused: /Rephrase it, start a fresh session with \/new, or choose another model or agent/,
  spawn: /Run "aetheel doctor --agent \w+" there to see what is missing/,
  exit: /try again\. If it fails again, start a fresh session with \/new/,
  no_result: /Check what it already did, then try again\./,
  session_lost: /Your next message starts a fresh one, which remembers nothing from before\./,
  cancelled: /Send the message again/,
}

const REASONS = Object.keys(NEXT_STEPS) as FailureReason[]

describe('every failure of every agent', () => {
  it.each(BACKEND_NAMES.flatMap((agent) => REASONS.map((reason) => [agent, reason] as const)))(
    '%s, %s: says who, and what to do next',
    (agent, reason) => {
      const text = explain(reason, {}, agent)
      expect([text.includes(agent), NEXT_STEPS[reason].test(text)]).toEqual([true, true])
    },
  )
})

describe('a login that is missing', () => {
  it.each([
    ['claude', 'run "claude auth login" there, or set ANTHROPIC_API_KEY for the gateway'],
    ['codex', 'run "codex login" there, or set CODEX_API_KEY and AGENT_MODE=oneshot for the gateway'],
    ['gemini', 'run "aetheel credentials set GEMINI_API_KEY" there, or set GEMINI_API_KEY for the gateway'],
    ['opencode', 'run "opencode auth login" there, or set the key of its model provider for the gateway'],
    ['pi', 'run "pi" there and type /login, or set the key of its model provider for the gateway'],
    ['another', 'log in as its documentation describes'],
  ])('of %s is explained with its own commands', (agent, advice) => {
    expect(explain('auth', { message: 'Not logged in' }, agent)).toEqual(
      `${agent} is not logged in where the gateway runs, or its key was rejected. ` +
        `To fix this, ${advice}. Then try again.\n\nIt said: Not logged in`,
    )
  })
})

describe('a limit', () => {
  it.each([
    ['today', NOW + 80 * MINUTE_MS, ' until 13:50 UTC. Try again after that'],
    ['tomorrow', NOW + 720 * MINUTE_MS, ' until 2026-11-17 00:30 UTC. Try again after that'],
    ['soon', NOW + 34 * MINUTE_MS, '. Try again in 34 min'],
    ['already', NOW - 1, '. Try again later'],
    ['nobody knows when', undefined, '. Try again later'],
  ])('that ends %s', (_, retryAt, words) => {
    const failure = { message: '', ...(retryAt !== undefined && { retryAt }) }
    expect(explain('rate_limit', failure)).toEqual(
      `claude has reached its usage limit${words}, or choose another agent with /backend.`,
    )
  })
})

describe('a time-out', () => {
  it.each([
    [
      'The agent did not finish within 1800 s.',
      'claude worked for 30 min, the limit for one turn, and was stopped. Changes it already made are kept. ' +
        'Ask for a smaller step, or raise QUERY_TIMEOUT_MS.',
    ],
    [
      'The agent printed nothing for 600 s.',
      'claude produced no output for 10 min and was stopped. Changes it already made are kept. ' +
        'Try again, or raise IDLE_TIMEOUT_MS if its work needs such pauses.',
    ],
    [
      'Something else',
      'claude took too long and was stopped. Changes it already made are kept. Ask for a smaller step.',
    ],
  ])('of the words %j', (message, text) => {
    expect(explain('timeout', { message })).toEqual(text)
  })

  it.each([
    ['did not finish within 6 s.', 'worked for 24 s in 4 attempts without finishing and was stopped.'],
    ['printed nothing for 6 s.', 'produced no output for 6 s and was stopped, after 24 s in 4 attempts.'],
  ])('after several attempts tells how long they took together: %s', (words, told) => {
    const failure: AgentFailure = { reason: 'timeout', message: `The agent ${words}`, report: '' }
    const text = explainFailure(failure, 'claude', NOW, { hasRun: true, attempts: 4, workedMs: 24_000 })
    expect(text).toContain(`claude ${told} Changes it already made are kept.`)
  })

  it.each<[string, Partial<AgentRequest>, string]>([
    ['the whole turn', { timeoutMs: 1_000, idleTimeoutMs: 0 }, 'claude worked for 1 s, the limit for one turn'],
    ['silence', { timeoutMs: 60_000, idleTimeoutMs: 1_000 }, 'claude produced no output for 1 s'],
  ])('of a real run is recognised: %s', async (_, limits, beginning) => {
    const failure = await failureOf({ prompt: 'hello', ...limits })
    expect(failure && explainFailure(failure, 'claude', NOW).slice(0, beginning.length)).toEqual(beginning)
  })
})

describe('a pod', () => {
  it.each<[PodProblem, string]>([
    ['pod_not_found', "This project's pod was not found."],
    ['pod_not_running', "This project's pod is not ready."],
    ['pod_gone', "This project's pod disappeared while claude was working. Anything not saved elsewhere may be lost."],
    ['container_not_found', "This project's pod has no such container."],
    ['cli_missing', "claude cannot be started in the image of this project's pod."],
    ['directory_missing', "This project's directory does not exist in its pod, or cannot be used there."],
    ['forbidden', "The cluster does not allow the gateway to work in this project's pod."],
    ['unreachable', "This project's cluster does not respond, or kubectl does not work where the gateway runs."],
    [
      'stream_lost',
      "The connection to this project's pod was lost while claude was working. Changes it already made are kept.",
    ],
  ])('that has a problem, %s, is explained with what to do', (podProblem, words) => {
    const failure = { podProblem, message: 'It is so. Do this.' }
    expect([explain('spawn', failure), explain('timeout', failure)]).toEqual([
      `${words}\n\nReason: It is so. Do this.`,
      `${words}\n\nReason: It is so. Do this.`,
    ])
  })
})

describe("the agent's own words", () => {
  it.each<[string, FailureReason, string, string]>([
    ['stand below', 'exit', 'API Error: 500', '\n\nIt said: API Error: 500'],
    ['are one block, without what acts on a screen', 'exit', '\n one\u001B\t\r\n\n\n two \n', '\n\nIt said: one\ntwo'],
    ['are our own when it could not be started', 'spawn', 'It is not there.', '\n\nReason: It is not there.'],
    ['are left out when there are none', 'exit', ' \n ', ''],
    ['are left out when we stopped it', 'cancelled', 'Cancelled', ''],
    ['are shortened, not within a character', 'exit', `${'x'.repeat(498)}🙂y`, `\n\nIt said: ${'x'.repeat(498)}…`],
  ])('%s', (_, reason, message, words) => {
    expect(belowOf(explain(reason, { message }))).toEqual(words)
  })
})

function explain(reason: FailureReason, failure: Partial<AgentFailure>, agent = 'claude'): string {
  return explainFailure({ reason, message: 'Something', report: '', ...failure }, agent, NOW)
}

/** The text below the explanation. */
function belowOf(text: string): string {
  const end = text.indexOf('\n\n')
  return end === -1 ? '' : text.slice(end)
}

/** The failure of an agent that only sleeps. */
async function failureOf(request: AgentRequest): Promise<AgentFailure | undefined> {
  const directory = temporaryDirectory()
  const cliPath = join(directory, 'claude')
  writeFileSync(cliPath, '#!/bin/sh\nexec sleep 60\n', { mode: 0o755 })
  const environment = { PATH: process.env['PATH'], HOME: directory }
  const backend = createBackend('claude', adapterConfig({ cliPath, workingDir: directory }), { environment })
  return (await seeRun(backend.run(request, new AbortController().signal))).result.failure
}
