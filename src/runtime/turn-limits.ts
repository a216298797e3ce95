// What a turn may use. A request narrows what its project allows or, where that says nothing, the configuration: whoever
// may run something in a project must not lift its limits.

import { requireHoldable } from '../backends/engine/agent-limits.js'
import { parseTool } from '../backends/engine/allowed-tool.js'
import type { AgentCapabilities } from '../backends/types.js'
import type { MessageOptions } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import type { Project } from '../store/projects.js'

interface TurnLimits {
  /** Left out, those of the configuration. */
  allowedTools?: string[]
  timeoutMs: number
}

type Asked = Pick<MessageOptions, 'allowedTools' | 'timeoutMs'>
type Config = Pick<GatewayConfig, 'allowedTools' | 'queryTimeoutMs'>

/** Contract: throws `request_invalid` for tools that may not be used, and for limits that the agent cannot hold. */
export function limitTurn(
  asked: Asked,
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
  requireHoldable({ allowedTools, maxTurns: project?.maxTurns }, agent)
  return { ...(allowedTools && { allowedTools }), timeoutMs: limitTime(asked, project, config) }
}

export function limitTime(
  { timeoutMs = Infinity }: Asked,
  project: Pick<Project, 'queryTimeoutMs'> | undefined,
  config: Pick<Config, 'queryTimeoutMs'>,
): number {
  return Math.min(timeoutMs, project?.queryTimeoutMs ?? config.queryTimeoutMs)
}

/** The tool itself, or some of its calls, as in `Bash(git log:*)`. */
function isWithin(tool: string, allowed: string[]): boolean {
  return allowed.includes(tool) || allowed.includes(parseTool(tool).name)
}
