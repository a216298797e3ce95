import { posix, resolve } from 'node:path'
import { POD_DIRECTORY } from '../../kubernetes/types.js'
import { requireWholeNumber } from './refusals.js'
import type { SessionDirectories } from './session-directories.js'
import type { AgentCommand, AgentRequest, BackendAdapterConfig, TokenUsage } from '../types.js'

/** One turn to run: the request, completed from the configuration. */
export interface Turn {
  /** Neutralised for the CLI. */
  prompt: string
  /** Empty if there is none. */
  systemPrompt: string
  sessionId?: string
  sessionUsage?: TokenUsage
  model?: string
  allowedTools: string[]
  workingDir: string
  /** 0 means no limit. */
  maxTurns: number
  /** Nothing in the working directory may configure the agent or run by itself. */
  isUntrusted: boolean
  /** The agent asks before it uses a tool. */
  isAsking: boolean
  /** The operator's command, without the options that the backend always sets itself. */
  command?: AgentCommand
}

/** Contract: throws `request_invalid`. */
export function turnOf(request: AgentRequest, config: BackendAdapterConfig, directories: SessionDirectories): Turn {
  const model = (request.model ?? config.model) || undefined
  const directory = request.workingDir ?? directories.get(request.sessionId)
  return {
    prompt: request.prompt,
    systemPrompt: request.systemPrompt ?? '',
    // Some callers pass an empty id for a new session.
    ...(request.sessionId && { sessionId: request.sessionId }),
    ...(request.sessionUsage && { sessionUsage: request.sessionUsage }),
    ...(model !== undefined && { model }),
    allowedTools: request.allowedTools ?? config.allowedTools,
    // Absolute: a CLI that is started there and also given the path would resolve a relative one twice.
    workingDir: request.pod ? posix.resolve('/', directory ?? POD_DIRECTORY) : resolve(directory ?? config.workingDir),
    maxTurns: requireWholeNumber('maxTurns', request.maxTurns ?? config.maxTurns),
    isUntrusted: request.isUntrusted ?? false,
    isAsking: request.approve !== undefined,
  }
}
