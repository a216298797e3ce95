// OpenCode. Wire types captured from `opencode run --format json`, CLI 1.18.33; see test/fixtures/opencode and
// docs/backends/opencode.md.

import type { RunDirectory } from '../processes/run-directory.js'
import { CliBackend, type CliTraits, type Invocation } from './cli-backend.js'
import { namesOption, withoutOptions } from './command-args.js'
import { reasonOfStatus } from './failures.js'
import { isObject, type JsonObject } from './jsonl.js'
import { PROVIDER_VARIABLES } from './provider-variables.js'
import { mergeSettings, parseSettings } from './settings.js'
import { combineUsage, tokenUsage, Translation } from './translation.js'
import type { Turn } from './turn.js'
import type { AgentEventBody } from './types.js'

type OpenCodeLine = { sessionID?: string } & (
  | { type: 'step_start' }
  | { type: 'text' | 'reasoning'; part: { text: string } }
  | { type: 'tool_use'; part: { tool: string; callID: string; state: ToolState } }
  | { type: 'step_finish'; part: { reason?: string; tokens?: Tokens; cost?: number } }
  | { type: 'error'; error: OpenCodeError }
  // The gateway document's shape.
  | { type: 'result'; text: string; session_id?: string }
)

interface ToolState {
  status: string
  input: Record<string, unknown>
  output?: string
  error?: string
  metadata?: { exit?: number }
}

interface OpenCodeError {
  name?: string
  data?: { message?: string; statusCode?: number; responseHeaders?: Record<string, string> }
}

interface Tokens {
  input?: number
  output?: number
  reasoning?: number
  cache?: { read?: number; write?: number }
}

export class OpenCodeBackend extends CliBackend {
  protected readonly traits: CliTraits = {
    label: 'OpenCode',
    packageName: 'opencode-ai',
    variables: ['OPENCODE_*', ...PROVIDER_VARIABLES],
    sessionId: /^ses_[\w-]+$/,
    stopSignal: 'SIGTERM',
    failureSigns: [[/session not found/i, 'session_lost']],
    supportsMaxTurns: true,
    supportsToolControl: true,
    supportsStreaming: false,
    versions: {
      oldestKnown: '1.18.33',
      holes: [{ below: '1.0.216', what: 'CVE-2026-22812, its server runs commands for any web page' }],
    },
    subcommand: 'run',
    ownOptions: [
      {
        names: ['-c', '--continue', '--thinking', '--auto', '--yolo', '--dangerously-skip-permissions'],
        takesValue: false,
      },
      { names: ['--format', '-s', '--session', '--dir'], takesValue: true },
    ],
    modelOption: { names: ['-m', '--model'], takesValue: true },
  }

  name() {
    return 'opencode' as const
  }

  buildArgs(prompt: string, _systemPromptOrFile: string, sessionId?: string): string[] {
    return [...['run', '--format', 'json'], ...modelArgs(this.config.model), ...sessionArgs(sessionId), prompt]
  }

  protected invocation(turn: Turn, files: RunDirectory): Invocation {
    const { model, sessionId, command } = turn
    const isRestricted = turn.allowedTools.length > 0
    // Of two agents it would take neither.
    const further = withoutOptions(command?.args ?? [], isRestricted ? [AGENT_OPTION] : [])
    const isText = command?.format === 'text'
    return {
      args: [
        ...['run', '--format', isText ? 'default' : 'json'],
        ...modelArgs(model),
        ...(command?.sessionArgs ?? sessionArgs(sessionId)),
        // With options after it: some, such as --file, take every word up to the next one.
        ...further,
        ...(isText ? [] : ['--thinking']),
        // Nobody could answer a question for permission. What the operator's own settings deny stays denied.
        '--auto',
        // Without a title of ours, each new session costs a second call of the model to find one.
        ...(namesOption(further, ['--title']) ? [] : ['--title', 'Aetheel']),
        ...(isRestricted ? ['--agent', RESTRICTED_AGENT] : []),
        ...['--dir', turn.workingDir],
      ],
      environment: {
        OPENCODE_CONFIG_CONTENT: JSON.stringify(this.#settings(turn, files)),
        ...(turn.isUntrusted && UNTRUSTED_ENVIRONMENT),
      },
      defaults: { OPENCODE_DISABLE_AUTOUPDATE: '1' },
    }
  }

  protected translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation {
    return new OpenCodeTranslation(emit, turn)
  }

  /** Settings for one turn, over those the operator gave in the same variable. */
  #settings({ systemPrompt, allowedTools, isUntrusted }: Turn, files: RunDirectory): JsonObject {
    const operator = parseSettings(this.dependencies.environment['OPENCODE_CONFIG_CONTENT'] || '{}')
    const instructions = Array.isArray(operator['instructions']) ? operator['instructions'] : []
    return mergeSettings(operator, {
      ...(systemPrompt !== '' && { instructions: [...instructions, files.write('system-prompt.md', systemPrompt)] }),
      ...(allowedTools.length > 0 && {
        agent: { [RESTRICTED_AGENT]: { mode: 'primary', permission: permissionOf(allowedTools) } },
      }),
      // Both are programs, and are looked for in the directory first.
      ...(isUntrusted && { lsp: false, formatter: false }),
    })
  }
}

