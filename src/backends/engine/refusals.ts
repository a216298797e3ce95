// Reasons to refuse a request before anything is started, for every kind of lifetime.

import { canBeSetForRun } from '../../core/environment.js'
import { GatewayError, messageOf } from '../../errors.js'
import { isDirectory } from '../../core/paths.js'
import { isAtLeast } from '../../core/versions.js'
import { isShellVariable } from '../../kubernetes/supervisor.js'
import { PodError } from '../../kubernetes/types.js'
import { parseTool, problemOfTool } from './allowed-tool.js'
import { EventQueue } from './event-queue.js'
import { type Failed, failureOf, failureOfPod } from './failures.js'
import type { BackendDependencies } from './cli-backend.js'
import { lostSession } from './starting-over.js'
import type { Turn } from './turn.js'
import type { AgentCapabilities, AgentRequest } from '../types.js'

export function refused(message: string): Failed {
  return { reason: 'refused', message }
}

/** What an agent accepts. */
export interface InputRules {
  /** The agent's name in error messages. */
  label: string
  sessionId: RegExp
  /** The longest prompt it accepts in full. */
  promptLimit?: { size: number; unit: 'bytes' | 'characters' }
  /** It cannot be restricted to some calls of a tool, as in `Bash(git log:*)`. */
  hasToolNamesOnly?: boolean
}

export function refusedInput(
  { prompt, sessionId, model, allowedTools }: Turn,
  { label, sessionId: sessionPattern, promptLimit, hasToolNamesOnly }: InputRules,
): Failed | undefined {
  if (model !== undefined && !isName(model)) return refused(`${JSON.stringify(model)} is not a valid model name.`)
  const badTool = allowedTools.map(problemOfTool).find((problem) => problem !== undefined)
  if (badTool !== undefined) return refused(`The list of allowed tools contains an ${badTool}.`)
  const ruled = hasToolNamesOnly && allowedTools.find((tool) => parseTool(tool).calls !== undefined)
  if (ruled) {
    const advice = 'Allow the whole tool, or leave it out.'
    return refused(`${label} cannot be restricted to some calls of a tool: ${ruled}. ${advice}`)
  }
  if (prompt.trim() === '') return refused('The prompt is empty.')
  if (promptLimit) {
    const size = promptLimit.unit === 'bytes' ? Buffer.byteLength(prompt) : countCharacters(prompt)
    const limit = `${promptLimit.size} ${promptLimit.unit}`
    if (size > promptLimit.size) return refused(`The prompt is too long for ${label}: ${size} of at most ${limit}.`)
  }
  if (sessionId !== undefined && !sessionPattern.test(sessionId)) {
    return lostSession(`${JSON.stringify(sessionId)} is not a valid session id for ${label}.`)
  }
  return undefined
}

export function refusedDirectory(workingDir: string): Failed | undefined {
  if (isDirectory(workingDir)) return undefined
  return { reason: 'spawn', message: `The working directory ${workingDir} does not exist.`, isLasting: true }
}

/** For a turn that needs approvals where nothing can ask for them. It must not run without. */
export function refusedAsking(label: string, { pod, command }: Pick<AgentRequest, 'pod' | 'command'> = {}): Failed {
  const where = pod ? ' in a pod' : command ? ' when a command template starts it' : ''
  const advice = pod ? NO_POD : command ? NO_TEMPLATE : WHO_ASKS
  return refused(`${label} cannot ask for approval${where}. ${advice}, or ${ALLOW}`)
}

export function refusedVersionToAsk(label: string, version: string | undefined, oldest: string): Failed | undefined {
  if (isAtLeast(version, oldest)) return undefined
  return refused(`Approvals need ${label} ${oldest} or newer. Update it, or ${ALLOW}`)
}

const NO_POD = "Run it on the gateway's machine"
const NO_TEMPLATE = 'Remove the template'
const WHO_ASKS = 'Choose claude, codex, gemini or opencode'
const ALLOW = 'set its permissions to "allow".'

