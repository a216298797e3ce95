// Codex. Wire types captured from `codex exec --json`, CLI 0.166.0; see test/fixtures/codex and docs/backends/codex.md.

import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { CliBackend, type CliTraits, type Invocation } from './cli-backend.js'
import { namesOption } from './command-args.js'
import type { JsonObject } from './jsonl.js'
import type { Place, RunFiles } from './place.js'
import { combineUsage, tokenUsage, Translation } from './translation.js'
import type { Turn } from './turn.js'
import type { AgentCommand, AgentEventBody, TokenUsage } from './types.js'

type CodexLine =
  | { type: 'thread.started'; thread_id: string }
  | { type: 'turn.started' }
  | { type: 'item.started' | 'item.updated' | 'item.completed'; item: CodexItem }
  | { type: 'turn.completed'; usage?: Record<string, number> }
  | { type: 'turn.failed'; error: { message: string } }
  | { type: 'error'; message: string }
  // The gateway document's shape.
  | { type: 'message'; role: string; content: string | Array<{ text?: string }>; session_id?: string }

/** `text` of agent_message and reasoning, `message` of error; every other type is a tool with fields of its own. */
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
      [/missing environment variable|codex login/i, 'auth'],
    ],
    supportsMaxTurns: false,
    supportsToolControl: false,
    supportsStreaming: false,
    versions: {
      oldestKnown: '0.166.0',
      holes: [{ below: '0.23.0', what: 'CVE-2025-61260, a repository can run commands when Codex starts in it' }],
    },
    subcommand: 'exec',
    ownOptions: [
      { names: ['--json', '--skip-git-repo-check', '-'], takesValue: false },
      { names: ['-C', '--cd'], takesValue: true },
    ],
    modelOption: { names: ['-m', '--model'], takesValue: true },
  }

  name() {
    return 'codex' as const
  }

  buildArgs(prompt: string, _systemPromptOrFile: string, sessionId?: string): string[] {
    const { workingDir, model } = this.config
    const args = ['exec', '--json', BYPASS, '--cd', workingDir, ...modelArgs(model)]
    return [...args, ...(sessionId ? ['resume', sessionId] : []), prompt]
  }

  protected invocation(turn: Turn, { files }: Place): Invocation {
    const { systemPrompt, sessionId, model, workingDir, isUntrusted, command } = turn
    const { args: further = [], format } = command ?? {}
    const instructions = systemPrompt === '' ? undefined : instructionsHook(systemPrompt, files)
    return {
      // Everything stands before `resume`: the CLI refuses some options after it.
      args: [
        ...['exec', ...(format === 'text' ? [] : ['--json'])],
        ...sandboxArgs(command),
        ...['--cd', workingDir],
        ...modelArgs(model),
        // With options after it: some, such as --image, take every word up to the next one.
        ...further,
        '--skip-git-repo-check',
        ...['-c', 'check_for_update_on_startup=false'],
        // Otherwise a server that is down is waited for without end.
        ...['--disable', 'unbounded_connection_retries'],
        ...(isUntrusted ? untrustedArgs(workingDir) : []),
        ...(instructions?.args ?? []),
        ...(command?.sessionArgs ?? (sessionId === undefined ? [] : ['resume', sessionId])),
        '-',
      ],
      ...(instructions && { environment: instructions.environment, expects: DELIVERED }),
    }
  }

  protected translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation {
    return new CodexTranslation(emit, turn)
  }
}

const BYPASS = '--dangerously-bypass-approvals-and-sandbox'
const SANDBOX_MODE = /^sandbox_mode\s*=/

function modelArgs(model: string | undefined): string[] {
  return model === undefined ? [] : ['--model', model]
}

/** None when the template says itself what Codex may do. */
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

/**
 * Settings, hooks and MCP servers of a directory count only where it is trusted. Not so AGENTS.md, which is read up to a
 * limit, and skills, which are told to the model or not, those of the operator too.
 */
function untrustedArgs(workingDir: string): string[] {
  const projects = withParents(workingDir).map((path) => `${JSON.stringify(path)}={trust_level="untrusted"}`)
  return [
    ...['-c', `projects={${projects.join(',')}}`],
    ...['-c', 'project_doc_max_bytes=0'],
    ...['-c', 'skills.include_instructions=false'],
    '--ignore-rules',
  ]
}

/** The directory and all above it: the operator may trust any of them. */
function withParents(directory: string): string[] {
  const parent = dirname(directory)
  return parent === directory ? [directory] : [directory, ...withParents(parent)]
}

