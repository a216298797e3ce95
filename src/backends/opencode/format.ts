// What OpenCode's command line and its server have in common.

import { parseTool } from '../engine/allowed-tool.js'
import type { FailureSign } from '../engine/failures.js'
import { isObject, type JsonObject } from '../engine/jsonl.js'
import type { InputRules } from '../engine/refusals.js'
import { Translation } from '../engine/translation.js'
import type { VersionKnowledge } from '../engine/version.js'

/** OpenCode cannot store anything, not even a new session. */
const DATABASE_ADVICE =
  '(The OpenCode database is damaged. Stop everything that uses it, and move opencode.db out of its data directory. Its sessions are lost.)'

export const OPENCODE: InputRules & { failureSigns: readonly FailureSign[]; versions: VersionKnowledge } = {
  label: 'OpenCode',
  sessionId: /^ses_[\w-]+$/,
  failureSigns: [
    [/session not found/i, 'session_lost'],
    [/model not found/i, 'model_unknown'],
    // The session has a damaged message.
    [/failed query: .*\bJSON parse error/i, 'session_lost'],
    [/database disk image is malformed|file is not a database/i, 'exit', DATABASE_ADVICE],
  ],
  versions: {
    oldestKnown: '1.18.33',
    holes: [{ below: '1.0.216', what: 'CVE-2026-22812, any web page can run commands through its server' }],
  },
}

/** Saves a model call: without a title, OpenCode asks the model for one. */
export const SESSION_TITLE = 'Aetheel'

export interface ToolPart {
  tool: string
  callID: string
  state: ToolState
}

interface ToolState {
  status: string
  input: Record<string, unknown>
  output?: string
  error?: string
  metadata?: { exit?: number }
}

export interface StepFinish {
  reason?: string
  tokens?: Tokens
  cost?: number
}

interface Tokens {
  input?: number
  output?: number
  reasoning?: number
  cache?: { read?: number; write?: number }
}

export interface OpenCodeError {
  name?: string
  data?: { message?: string; statusCode?: number; responseHeaders?: Record<string, string> }
}

export abstract class OpenCodeTranslation extends Translation {
  protected toolCall({ tool, callID, state }: ToolPart): void {
    // A tool that does not exist or is not allowed is reported as "invalid", with its name in the input.
    this.toolUse(callID, tool === 'invalid' ? String(state.input['tool']) : tool, state.input)
  }

  protected toolEnd({ tool, callID, state }: ToolPart): void {
    const exitCode = state.metadata?.exit
    this.toolResult({
      toolId: callID,
      content: state.output ?? state.error ?? '',
      isError: state.status === 'error' || tool === 'invalid' || (exitCode ?? 0) !== 0,
      ...(exitCode !== undefined && { metadata: { exitCode } }),
    })
  }

  /** Ends a step of the model. Returns whether a round of tools follows. */
  protected stepFinish(step: StepFinish, saidSinceTools: string[]): boolean {
    this.spend(step)
    if (step.reason === 'tool-calls') {
      this.countTurn()
      return true
    }
    if (!this.verdict?.isError) this.succeeded(saidSinceTools.join('\n\n'))
    return false
  }

  /** OpenCode counts reasoning separately from output, and the cache separately from input. */
  protected spend({ tokens, cost }: StepFinish): void {
    this.spent(cost)
    if (!tokens) return
    const { input, output = 0, reasoning = 0, cache } = tokens
    this.count({
      inputTokens: input,
      outputTokens: output + reasoning,
      cacheReadTokens: cache?.read,
      cacheWriteTokens: cache?.write,
      reasoningTokens: reasoning,
    })
  }

  protected error({ name, data }: OpenCodeError): void {
    const waitSeconds = Number(data?.responseHeaders?.['retry-after'])
    const retryAfterMs = waitSeconds > 0 ? waitSeconds * 1000 : undefined
    const reason = name === 'ContextOverflowError' ? 'prompt_too_long' : undefined
    this.failed(data?.message ?? name, reason, { status: data?.statusCode, retryAfterMs })
  }
}

/** These all use the permission `edit`. */
const EDITING_TOOLS = ['write', 'patch', 'apply_patch']

/** Allows only the listed tools; `bash(git log*)` allows only such calls. The last matching entry wins. */
export function permissionOf(allowedTools: string[]): JsonObject {
  // `external_directory` is not a tool; it lets the allowed ones work outside the project.
  const permission: JsonObject = { '*': 'deny', external_directory: 'allow' }
  for (const tool of allowedTools) {
    const { name, calls: pattern } = parseTool(tool)
    const key = EDITING_TOOLS.includes(name) ? 'edit' : name
    const before = permission[key] ?? { '*': 'deny' }
    permission[key] = pattern === undefined || !isObject(before) ? 'allow' : { ...before, [pattern]: 'allow' }
  }
  return permission
}