/** Settings, plug-ins, commands, AGENTS.md and skills of the directory are left out. */
const UNTRUSTED_ENVIRONMENT = { OPENCODE_DISABLE_PROJECT_CONFIG: '1', OPENCODE_DISABLE_EXTERNAL_SKILLS: '1' }

/** The rules of an agent come after all others, so what the operator's settings allow does not undo ours. */
const RESTRICTED_AGENT = 'aetheel'

/** They all go under the permission of `edit`. */
const EDITING_TOOLS = ['write', 'patch', 'apply_patch']

/** Only the listed tools; `bash(git log*)` lists only such calls. The last entry that matches decides. */
function permissionOf(allowedTools: string[]): JsonObject {
  // Not a tool: where the allowed ones may reach.
  const permission: JsonObject = { '*': 'deny', external_directory: 'allow' }
  for (const tool of allowedTools) {
    const [, name = tool, pattern] = /^([^(]+)\((.*)\)$/s.exec(tool) ?? []
    const key = EDITING_TOOLS.includes(name) ? 'edit' : name
    const before = permission[key] ?? { '*': 'deny' }
    permission[key] = pattern === undefined || !isObject(before) ? 'allow' : { ...before, [pattern]: 'allow' }
  }
  return permission
}

const AGENT_OPTION = { names: ['--agent'], takesValue: true }

function modelArgs(model: string | undefined): string[] {
  return model === undefined ? [] : ['--model', model]
}

function sessionArgs(sessionId: string | undefined): string[] {
  return sessionId ? ['--session', sessionId, '--continue'] : []
}

class OpenCodeTranslation extends Translation {
  #hasStarted = false
  /** What was said since the last round of tools. */
  #texts: string[] = []

  protected translate(value: JsonObject): void {
    const line = value as OpenCodeLine
    if (typeof line.sessionID === 'string' && !this.#hasStarted) {
      this.#hasStarted = true
      this.started(line.sessionID)
    }
    switch (line.type) {
      case 'step_start':
        return
      case 'text':
        this.#texts.push(line.part.text)
        this.endText()
        return this.output(line.part.text)
      case 'reasoning':
        return this.thinking(line.part.text)
      case 'tool_use':
        return this.#tool(line.part)
      case 'step_finish':
        return this.#stepFinish(line.part)
      case 'error':
        return this.#error(line.error)
      case 'result':
        this.inSession(line.session_id)
        return this.succeeded(line.text)
      default:
        return this.unknown((line as JsonObject)['type'])
    }
  }

  /** Call and result come as one, when the tool is done. */
  #tool({ tool, callID, state }: { tool: string; callID: string; state: ToolState }): void {
    // A tool that does not exist or may not be used comes as "invalid", its name among the input.
    const name = tool === 'invalid' ? String(state.input['tool']) : tool
    const exitCode = state.metadata?.exit
    this.toolUse(callID, name, state.input)
    this.toolResult({
      toolId: callID,
      content: state.output ?? state.error ?? '',
      isError: state.status === 'error' || tool === 'invalid' || (exitCode ?? 0) !== 0,
      ...(exitCode !== undefined && { metadata: { exitCode } }),
    })
  }

  #stepFinish({ reason, tokens, cost }: { reason?: string; tokens?: Tokens; cost?: number }): void {
    if (tokens) this.#count(tokens)
    this.spent(cost)
    if (reason === 'tool-calls') {
      this.#texts = []
      this.countTurn()
    } else if (!this.verdict?.isError) this.succeeded(this.#texts.join('\n\n'))
  }

  /** Reasoning is counted beside the output here, and the cache beside the input. */
  #count({ input, output = 0, reasoning = 0, cache }: Tokens): void {
    const usage = tokenUsage({
      inputTokens: input,
      outputTokens: output + reasoning,
      cacheReadTokens: cache?.read,
      cacheWriteTokens: cache?.write,
      reasoningTokens: reasoning,
    })
    this.usage = this.usage ? combineUsage(this.usage, usage) : usage
  }

  #error({ name, data }: OpenCodeError): void {
    const waitSeconds = Number(data?.responseHeaders?.['retry-after'])
    const retryAfterMs = waitSeconds > 0 ? waitSeconds * 1000 : undefined
    this.failed(data?.message ?? name, reasonOfStatus(data?.statusCode), retryAfterMs)
  }
}
