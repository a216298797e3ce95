import { posix, resolve } from 'node:path'
import { POD_DIRECTORY } from '../../kubernetes/types.js'
import { requireWholeNumber } from './refusals.js'
import type { SessionDirectories } from './session-directories.js'
import type { AgentCommand, AgentRequest, BackendAdapterConfig, TokenUsage } from '../types.js'

/** One turn to run: the request, with what it left open filled in from the configuration. */
export interface Turn {
  /** As the CLI gets it. */
  prompt: string
  /** Empty for none. */
  systemPrompt: string
  sessionId?: string
  sessionUsage?: TokenUsage
  model?: string
  allowedTools: string[]
  workingDir: string
  /** 0 is without limit. */
  maxTurns: number
  /** Nothing in the working directory may configure the agent or run by itself. */
  isUntrusted: boolean
  /** The agent asks before it uses a tool. */
  isAsking: boolean
  /** As the operator wants it started; its arguments name nothing that the backend always gives itself. */
  command?: AgentCommand
}

/** Contract: throws `request_invalid`. */
export function turnOf(request: AgentRequest, config: BackendAdapterConfig, directories: SessionDirectories): Turn {
  const model = (request.model ?? config.model) || undefined
  const directory = request.workingDir ?? directories.get(request.sessionId)
  return {
    prompt: request.prompt,
    systemPrompt: request.systemPrompt ?? '',
    // Empty is how some callers say that there is none.
    ...(request.sessionId && { sessionId: request.sessionId }),
    ...(request.sessionUsage && { sessionUsage: request.sessionUsage }),
    ...(model !== undefined && { model }),
    allowedTools: request.allowedTools ?? config.allowedTools,
    // Absolute: a CLI that is both started there and told the path would go down twice.
    workingDir: request.pod ? posix.resolve('/', directory ?? POD_DIRECTORY) : resolve(directory ?? config.workingDir),
    maxTurns: requireWholeNumber('maxTurns', request.maxTurns ?? config.maxTurns),
    isUntrusted: request.isUntrusted ?? false,
    isAsking: request.approve !== undefined,
  }
}