/** For a compaction that a one-shot command line cannot do. */
export function refusedCompaction(label: string, { pod, command }: Pick<AgentRequest, 'pod' | 'command'>): Failed {
  const where = pod ? ' in a pod' : command ? ' when a command template starts it' : ''
  return refused(`${label} does not support /compact${where}. Use /new to start a fresh session.`)
}

/** Why a turn may not run in a pod, as far as can be told without asking the cluster. */
export function refusedPod({ isUntrusted }: Turn, { pods }: BackendDependencies): Failed | undefined {
  if (isUntrusted) {
    return refused('An untrusted project does not run in a pod: the pod itself is the fence. Say that it is trusted.')
  }
  return pods ? undefined : refused('This gateway cannot run agents in pods: kubectl is not set up.')
}

export function refusedVariable({ environment = {}, secretFiles = [], pod }: AgentRequest): Failed | undefined {
  const names = [...Object.keys(environment), ...secretFiles.map(({ variable }) => variable)]
  const fixed = names.find((name) => !canBeSetForRun(name))
  if (fixed !== undefined) {
    return refused(`The variable ${JSON.stringify(fixed)} cannot be set for a run. Use another name.`)
  }
  const shells = pod && names.find(isShellVariable)
  if (shells !== undefined) return refused(shellsVariable(shells))
  const broken = Object.entries(environment).find(([, value]) => value.includes('\0'))
  return broken && refused(`The value of ${broken[0]} contains a NUL character. Pass it as a file instead.`)
}

export function shellsVariable(name: string): string {
  return `The variable ${name} is reserved by the shell in a pod and cannot be set there. Give the credential another name.`
}

export function preparationFailure(label: string, error: unknown): Failed {
  if (error instanceof PodError) return failureOfPod(error)
  return { reason: 'spawn', message: `${label} CLI could not be prepared: ${messageOf(error)}` }
}

/** The events of a run that never began. */
export function refusedRun(failed: Failed, now: () => number): EventQueue {
  const queue = new EventQueue(now)
  queue.complete({ isError: true, durationMs: 0, failure: failureOf(failed) })
  return queue
}

/** Contract: throws `request_invalid` for a limit that the agent cannot enforce. */
export function requireEnforceable(
  { allowedTools = [], maxTurns }: { allowedTools?: string[] | undefined; maxTurns?: number | undefined },
  { provider, supportsToolControl, supportsMaxTurns }: AgentCapabilities,
): void {
  const refuse = (what: string): never => {
    throw new GatewayError('request_invalid', `The agent ${provider} ${what}, or choose another agent.`)
  }
  if (allowedTools.length > 0 && !supportsToolControl)
    refuse('cannot be restricted to certain tools. Remove allowed_tools')
  if (maxTurns !== undefined && !supportsMaxTurns) refuse('does not support a turn limit. Remove max_turns')
}

/** Configured limits that the agent cannot enforce, one sentence each. The turn runs without them. */
export function unenforcedLimits(
  { allowedTools }: { allowedTools: string[] },
  { supportsToolControl }: AgentCapabilities,
): string[] {
  if (allowedTools.length === 0 || supportsToolControl) return []
  return ['ALLOWED_TOOLS has no effect: this agent cannot be restricted to certain tools.']
}

/** Contract: throws `request_invalid`. */
export function requireWholeNumber(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 0) return value
  throw new GatewayError('request_invalid', `${name} must be a whole number, not ${value}`)
}

/** Contract: throws `request_invalid`. */
export function requireMilliseconds(name: string, value: number, atLeast: number): number {
  if (Number.isFinite(value) && value >= atLeast) return value
  throw new GatewayError('request_invalid', `${name} must be a number of milliseconds, not ${value}`)
}

/** It goes on a command line, where a leading dash would make it an option. */
function isName(name: string): boolean {
  return /^[^\s\p{Cc}-][^\p{Cc}]*$/u.test(name)
}

function countCharacters(text: string): number {
  let surrogatePairs = 0
  for (const _ of text.matchAll(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)) surrogatePairs += 1
  return text.length - surrogatePairs
}
