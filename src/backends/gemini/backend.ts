// Gemini CLI. Wire types captured from `gemini -o stream-json`, CLI 0.61.0; see test/fixtures/gemini and
// docs/backends/gemini.md.

import { parseTool } from '../engine/allowed-tool.js'
import { CliBackend, type CliTraits, type Invocation } from '../engine/cli-backend.js'
import { namesOption, optionArgs } from '../engine/command-args.js'
import { geminiLogin } from './login.js'
import { createGeminiHome, unsupportedHooks } from './home.js'
import type { JsonObject } from '../engine/jsonl.js'
import { geminiWarmDriver } from './warm-driver.js'
import type { WarmDriver } from '../engine/warm/types.js'
import type { LoginPlace, LoginReading } from '../engine/login.js'
import type { Place, RunFiles } from '../engine/place.js'
import { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentEventBody } from '../types.js'

type GeminiLine =
  | { type: 'init'; session_id: string; model?: string }
  | { type: 'message'; role: string; content: string }
  | { type: 'tool_use'; tool_name: string; tool_id: string; parameters: Record<string, unknown> }
  | { type: 'tool_result'; tool_id: string; status: string; output?: string; error?: { message?: string } }
  | { type: 'error'; message: string }
  | { type: 'result'; status: string; error?: GeminiError; stats?: StreamStats }
  // Made by gemini/warm-lines.ts, for thoughts, which only `gemini --acp` has, and after each round of tools.
  | { type: 'thought'; content: string }
  | { type: 'round' }
  // `--output-format json`, and a shape that `parseOutput` also accepts.
  | { type?: undefined; response?: string; session_id?: string; error?: GeminiError; stats?: WholeStats }

interface GeminiError {
  type?: string
  message?: string
  /** Of the model server. */
  status?: unknown
}

interface StreamStats {
  total_tokens?: number
  input_tokens?: number
  output_tokens?: number
  cached?: number
}

interface WholeStats {
  models?: Record<string, { tokens: Record<'prompt' | 'candidates' | 'total' | 'cached', number> }>
}

const MAX_ATTEMPTS = 3

