// Claude Code. Wire types captured from `claude -p --output-format stream-json`, CLI 2.1.197; see test/fixtures/claude
// and docs/backends/claude.md.

import { resolve } from 'node:path'
import { POD_DIRECTORY } from '../../kubernetes/types.js'
import { parseTool } from '../engine/allowed-tool.js'
import { CliBackend, type CliTraits, type Invocation } from '../engine/cli-backend.js'
import { namesOption, optionArgs, valueOf, withoutOptions } from '../engine/command-args.js'
import type { JsonObject } from '../engine/jsonl.js'
import { claudeLogin } from './login.js'
import { claudeModels } from './models.js'
import { claudeWarmDriver } from './warm-driver.js'
import type { WarmDriver } from '../engine/warm/types.js'
import type { LoginPlace, LoginReading } from '../engine/login.js'
import type { Place } from '../engine/place.js'
import { combineUsage, tokenUsage, Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentEventBody, TokenUsage } from '../types.js'
import { isAtLeast } from '../../core/versions.js'

type ClaudeLine =
  | { type: 'system'; subtype: 'init'; session_id: string; model?: string }
  | { type: 'system'; subtype: 'api_retry'; attempt: number; max_retries: number; error?: string }
  | {
      type: 'system'
      subtype: 'model_fallback' | 'model_refusal_fallback'
      original_model: string
      fallback_model: string
    }
  | { type: 'system'; subtype: 'status' | 'thinking_tokens' | 'task_started' | 'task_updated' | 'task_notification' }
  | { type: 'system'; subtype: 'hook_started' | 'hook_response' | 'compact_boundary' | 'model_refusal_no_fallback' }
  | { type: 'stream_event'; event: StreamEvent; parent_tool_use_id?: string | null }
  | {
      type: 'assistant'
      message: { id?: string; model?: string; content: Block[] }
      parent_tool_use_id?: string | null
    }
  | { type: 'user'; message: { content: string | Block[] }; parent_tool_use_id?: string | null }
  | ResultLine
  // Alternative names for the same events.
  | { type: 'init'; session_id: string }
  | { type: 'message'; content: string | Block[] }
  | ({ type: 'tool_use' } & ToolUseBlock)
  | ({ type: 'tool_result' } & ToolResultBlock)

type StreamEvent =
  | { type: 'message_start'; message: { id: string } }
  | { type: 'content_block_start' | 'content_block_stop' | 'message_delta' | 'message_stop' | 'ping' }
  | { type: 'content_block_delta'; delta: { type: string; text?: string; thinking?: string } }

type Block = { type: 'text'; text: string } | { type: 'thinking'; thinking: string } | ToolUseBlock | ToolResultBlock

interface ToolUseBlock {
  type: 'tool_use'
  id: string
  name: string
  input: Record<string, unknown>
}

interface ToolResultBlock {
  type: 'tool_result'
  tool_use_id: string
  content?: string | Array<{ type: string; text?: string }>
  is_error?: boolean
}

interface ResultLine {
  type: 'result'
  subtype?: string
  is_error?: boolean
  result?: string
  errors?: string[]
  api_error_status?: number | null
  stop_reason?: string | null
  terminal_reason?: string
  session_id?: string
  num_turns?: number
  total_cost_usd?: number
  usage?: Record<'input_tokens' | 'output_tokens' | 'cache_read_input_tokens' | 'cache_creation_input_tokens', number>
  /** In newer versions, totals since the start of the session, even across processes. So is the cost. */
  modelUsage?: Record<string, ModelUsage>
  /** Only in those versions. */
  model_usage_since_last_result?: Record<string, ModelUsage & { costUSD?: number }>
  permission_denials?: unknown[]
}

type ModelUsage = Record<'inputTokens' | 'outputTokens' | 'cacheReadInputTokens' | 'cacheCreationInputTokens', number>

const FIRST_WITH_SNAPSHOT = '2.1.257'

/** Ignore the directory's settings, hooks, commands and CLAUDE.md, and every MCP server. */
const UNTRUSTED_ARGS = ['--setting-sources', 'user', '--strict-mcp-config']

