import type { AgentCommand, TokenUsage } from './types.js'

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
  /** As the operator wants it started; its arguments name nothing that the backend always gives itself. */
  command?: AgentCommand
}