export class GeminiBackend extends CliBackend {
  protected readonly traits: CliTraits = {
    label: 'Gemini',
    packageName: '@google/gemini-cli',
    variables: ['GEMINI_*', 'GOOGLE_*'],
    sessionId: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
    stopSignal: 'SIGTERM',
    // Longer input is truncated with a mere warning.
    promptLimit: { size: 8_388_608, unit: 'bytes' },
    failureSigns: [
      [/error resuming session|invalid session identifier|no previous sessions found/i, 'session_lost'],
      // It continues a session with tool results sent twice, which model servers refuse.
      [/number of function response parts is equal to the number of function call parts/i, 'session_lost'],
      [/must specify the \w+ environment variable|set an auth method|invalid auth method/i, 'auth'],
      [/max session turns/i, 'max_turns'],
      // Only on stderr.
      [/_ApiError: \{"error":\{"code":400\b/, 'refused'],
    ],
    supportsMaxTurns: true,
    forgetsPausedTurns: true,
    supportsToolControl: true,
    supportsCommands: true,
    supportsCompact: false,
    supportsStreaming: true,
    versions: {
      oldestKnown: '0.61.0',
      holes: [{ below: '0.1.14', what: 'a repository can hide commands in an allowed one' }],
    },
    ownOptions: [
      { names: ['-y', '--yolo'], takesValue: false },
      {
        names: [
          ...['-o', '--output-format', '-p', '--prompt', '-i', '--prompt-interactive'],
          ...['-r', '--resume', '--session-id'],
        ],
        takesValue: true,
      },
    ],
    modelOption: { names: ['-m', '--model'], takesValue: true },
  }

  name() {
    return 'gemini' as const
  }

  buildArgs(prompt: string, _systemPromptOrFile: string, sessionId?: string): string[] {
    return [
      ...['--output-format', 'json', ...YOLO],
      ...optionArgs('--model', this.config.model),
      ...(sessionId ? ['--resume', sessionId] : []),
      prompt,
    ]
  }

  protected async invocation(turn: Turn, place: Place, signal: AbortSignal): Promise<Invocation> {
    const { sessionId, model, maxTurns, command } = turn
    const { args: further = [], format = 'stream-json' } = command ?? {}
    return {
      args: [
        ...['--output-format', format],
        ...(namesOption(further, ['--approval-mode']) ? [] : YOLO),
        ...optionArgs('--model', model),
        ...(command?.sessionArgs ?? optionArgs('--resume', sessionId)),
        // Before --admin-policy, which takes every word up to the next option.
        ...further,
        ...policyArgs(turn, place.files),
      ],
      environment: await runEnvironment(turn, place, signal, maxTurns),
    }
  }

  protected override warmDriver(): WarmDriver {
    return geminiWarmDriver(async (turn, place, signal) => {
      const hooks = await unsupportedHooks(place, signal, turn)
      if (hooks.length > 0) throw new Error(`a warm Gemini CLI does not run these hooks: ${hooks.join(', ')}`)
      return {
        args: ['--acp', ...(turn.isAsking ? ASKING : YOLO), ...policyArgs(turn, place.files)],
        // No limit in the CLI: it would count the turns of the whole session.
        environment: await runEnvironment(turn, place, signal, -1),
      }
    })
  }

  /** A leading slash would run a command of the CLI; `@path` would put that file into the context. */
  protected override neutralise(prompt: string, isWarm: boolean): string {
    // With `--acp`, a space does not help, a dollar acts like a slash, and `@` does nothing.
    if (isWarm) return prompt.replace(/^(?=\s*[/$])/, '\\')
    const escaped = prompt.replaceAll(/(?<!\\)@/g, '\\@')
    return escaped.startsWith('/') ? ` ${escaped}` : escaped
  }

  protected login(place: LoginPlace): Promise<LoginReading> {
    return geminiLogin(place)
  }

  protected translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation {
    return new GeminiTranslation(emit, turn)
  }
}

const YOLO = ['--approval-mode', 'yolo']
const ASKING = ['--approval-mode', 'default']

async function runEnvironment(
  turn: Turn,
  place: Place,
  signal: AbortSignal,
  maxSessionTurns: number,
): Promise<Record<string, string>> {
  return {
    GEMINI_CLI_HOME: await createGeminiHome(place, signal, turn.systemPrompt, {
      general: {
        maxAttempts: MAX_ATTEMPTS,
        enableAutoUpdate: false,
        enableAutoUpdateNotification: false,
        // It mistakes a continued session for an empty one and deletes it when another begins.
        sessionRetention: { enabled: false },
      },
      ...(maxSessionTurns !== 0 && { model: { maxSessionTurns } }),
      ...(turn.isUntrusted && UNTRUSTED_SETTINGS),
    }),
    // Nobody could answer whether the directory is trusted, but the operator already has.
    GEMINI_CLI_TRUST_WORKSPACE: String(!turn.isUntrusted),
    // Otherwise it runs as a child of a process that ignores signals.
    GEMINI_CLI_NO_RELAUNCH: 'true',
    // When the model fails, it writes the whole conversation there, world-readable.
    TMPDIR: place.files.path,
  }
}

function policyArgs(turn: Turn, files: RunFiles): string[] {
  const rules = policy(turn)
  return optionArgs('--admin-policy', rules && files.write('policy.toml', rules))
}

/**
 * Gemini ignores settings, hooks, MCP servers, skills and GEMINI.md of an untrusted directory. Without a terminal it does
 * not start there unless the folder trust feature is off; GEMINI_CLI_TRUST_WORKSPACE is obeyed all the same.
 */
const UNTRUSTED_SETTINGS = { security: { folderTrust: { enabled: false } }, advanced: { ignoreLocalEnv: true } }

/**
 * Allows only the listed tools; `run_shell_command(git)` allows only commands that begin with `git`. An untrusted
 * directory disables the approval mode `yolo`, which a rule restores.
 */
function policy({ allowedTools, isUntrusted, isAsking }: Turn): string | undefined {
  if (allowedTools.length === 0) return isUntrusted && !isAsking ? EVERY_TOOL : undefined
  const allow = allowedTools.map((tool) => {
    const { name, calls: prefix } = parseTool(tool)
    const decision = isAsking && !READING_TOOLS.has(name) ? 'ask_user' : 'allow'
    return [
      `[[rule]]\ntoolName = ${JSON.stringify(name)}\ndecision = "${decision}"\npriority = 950\nallowRedirection = true`,
      ...(prefix === undefined ? [] : [`commandPrefix = ${JSON.stringify(prefix)}`]),
    ].join('\n')
  })
  return ['[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 900', ...allow, ''].join('\n\n')
}

/** Read-only tools, about which the CLI itself does not ask. */
const READING_TOOLS = new Set([
  ...['read_file', 'read_many_files', 'list_directory', 'glob', 'grep_search', 'search_file_content'],
  ...['google_web_search', 'update_topic', 'write_todos'],
])

const EVERY_TOOL = '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 950\nallowRedirection = true\n'

class GeminiTranslation extends Translation {
  /** The text since the last tool. */
  #answer = ''

  protected translate(value: JsonObject): void {
    const line = value as GeminiLine
    switch (line.type) {
      case 'init':
        return this.started(line.session_id, line.model)
      case 'message':
        // The prompt is echoed as a message too.
        if (line.role !== 'assistant') return
        this.#answer += line.content
        return this.output(line.content)
      case 'thought':
        return this.thinking(line.content)
      case 'round':
        return this.countTurn()
      case 'tool_use':
        this.#answer = ''
        return this.toolUse(line.tool_id, line.tool_name, line.parameters)
      case 'tool_result':
        return this.toolResult({
          toolId: line.tool_id,
          content: line.output ?? line.error?.message ?? '',
          isError: line.status !== 'success',
        })
      case 'error':
        return this.reportProblem(line.message)
      case 'result':
        return this.#result(line)
      case undefined:
        return this.#whole(line)
      default:
        return this.unknown((line as JsonObject)['type'])
    }
  }

  #result({ status, error, stats }: Extract<GeminiLine, { type: 'result' }>): void {
    if (stats) this.#spend(stats.input_tokens, stats.output_tokens, stats.total_tokens, stats.cached)
    if (status === 'success') this.succeeded(this.#answer)
    else this.#fail(error)
  }

  #whole(line: Extract<GeminiLine, { type?: undefined }>): void {
    this.setSession(line.session_id)
    if (line.error) this.#fail(line.error)
    else if (typeof line.response === 'string') this.succeeded(line.response)
    else this.unknown(Object.keys(line).join(', '))
    for (const { tokens } of Object.values(line.stats?.models ?? {})) {
      this.#spend(tokens.prompt, tokens.candidates, tokens.total, tokens.cached)
    }
  }

  #fail(error: GeminiError | undefined): void {
    const reason = error?.type === 'FatalTurnLimitedError' ? 'max_turns' : undefined
    this.failed(error?.message ?? this.lastProblem, reason, { status: error?.status })
  }

  /** The input includes cached tokens; thinking is counted only in the total. */
  #spend(input = 0, output = 0, total = input + output, cached = 0): void {
    const reasoning = Math.max(0, total - input - output)
    this.count({
      inputTokens: input - cached,
      outputTokens: output + reasoning,
      cacheReadTokens: cached,
      reasoningTokens: reasoning,
    })
  }
}