/** Disables what would make it speak unprompted between turns. */
const WARM_ENVIRONMENT = { CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1', CLAUDE_CODE_DISABLE_CRON: '1' }

const ROOT_ADVICE = 'Run the gateway as another user, or set IS_SANDBOX=1 where root is confined, as in a container.'

export class ClaudeCodeBackend extends CliBackend {
  protected readonly traits: CliTraits = {
    label: 'Claude',
    packageName: '@anthropic-ai/claude-code',
    variables: ['ANTHROPIC_*', 'CLAUDE_*', 'IS_SANDBOX'],
    sessionId: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
    // On SIGTERM it may leave a running command behind; on SIGINT it never did.
    stopSignal: 'SIGINT',
    promptLimit: { size: 10_000_000, unit: 'bytes' },
    failureSigns: [
      [/no conversation found|--resume requires a valid session/i, 'session_lost'],
      [/cannot be used with root\/sudo/i, 'refused', ROOT_ADVICE],
      [/not logged in|please run \/login/i, 'auth'],
      [/issue with the selected model/i, 'model_unknown'],
      [/reached max(?:imum number of)? turns/i, 'max_turns'],
    ],
    supportsMaxTurns: true,
    supportsToolControl: true,
    supportsCommands: true,
    supportsCompact: true,
    supportsStreaming: true,
    versions: {
      oldestKnown: '2.1.197',
      holes: [
        { below: '1.0.111', what: 'CVE-2025-59536, a repository can run commands before it is trusted' },
        { below: '2.0.65', what: 'CVE-2026-21852, a repository can send the API key elsewhere' },
      ],
    },
    ownOptions: [
      { names: ['-p', '--print', '--verbose', '--include-partial-messages', '-c', '--continue'], takesValue: false },
      { names: ['--output-format', '--input-format', '-r', '--resume', '--session-id'], takesValue: true },
    ],
    modelOption: { names: ['--model'], takesValue: true },
  }

  name() {
    return 'claude' as const
  }

  buildArgs(prompt: string, systemPromptOrFile: string, sessionId?: string): string[] {
    const { model, allowedTools, maxTurns } = this.config
    return [
      ...['-p', '--output-format', 'json', '--dangerously-skip-permissions', '--max-turns', String(maxTurns)],
      ...optionArgs('--model', model),
      ...(sessionId ? ['--resume', sessionId] : []),
      ...allowedTools.flatMap((tool) => ['--allowedTools', tool]),
      // Between --allowedTools and the prompt, which that option would swallow.
      ...['--append-system-prompt-file', systemPromptOrFile],
      prompt,
    ]
  }

  protected invocation(turn: Turn, place: Place, signal: AbortSignal): Promise<Invocation> {
    return this.#launch(formatArgs(turn.command?.format), turn, place, signal)
  }

  protected override warmDriver(): WarmDriver {
    const launch: WarmDriver['launch'] = async (turn, place, signal) => {
      const invocation = await this.#launch([...formatArgs(), '--input-format', 'stream-json'], turn, place, signal)
      return { ...invocation, environment: { ...invocation.environment, ...WARM_ENVIRONMENT } }
    }
    return claudeWarmDriver(launch)
  }

  async #launch(format: string[], turn: Turn, place: Place, signal: AbortSignal): Promise<Invocation> {
    const { sessionId, model, maxTurns, command, workingDir } = turn
    const { files, isPod } = place
    const { systemPrompt, further } = await withPrompts(turn, place, signal)
    return {
      args: [
        // Needs an option after it: it takes every word up to the next option.
        ...(isPod && workingDir !== POD_DIRECTORY ? ['--add-dir', workingDir] : []),
        // `-p` must not come first: the runtime would then compile and collect garbage on the main thread.
        ...[...format, '-p'],
        ...(namesOption(further, ['--max-turns']) ? [] : ['--max-turns', String(maxTurns)]),
        ...optionArgs('--model', model),
        ...(command?.sessionArgs ?? optionArgs('--resume', sessionId)),
        ...(turn.isUntrusted ? UNTRUSTED_ARGS : []),
        // Before --allowedTools, which takes every word up to the next option.
        ...withoutOptions(further, [SKIP_OPTION]),
        ...(turn.isAsking ? askingArgs(turn.allowedTools) : permissionArgs(turn.allowedTools, further)),
        ...(systemPrompt === '' ? [] : ['--append-system-prompt-file', files.write('system-prompt.md', systemPrompt)]),
        ...(systemPrompt === '' || sessionId === undefined ? [] : await freshPromptArgs(place, signal)),
      ],
      environment: {
        // Otherwise `@/etc/passwd` in a message would put that file into the context.
        CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
      },
      defaults: {
        // The default of ten retries takes three minutes, even for a refused key.
        CLAUDE_CODE_MAX_RETRIES: '2',
        // Background tasks would end with the turn, so the model should not rely on them.
        CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
        DISABLE_AUTOUPDATER: '1',
        // Otherwise it refuses to skip permissions as root, the user of many containers.
        ...(isPod && { IS_SANDBOX: '1' }),
      },
    }
  }

  /** A leading slash would run a command of the CLI instead of prompting the model; a space prevents that. */
  protected override neutralise(prompt: string): string {
    return prompt.startsWith('/') ? ` ${prompt}` : prompt
  }

  protected login(place: LoginPlace): Promise<LoginReading> {
    return claudeLogin(place)
  }

  protected override listModels(place: LoginPlace): Promise<string[]> {
    return claudeModels(place)
  }

  protected translation(emit: (event: AgentEventBody) => void): Translation {
    return new ClaudeTranslation(emit)
  }

  protected override problems(): string[] {
    const isRoot = process.getuid?.() === 0
    if (!isRoot || this.dependencies.environment['IS_SANDBOX'] === '1') return []
    return [`Claude Code refuses to skip permissions when run as root. ${ROOT_ADVICE}`]
  }
}

