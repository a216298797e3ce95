// Codex. Wire types captured from `codex exec --json`, CLI 0.166.0, and the same in 0.169.0; see test/fixtures/codex and
// docs/backends/codex.md.

import { CliBackend, type CliTraits, type Invocation } from '../engine/cli-backend.js'
import { codexLogin } from './login.js'
import { codexModels } from './models.js'
import { DELIVERED, instructionsHook, trustedArgs, untrustedArgs } from './settings.js'
import { namesOption, optionArgs } from '../engine/command-args.js'
import type { JsonObject } from '../engine/jsonl.js'
import { codexWarmDriver, storeArgs } from './warm-driver.js'
import type { WarmDriver } from '../engine/warm/types.js'
import type { LoginPlace, LoginReading } from '../engine/login.js'
import type { Place } from '../engine/place.js'
import { combineUsage, tokenUsage, Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentCommand, AgentEventBody, TokenUsage } from '../types.js'
import { isAtLeast } from '../../core/versions.js'

type CodexLine =
  | { type: 'thread.started'; thread_id: string }
  | { type: 'turn.started' }
  | { type: 'item.started' | 'item.updated' | 'item.completed'; item: CodexItem }
  | { type: 'turn.completed'; usage?: Record<string, number> }
  | { type: 'turn.failed'; error: { message: string; status?: number } }
  | { type: 'error'; message: string }
  // Made by codex/warm-lines.ts, for events that only `codex app-server` has.
  | { type: 'item.delta'; item_id: string; text: string }
  | { type: 'turn.usage'; usage: Record<string, number>; before?: Record<string, number> }
  // A shape that `parseOutput` also accepts.
  | { type: 'message'; role: string; content: string | Array<{ text?: string }>; session_id?: string }

/** agent_message and reasoning have `text`, error has `message`; every other type is a tool with its own fields. */
interface CodexItem extends JsonObject {
  id: string
  type: string
  text?: string
  message?: string
  status?: string
  aggregated_output?: string
  error?: { message?: string } | null
}

export class CodexBackend extends CliBackend {
  protected readonly traits: CliTraits = {
    label: 'Codex',
    packageName: '@openai/codex',
    variables: ['OPENAI_*', 'CODEX_*'],
    sessionId: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
    stopSignal: 'SIGTERM',
    promptLimit: { size: 1_048_576, unit: 'characters' },
    failureSigns: [
      [/no rollout found|thread not found|no (?:saved )?session found/i, 'session_lost'],
      // The session file is damaged.
      [/\.jsonl\S* (?:is empty|does not start with session metadata)/i, 'session_lost'],
      [/missing environment variable|codex login/i, 'auth'],
      [/model is not supported when using Codex/i, 'model_unknown'],
      [/ran out of room in the model's context window/i, 'prompt_too_long'],
      // It passes these words on without the status.
      [/^invalid prompt\b/i, 'refused'],
    ],
    supportsMaxTurns: false,
    supportsToolControl: false,
    supportsCommands: false,
    supportsCompact: false,
    supportsStreaming: false,
    versions: {
      oldestKnown: '0.166.0',
      holes: [{ below: '0.23.0', what: 'CVE-2025-61260, a repository can run commands when Codex starts in it' }],
    },
    subcommand: 'exec',
    ownOptions: [
      // `--trust` would be persisted, even for an untrusted project.
      { names: ['--json', '--skip-git-repo-check', '--trust', '-'], takesValue: false },
      { names: ['-C', '--cd'], takesValue: true },
    ],
    modelOption: { names: ['-m', '--model'], takesValue: true },
  }

  name() {
    return 'codex' as const
  }

  buildArgs(prompt: string, _systemPromptOrFile: string, sessionId?: string): string[] {
    const { workingDir, model } = this.config
    const args = ['exec', '--json', BYPASS, '--cd', workingDir, ...optionArgs('--model', model)]
    return [...args, ...(sessionId ? ['resume', sessionId] : []), prompt]
  }

  protected async invocation(turn: Turn, place: Place, signal: AbortSignal): Promise<Invocation> {
    const { systemPrompt, sessionId, model, workingDir, isUntrusted, command } = turn
    const { args: further = [], format } = command ?? {}
    const instructions = systemPrompt === '' ? undefined : instructionsHook(systemPrompt, place.files)
    return {
      // Everything comes before `resume`: the CLI rejects some options after it.
      args: [
        ...['exec', ...(format === 'text' ? [] : ['--json'])],
        ...sandboxArgs(command),
        ...['--cd', workingDir],
        ...optionArgs('--model', model),
        // Needs an option after it: some, such as --image, take every word up to the next option.
        ...further,
        '--skip-git-repo-check',
        ...COMMON_ARGS,
        ...(isUntrusted ? untrustedArgs(workingDir) : await trustArgs(workingDir, place, signal)),
        ...(instructions?.args ?? []),
        ...(command?.sessionArgs ?? optionArgs('resume', sessionId)),
        '-',
      ],
      ...(instructions && { environment: instructions.environment, expects: DELIVERED }),
    }
  }

  protected override warmDriver(): WarmDriver {
    return codexWarmDriver((_turn, _place, _signal, variables) => ({
      args: ['app-server', ...storeArgs(variables), ...COMMON_ARGS],
    }))
  }

  protected login(place: LoginPlace): Promise<LoginReading> {
    return codexLogin(place)
  }

  protected override listModels(place: LoginPlace): Promise<string[]> {
    return codexModels(place)
  }

  protected translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation {
    return new CodexTranslation(emit, turn)
  }
}

const COMMON_ARGS = [
  ...['-c', 'check_for_update_on_startup=false'],
  // Otherwise it waits indefinitely for a server that is down.
  ...['--disable', 'unbounded_connection_retries'],
]

const BYPASS = '--dangerously-bypass-approvals-and-sandbox'
const SANDBOX_MODE = /^sandbox_mode\s*=/

/** The first tested version in which `exec` does not trust every project. */
const FIRST_WITH_TRUST = '0.169.0'

async function trustArgs(workingDir: string, place: Place, signal: AbortSignal): Promise<string[]> {
  return isAtLeast(await place.version(signal), FIRST_WITH_TRUST) ? trustedArgs(workingDir) : []
}

/** None if the template sets its own sandbox. */
function sandboxArgs({ args = [], template = args, isReadOnly = false }: Partial<AgentCommand> = {}): string[] {
  const isSaid =
    namesOption(template, [BYPASS, '--yolo', '--sandbox']) ||
    template.some((element, index) => {
      const isSetting = ['-c', '--config'].includes(template[index - 1] ?? '')
      return /^-s(?!-)|^(?:-c=?|--config=)sandbox_mode\s*=/.test(element) || (isSetting && SANDBOX_MODE.test(element))
    })
  if (isSaid) return []
  return isReadOnly ? ['--sandbox', 'read-only'] : [BYPASS]
}

class CodexTranslation extends Translation {
  #lastMessage: string | undefined
  /** The message that is being streamed, and how much of it has been. */
  #streamed = { id: '', length: 0 }
  #startedTools = new Set<string>()

