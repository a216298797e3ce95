// The limits of a turn. A request can only narrow those of its project or, if that has none, of the configuration:
// whoever may run something in a project must not lift its limits.

import { requireEnforceable } from '../backends/engine/refusals.js'
import { parseTool } from '../backends/engine/allowed-tool.js'
import type { AgentCapabilities } from '../backends/types.js'
import type { MessageOptions } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import type { Project } from '../store/projects.js'

interface TurnLimits {
  /** Defaults to the configuration's. */
  allowedTools?: string[]
  timeoutMs: number
}

type RequestedLimits = Pick<MessageOptions, 'allowedTools' | 'timeoutMs'>
type Config = Pick<GatewayConfig, 'allowedTools' | 'queryTimeoutMs'>

/** Contract: throws `request_invalid` for tools that are not allowed, and for limits that the agent cannot enforce. */
export function limitTurn(
  asked: RequestedLimits,
  project: Project | undefined,
  config: Config,
  agent: AgentCapabilities,
): TurnLimits {
  const allowed = project?.allowedTools ?? config.allowedTools
  const beyond = allowed.length === 0 ? [] : (asked.allowedTools ?? []).filter((tool) => !isWithin(tool, allowed))
  if (beyond.length > 0) {
    const advice = `Choose among ${allowed.join(', ')}.`
    throw new GatewayError('request_invalid', `These tools may not be used here: ${beyond.join(', ')}. ${advice}`)
  }
  const allowedTools = asked.allowedTools ?? project?.allowedTools
  requireEnforceable({ allowedTools, maxTurns: project?.maxTurns }, agent)
  return { ...(allowedTools && { allowedTools }), timeoutMs: limitTime(asked, project, config) }
}

export function limitTime(
  { timeoutMs = Infinity }: RequestedLimits,
  project: Pick<Project, 'queryTimeoutMs'> | undefined,
  config: Pick<Config, 'queryTimeoutMs'>,
): number {
  return Math.min(timeoutMs, project?.queryTimeoutMs ?? config.queryTimeoutMs)
}

/** The tool itself, or a subset of its calls, as in `Bash(git log:*)`. */
function isWithin(tool: string, allowed: string[]): boolean {
  return allowed.includes(tool) || allowed.includes(parseTool(tool).name)
}