const SKIP_OPTION = { names: ['--dangerously-skip-permissions'], takesValue: false }
const APPENDED_TEXT = { names: ['--append-system-prompt'], takesValue: true }
const APPENDED_FILE = { names: ['--append-system-prompt-file'], takesValue: true }

/** By default, newer versions resume with the system prompt of the first turn. Older ones do not know the option. */
async function freshPromptArgs(place: Place, signal: AbortSignal): Promise<string[]> {
  const keepsFirst = isAtLeast(await place.version(signal), FIRST_WITH_SNAPSHOT)
  return keepsFirst ? ['--system-prompt-snapshot', 'off'] : []
}

/** The CLI accepts one addition to its system prompt, so the template's is merged into ours. */
async function withPrompts(
  { systemPrompt, workingDir, command }: Turn,
  place: Place,
  signal: AbortSignal,
): Promise<{ systemPrompt: string; further: string[] }> {
  const args = command?.args ?? []
  if (systemPrompt === '') return { systemPrompt, further: args }
  const text = valueOf(args, APPENDED_TEXT.names)
  const file = valueOf(args, APPENDED_FILE.names)
  const content = file === undefined ? undefined : await place.readFile(resolve(workingDir, file), signal)
  if (file !== undefined && content === undefined) throw new Error(`${resolve(workingDir, file)} was not found`)
  return {
    systemPrompt: [systemPrompt, text, content].filter((part) => part !== undefined).join('\n\n'),
    further: withoutOptions(args, [APPENDED_TEXT, APPENDED_FILE]),
  }
}

function formatArgs(format?: 'text' | 'json'): string[] {
  if (format !== undefined) return ['--output-format', format]
  return ['--output-format', 'stream-json', '--verbose', '--include-partial-messages']
}

/**
 * Never asks, since nobody could answer. A list of plain names is enforced by offering only those tools. A rule such as
 * `Bash(git log:*)` or the name of an MCP tool needs the permission system, so permissions cannot be skipped. The same
 * goes for a template that sets its own permissions.
 */