// How the system prompt reaches the model. `developer_instructions` would be taken on the first turn only, and the
// other settings replace Codex' own prompt. A SessionStart hook runs on every start and adds a developer message; so
// that a long conversation does not repeat it turn by turn, it stays silent while the last one it added is the same.
const DIRECTORY = 'AETHEEL_INSTRUCTIONS'
const OPENING = '<gateway_instructions>'
const HOOK_COMMAND = [
  `cd "$${DIRECTORY}" && cat > event && : > delivered`,
  `transcript=$(sed -n 's/.*"transcript_path":"\\([^"]*\\)".*/\\1/p' event)`,
  `{ grep -q '"source":"resume"' event && grep -F '${OPENING}' "$transcript" 2>/dev/null | tail -n 1 | grep -qF -f known; } || cat answer`,
].join('; ')
const HOOK = {
  additionalContextLimit: 200_000,
  async: false,
  command: HOOK_COMMAND,
  timeout: 600,
  type: 'command',
}
/** Codex runs a hook only when its hash is trusted: sha-256 over its JSON with sorted keys. */
const HOOK_HASH = createHash('sha256')
  .update(JSON.stringify({ event_name: 'session_start', hooks: [HOOK] }))
  .digest('hex')

const DELIVERED = {
  file: 'delivered',
  otherwise: 'This version of Codex did not take the system prompt; its own prompt was used alone.',
}

function instructionsHook(systemPrompt: string, files: RunFiles) {
  const additionalContext = `${OPENING}\n${systemPrompt}\n</gateway_instructions>`
  const answer = { hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext } }
  files.write('answer', JSON.stringify(answer))
  files.write('known', JSON.stringify(additionalContext).slice(1, -1))
  const hook = `type="command",command=${JSON.stringify(HOOK.command)},additionalContextLimit=${HOOK.additionalContextLimit}`
  const trust = `{"/<session-flags>/config.toml:session_start:0:0"={trusted_hash="sha256:${HOOK_HASH}"}}`
  return {
    args: [
      ...['--enable', 'hooks'],
      ...['-c', `hooks.SessionStart=[{hooks=[{${hook}}]}]`],
      ...['-c', `hooks.state=${trust}`],
    ],
    environment: { [DIRECTORY]: files.path },
  }
}

class CodexTranslation extends Translation {
  #lastMessage: string | undefined
  #startedTools = new Set<string>()

  protected translate(value: JsonObject): void {
    const line = value as CodexLine
    switch (line.type) {
      case 'thread.started':
        if (this.isAskedSession(line.thread_id)) this.started(line.thread_id)
        return
      case 'turn.started':
      case 'item.updated':
        return
      case 'item.started':
        return this.#itemStarted(line.item)
      case 'item.completed':
        return this.#itemCompleted(line.item)
      case 'turn.completed':
        if (line.usage) this.#count(line.usage)
        this.succeeded(this.#lastMessage ?? '')
        return
      case 'turn.failed':
        return this.failed(line.error.message)
      case 'error':
        // Also a mere retry is reported so; only `turn.failed` is the end.
        return this.complained(line.message)
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
        this.endText()
        return this.output(this.#lastMessage)
      case 'reasoning':
        return this.thinking(item.text ?? '')
      case 'error':
        // A warning: the turn goes on.
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

  #message(line: Extract<CodexLine, { type: 'message' }>): void {
    if (line.role !== 'assistant') return
    if (!this.isAskedSession(line.session_id)) return
    this.inSession(line.session_id)
    const { content } = line
    const text = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('')
    this.endText()
    this.output(text)
    this.succeeded(text)
  }

  /** Codex counts over the whole thread. */
  #count(usage: Record<string, number>): void {
    const cached = usage['cached_input_tokens'] ?? 0
    const written = usage['cache_write_input_tokens'] ?? 0
    const total: TokenUsage = tokenUsage({
      inputTokens: (usage['input_tokens'] ?? 0) - cached - written,
      outputTokens: usage['output_tokens'],
      cacheReadTokens: cached,
      cacheWriteTokens: written,
      reasoningTokens: usage['reasoning_output_tokens'],
    })
    this.sessionUsage = total
    const before = this.turn?.sessionUsage
    if (before) this.usage = combineUsage(total, before, -1)
    else if (this.turn?.sessionId === undefined) this.usage = total
  }
}

function outcomeOf({ aggregated_output, changes, result, error }: CodexItem): string {
  const outcome = aggregated_output ?? changes ?? result ?? error?.message ?? ''
  return typeof outcome === 'string' ? outcome : JSON.stringify(outcome)
}

/** What is not a tool's input in its item. */
const NOT_INPUT = new Set(['id', 'type', 'status', 'aggregated_output', 'exit_code', 'result', 'error', '__proto__'])

const NO_TOOLS = new Set(['agent_message', 'reasoning', 'error', 'todo_list'])