  protected translate(value: JsonObject): void {
    const line = value as CodexLine
    switch (line.type) {
      case 'thread.started':
        if (this.isRequestedSession(line.thread_id)) this.started(line.thread_id)
        return
      case 'turn.started':
      case 'item.updated':
        return
      case 'item.started':
        return this.#itemStarted(line.item)
      case 'item.completed':
        return this.#itemCompleted(line.item)
      case 'item.delta':
        this.#continue(line.item_id)
        this.#streamed.length += line.text.length
        return this.output(line.text)
      case 'turn.completed':
        if (line.usage) this.#count(line.usage)
        this.succeeded(this.#lastMessage ?? '')
        return
      case 'turn.usage':
        return this.#count(line.usage, line.before)
      case 'turn.failed':
        return this.failed(line.error.message, undefined, { status: line.error.status })
      case 'error':
        // May be a mere retry; only `turn.failed` is the end.
        return this.reportProblem(line.message)
      case 'message':
        return this.#message(line)
      default:
        return this.unknown((line as JsonObject)['type'])
    }
  }

  #itemStarted(item: CodexItem): void {
    if (NO_TOOLS.has(item.type)) return
    this.#startedTools.add(item.id)
    const input: JsonObject = {}
    for (const name in item) if (!NOT_INPUT.has(name)) input[name] = item[name]
    this.toolUse(item.id, item.type, input)
  }

  #itemCompleted(item: CodexItem): void {
    switch (item.type) {
      case 'agent_message':
        this.#lastMessage = item.text ?? ''
        this.#continue(item.id)
        return this.output(this.#lastMessage.slice(this.#streamed.length))
      case 'reasoning':
        return this.thinking(item.text ?? '')
      case 'error':
        // A warning: the turn continues.
        return this.notice(item.message ?? '')
      case 'todo_list':
        return
      default: {
        // Some tools are only ever completed.
        if (!this.#startedTools.has(item.id)) this.#itemStarted(item)
        const { exit_code: exitCode } = item
        return this.toolResult({
          toolId: item.id,
          content: outcomeOf(item),
          isError: item.status === 'failed',
          ...(typeof exitCode === 'number' && { metadata: { exitCode } }),
        })
      }
    }
  }

  /** Each message is a separate text. */
  #continue(itemId: string): void {
    if (this.#streamed.id === itemId) return
    this.#streamed = { id: itemId, length: 0 }
    this.endText()
  }

  #message(line: Extract<CodexLine, { type: 'message' }>): void {
    if (line.role !== 'assistant') return
    if (!this.isRequestedSession(line.session_id)) return
    this.setSession(line.session_id)
    const { content } = line
    const text = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('')
    this.endText()
    this.output(text)
    this.succeeded(text)
    // Another message may follow.
    this.keepsWorking()
  }

  /** Codex reports totals of the whole thread. */
  #count(usage: Record<string, number>, countBefore?: Record<string, number>): void {
    const total = usageOf(usage)
    this.sessionUsage = total
    const before = countBefore ? usageOf(countBefore) : this.turn?.sessionUsage
    if (before) this.usage = combineUsage(total, before, -1)
    else if (this.turn?.sessionId === undefined) this.usage = total
  }
}

function usageOf(counts: Record<string, number>): TokenUsage {
  const cached = counts['cached_input_tokens'] ?? 0
  const written = counts['cache_write_input_tokens'] ?? 0
  return tokenUsage({
    inputTokens: (counts['input_tokens'] ?? 0) - cached - written,
    outputTokens: counts['output_tokens'],
    cacheReadTokens: cached,
    cacheWriteTokens: written,
    reasoningTokens: counts['reasoning_output_tokens'],
  })
}

function outcomeOf({ aggregated_output, changes, result, error }: CodexItem): string {
  const outcome = aggregated_output ?? changes ?? result ?? error?.message ?? ''
  return typeof outcome === 'string' ? outcome : JSON.stringify(outcome)
}

/** Fields of a tool's item that are not its input. */
const NOT_INPUT = new Set(['id', 'type', 'status', 'aggregated_output', 'exit_code', 'result', 'error', '__proto__'])

const NO_TOOLS = new Set(['agent_message', 'reasoning', 'error', 'todo_list'])