function permissionArgs(allowedTools: string[], further: string[]): string[] {
  const hasMode = namesOption(further, ['--permission-mode'])
  const asksNothing = hasMode ? [] : ['--permission-mode', 'dontAsk']
  const hasList = namesOption(further, ['--allowedTools', '--allowed-tools'])
  const isRuled = hasMode || (hasList && !namesOption(further, SKIP_OPTION.names))
  if (allowedTools.length === 0) return isRuled ? asksNothing : ['--dangerously-skip-permissions']
  const hasRules = isRuled || allowedTools.some((tool) => tool.includes('(') || tool.startsWith('mcp__'))
  return [
    ...(hasRules ? asksNothing : ['--dangerously-skip-permissions', '--disallowedTools', 'mcp__*']),
    ...['--tools', toolNames(allowedTools)],
    ...allowedTools.flatMap((tool) => ['--allowedTools', tool]),
  ]
}

/**
 * The CLI does not ask about read-only tools or what the operator's settings allow. For a rule in the list, such as
 * `Bash(git log:*)`, an "ask" rule makes it report that the rule matched; otherwise such a call would look like any other.
 */
function askingArgs(allowedTools: string[]): string[] {
  const rules = allowedTools.filter((tool) => tool.includes('('))
  const hasMcpTools = allowedTools.length === 0 || allowedTools.some((tool) => tool.startsWith('mcp__'))
  return [
    ...['--permission-mode', 'default', '--permission-prompt-tool', 'stdio'],
    // An approval can only be yes or no.
    ...['--disallowedTools', 'AskUserQuestion'],
    ...(hasMcpTools ? [] : ['--disallowedTools', 'mcp__*']),
    ...(allowedTools.length === 0 ? [] : ['--tools', toolNames(allowedTools)]),
    ...(rules.length === 0 ? [] : ['--settings', JSON.stringify({ permissions: { ask: rules } })]),
  ]
}

/** Without rules; `default` is not a tool but stands for all of them. */
function toolNames(allowedTools: string[]): string {
  const names = allowedTools.map((tool) => parseTool(tool).name).filter((name) => name !== 'default')
  return [...new Set(names)].join(',')
}

class ClaudeTranslation extends Translation {
  /** The message that is being streamed, and its text so far. */
  #streamingId: string | undefined
  #streamed = ''
  #lastText = ''

  protected translate(value: JsonObject): void {
    const line = value as ClaudeLine
    this.setSession(value['session_id'])
    // A subagent speaks to its parent, not to the user.
    if ('parent_tool_use_id' in line && line.parent_tool_use_id) return
    switch (line.type) {
      case 'system':
        return this.#system(line)
      case 'init':
        return this.started(line.session_id)
      case 'stream_event':
        return this.#streamEvent(line.event)
      case 'assistant':
        // An error of the model server disguised as an answer; the result line has it too.
        if (line.message.model !== '<synthetic>') this.#assistant(line.message)
        return
      case 'message':
        return this.#assistant({ content: blocksOf(line.content) })
      case 'user':
        for (const block of blocksOf(line.message.content)) if (block.type === 'tool_result') this.#toolResult(block)
        return
      case 'tool_use':
        return this.toolUse(line.id, line.name, line.input)
      case 'tool_result':
        return this.#toolResult(line)
      case 'result':
        return this.#result(line)
      default:
        return this.unknown((line as JsonObject)['type'])
    }
  }

