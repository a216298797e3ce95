import { GatewayError } from '../../errors.js'
import type { AgentCapabilities } from '../types.js'

/** Contract: throws `request_invalid` for a limit that the agent cannot enforce. */
export function requireEnforceable(
  { allowedTools = [], maxTurns }: { allowedTools?: string[] | undefined; maxTurns?: number | undefined },
  { provider, supportsToolControl, supportsMaxTurns }: AgentCapabilities,
): void {
  const advice = 'or choose another agent.'
  if (allowedTools.length > 0 && !supportsToolControl) {
    const message = `The agent ${provider} cannot be restricted to tools: take allowed_tools away,`
    throw new GatewayError('request_invalid', `${message} ${advice}`)
  }
  if (maxTurns !== undefined && !supportsMaxTurns) {
    const message = `The agent ${provider} cannot be limited to a number of turns: take max_turns away,`
    throw new GatewayError('request_invalid', `${message} ${advice}`)
  }
}

/** Configured limits that the agent cannot enforce, one sentence each. The turn runs without them. */
export function unenforcedLimits(
  { allowedTools }: { allowedTools: string[] },
  { supportsToolControl }: AgentCapabilities,
): string[] {
  if (allowedTools.length === 0 || supportsToolControl) return []
  return ['ALLOWED_TOOLS does not hold here: this agent cannot be restricted to tools.']
}