  #system(line: Extract<ClaudeLine, { type: 'system' }>): void {
    switch (line.subtype) {
      case 'init':
        return this.started(line.session_id, line.model)
      case 'api_retry':
        return this.notice(`The model did not answer (${line.error}). Retry ${line.attempt} of ${line.max_retries}.`)
      case 'model_fallback':
        return this.notice(`${line.original_model} is overloaded. Switching to ${line.fallback_model}.`)
      case 'model_refusal_fallback':
        return this.notice(`${line.original_model} refused to answer. Switching to ${line.fallback_model}.`)
      case 'compact_boundary':
        return this.notice('The conversation was compacted to make room.')
      case 'status':
      // The result says that the model refused.
      case 'model_refusal_no_fallback':
      case 'thinking_tokens':
      case 'task_started':
      case 'task_updated':
      case 'task_notification':
      case 'hook_started':
      case 'hook_response':
        return
      default:
        return this.unknown(`system/${String((line as JsonObject)['subtype'])}`)
    }
  }

  #streamEvent(event: StreamEvent): void {
    if (event.type === 'message_start') {
      this.#streamingId = event.message.id
      this.#streamed = ''
      this.endText()
    } else if (event.type === 'content_block_delta') {
      if (event.delta.type === 'text_delta') {
        this.#streamed += event.delta.text
        this.output(event.delta.text ?? '')
      } else if (event.delta.type === 'thinking_delta') this.thinking(event.delta.thinking ?? '')
    } else if (event.type === 'content_block_start') this.endText()
  }

  /** A complete block. Its text repeats what was streamed, unless the stream broke and was retried. */
  #assistant({ id, content }: { id?: string; content: Block[] }): void {
    const isStreamed = id !== undefined && id === this.#streamingId
    for (const block of content) {
      if (block.type === 'text') {
        this.#lastText = block.text
        if (isStreamed && this.#streamed.endsWith(block.text)) continue
        this.endText()
        this.output(block.text)
      } else if (block.type === 'thinking') {
        if (!isStreamed) this.thinking(block.thinking)
      } else if (block.type === 'tool_use') this.toolUse(block.id, block.name, block.input)
    }
  }

  #toolResult(block: ToolResultBlock): void {
    this.toolResult({
      toolId: block.tool_use_id,
      content: textOf(block.content),
      isError: block.is_error === true,
    })
  }

  #result(line: ResultLine): void {
    this.#judge(line)
    this.#count(line)
    this.metadata = { turns: line.num_turns, permissionDenials: line.permission_denials }
  }

  /** `usage` excludes retried requests; the per-model counts include them. */
  #count({ usage, modelUsage, model_usage_since_last_result: sinceLast, total_cost_usd: cost }: ResultLine): void {
    const models = Object.values(sinceLast ?? modelUsage ?? {})
    const counted =
      models.length > 0 ? models.map(usageOf).reduce((sum, model) => combineUsage(sum, model)) : whole(usage)
    if (sinceLast) {
      // A turn may have several results.
      this.usage = this.usage ? combineUsage(this.usage, counted) : counted
      this.spent(Object.values(sinceLast).reduce((sum, { costUSD = 0 }) => sum + costUSD, 0))
      return
    }
    if (models.length > 0 || usage) this.usage = counted
    if (Number.isFinite(cost)) this.costUsd = Number(cost)
  }

  #judge(line: ResultLine): void {
    // The subtype alone is misleading: it is "success" even for errors of the model server.
    if (!line.is_error && !line.subtype?.startsWith('error')) return this.succeeded(line.result ?? this.#lastText)
    const errors = line.errors?.filter((error) => !error.startsWith('[ede_diagnostic]'))
    const message = line.result ?? (errors?.join('\n') || undefined)
    if (line.subtype === 'error_max_turns') return this.failed(message, 'max_turns')
    if (line.stop_reason === 'refusal') return this.failed(message, 'refused')
    return this.failed(message, undefined, { status: line.api_error_status })
  }
}

function blocksOf(content: string | Block[]): Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function textOf(content: ToolResultBlock['content']): string {
  if (content === undefined || typeof content === 'string') return content ?? ''
  return content.map((part) => part.text ?? `[${part.type}]`).join('\n')
}

function whole(usage: ResultLine['usage']): TokenUsage {
  return tokenUsage({
    inputTokens: usage?.input_tokens,
    outputTokens: usage?.output_tokens,
    cacheReadTokens: usage?.cache_read_input_tokens,
    cacheWriteTokens: usage?.cache_creation_input_tokens,
  })
}

function usageOf(model: ModelUsage): TokenUsage {
  return tokenUsage({
    inputTokens: model.inputTokens,
    outputTokens: model.outputTokens,
    cacheReadTokens: model.cacheReadInputTokens,
    cacheWriteTokens: model.cacheCreationInputTokens,
  })
}
