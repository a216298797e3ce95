// Pi. Wire types captured from `pi --mode json`, CLI 0.73.1, and the same in 0.87.1; see test/fixtures/pi and
// docs/backends/pi.md.

import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { CliBackend, type CliTraits, type Invocation } from '../engine/cli-backend.js'
import { optionArgs, withoutOptions } from '../engine/command-args.js'
import type { JsonObject } from '../engine/jsonl.js'
import { piLogin, piModels } from './login.js'
import { piWarmDriver } from './warm-driver.js'
import type { WarmDriver } from '../engine/warm/types.js'
import type { LoginPlace, LoginReading } from '../engine/login.js'
import type { Place } from '../engine/place.js'
import { PROVIDER_VARIABLES } from '../engine/provider-variables.js'
import { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentEventBody } from '../types.js'
import { isAtLeast } from '../../core/versions.js'

type PiLine =
  | { type: 'session'; id: string }
  | { type: 'message_update'; assistantMessageEvent: { type: string; delta?: string } }
  | { type: 'message_end' | 'turn_end'; message: PiMessage }
  | { type: 'tool_execution_start'; toolCallId: string; toolName: string; args: Record<string, unknown> }
  | { type: 'tool_execution_end'; toolCallId: string; toolName: string; result: PiContent; isError?: boolean }
  | { type: 'auto_retry_start'; attempt: number; maxAttempts: number; errorMessage: string }
  | { type: 'compaction_start'; reason?: string }
  | { type: (typeof IGNORED)[number] }

const IGNORED = [
  ...(['agent_start', 'agent_end', 'turn_start', 'message_start', 'tool_execution_update'] as const),
  ...(['auto_retry_end', 'compaction_end', 'queue_update'] as const),
  // Since 0.74.
  ...(['agent_settled', 'entry_appended', 'session_info_changed', 'thinking_level_changed'] as const),
  ...(['summarization_retry_scheduled', 'summarization_retry_attempt_start', 'summarization_retry_finished'] as const),
]

interface PiContent {
  content?: Array<{ type: string; text?: string }>
}

interface PiMessage extends PiContent {
  role: string
  stopReason?: 'stop' | 'toolUse' | 'length' | 'error' | 'aborted'
  errorMessage?: string
  model?: string
  usage?: {
    input?: number
    output?: number
    cacheRead?: number
    cacheWrite?: number
    cost?: { total?: number }
  }
}

export class PiBackend extends CliBackend {
  protected readonly traits: CliTraits = {
    label: 'Pi',
    packageName: '@earendil-works/pi-coding-agent',
    variables: ['PI_*', 'OPENCODE_API_KEY', ...PROVIDER_VARIABLES],
    sessionId: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
    // It splits its list at every comma, even inside parentheses.
    hasToolNamesOnly: true,
    // On SIGINT it leaves a running command behind.
    stopSignal: 'SIGTERM',
    failureSigns: [
      [/no session found matching/i, 'session_lost'],
      [/session found in different project/i, 'session_lost'],
      // It crashes on records that it does not understand.
      [/^at (?:\w+ )?_?SessionManager\.build/, 'session_lost'],
      [/no api key found/i, 'auth'],
      [/unknown provider "/i, 'model_unknown'],
    ],
    supportsMaxTurns: true,
    supportsToolControl: true,
    supportsCommands: true,
    supportsCompact: false,
    supportsStreaming: true,
    versions: { oldestKnown: '0.73.1', holes: [] },
    ownOptions: [
      { names: ['-p', '--print', '-c', '--continue', '-r', '--resume'], takesValue: false },
      { names: ['--mode', '--session'], takesValue: true },
    ],
    modelOption: { names: ['--model'], takesValue: true },
  }

  name() {
    return 'pi' as const
  }

  buildArgs(prompt: string, systemPromptOrFile: string, sessionId?: string): string[] {
    const { model, allowedTools } = this.config
    return [
      ...['-p', '--mode', 'json'],
      ...choiceArgs(model, allowedTools),
      ...sessionArgs(sessionId),
      ...systemPromptArgs(systemPromptOrFile),
      prompt,
    ]
  }

  protected invocation(turn: Turn, place: Place, signal: AbortSignal): Promise<Invocation> {
    return this.#launch(['-p', '--mode', turn.command?.format ?? 'json'], turn, place, signal)
  }

  protected override warmDriver(): WarmDriver {
    const launch: WarmDriver['launch'] = (turn, place, signal) => this.#launch(['--mode', 'rpc'], turn, place, signal)
    return piWarmDriver(launch)
  }

  async #launch(mode: string[], turn: Turn, place: Place, signal: AbortSignal): Promise<Invocation> {
    const { systemPrompt, sessionId, model, allowedTools, isUntrusted, command } = turn
    const trust = await trustArgs(isUntrusted, place, signal)
    return {
      args: [
        ...mode,
        // The last option wins: a template may distrust a project, but not trust an untrusted one.
        ...(isUntrusted ? [] : trust),
        ...choiceArgs(model, allowedTools),
        ...(command?.sessionArgs ?? sessionArgs(sessionId)),
        ...withoutOptions(command?.args ?? [], allowedTools.length > 0 ? [TOOLS_OPTION] : []),
        ...(isUntrusted ? [...UNTRUSTED_ARGS, ...trust] : []),
        ...(systemPrompt === '' ? [] : await operatorPromptArgs(place, signal)),
        ...systemPromptArgs(systemPrompt === '' ? '' : place.files.write('system-prompt.md', systemPrompt)),
      ],
      // Otherwise it first installs packages named by the repository.
      defaults: { PI_OFFLINE: '1' },
      ...(isUntrusted && { environment: { PI_OFFLINE: '1' } }),
    }
  }

  protected override untrustedObstacle({ workingDir }: Turn): string | undefined {
    const file = OBEYED_FILES.find((name) => lstatSync(join(workingDir, name), { throwIfNoEntry: false }))
    if (file === undefined) return undefined
    return `The project is untrusted and has ${file}, which Pi would follow. Remove the file, trust the project or choose another agent.`
  }

  /**
   * A leading slash would run a command of an extension or expand a template. Pi trims its input, so a space does not
   * prevent that; a zero-width space does.
   */
  protected override neutralise(prompt: string): string {
    return prompt.trimStart().startsWith('/') ? `\u200B${prompt}` : prompt
  }

  protected login(place: LoginPlace): Promise<LoginReading> {
    return piLogin(place)
  }

  protected override listModels(place: LoginPlace): Promise<string[]> {
    return piModels(place)
  }

  protected translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation {
    return new PiTranslation(emit, turn)
  }
}

/** The first version that asks whether a project is trusted, and without a terminal assumes that it is not. */
const FIRST_WITH_TRUST = '0.79.0'

/** Nobody could answer, but the operator already has. Older versions lack the option and trust every project. */
async function trustArgs(isUntrusted: boolean, place: Place, signal: AbortSignal): Promise<string[]> {
  if (!isAtLeast(await place.version(signal), FIRST_WITH_TRUST)) return []
  return [isUntrusted ? '--no-approve' : '--approve']
}

/** No extensions, skills, templates, themes or context files at all: Pi cannot disable only those of the directory. */
const UNTRUSTED_ARGS = ['-ne', '-ns', '-np', '--no-themes', '-nc']

/**
 * Older versions cannot be made to ignore these, and newer ones read the session directory from the settings before they
 * ask about trust. The settings can also name a shell, and commands that run before every command.
 */
const OBEYED_FILES = ['.pi/settings.json', '.pi/SYSTEM.md', '.pi/APPEND_SYSTEM.md']

/** The configured list of tools overrides a template's. */
const TOOLS_OPTION = { names: ['-t', '--tools'], takesValue: true }

function choiceArgs(model: string | undefined, allowedTools: string[]): string[] {
  return [...optionArgs('--model', model), ...(allowedTools.length === 0 ? [] : ['--tools', allowedTools.join(',')])]
}

function sessionArgs(sessionId: string | undefined): string[] {
  return sessionId ? ['--session', sessionId] : []
}

/** The flag takes a text, or the path of a file with the text. */
function systemPromptArgs(textOrFile: string): string[] {
  return textOrFile === '' ? [] : ['--append-system-prompt', textOrFile]
}

/** With the flag, Pi ignores the operator's own file of additions, so it is passed too. */
async function operatorPromptArgs({ environment, home, readFile }: Place, signal: AbortSignal): Promise<string[]> {
  const file = join(environment['PI_CODING_AGENT_DIR'] ?? join(home, '.pi', 'agent'), 'APPEND_SYSTEM.md')
  return (await readFile(file, signal)) === undefined ? [] : systemPromptArgs(file)
}

class PiTranslation extends Translation {
  protected translate(value: JsonObject): void {
    const line = value as PiLine
    switch (line.type) {
      case 'session':
        if (this.isRequestedSession(line.id)) this.started(line.id)
        return
      case 'message_update':
        return this.#update(line.assistantMessageEvent)
      case 'message_end':
        if (line.message.role === 'assistant') this.#messageEnd(line.message)
        return
      case 'turn_end':
        if (line.message.stopReason === 'toolUse') this.countTurn()
        return
      case 'tool_execution_start':
        return this.toolUse(line.toolCallId, line.toolName, line.args)
      case 'tool_execution_end':
        return this.toolResult({
          toolId: line.toolCallId,
          content: textOf(line.result),
          isError: line.isError === true,
        })
      case 'auto_retry_start':
        this.keepsWorking()
        return this.notice(`${line.errorMessage} (retry ${line.attempt} of ${line.maxAttempts})`)
      case 'compaction_start':
        this.keepsWorking()
        return this.notice(`The agent is compacting the conversation (${line.reason ?? 'too long'}).`)
      default:
        if (!IGNORED.includes(line.type)) this.unknown((line as JsonObject)['type'])
    }
  }

  /** Only `delta` is reliable: the accompanying message is a live object and may run ahead. */
  #update(event: { type: string; delta?: string }): void {
    if (event.type === 'text_start') this.endText()
    else if (event.type === 'text_delta') this.output(event.delta ?? '')
    else if (event.type === 'thinking_delta') this.thinking(event.delta ?? '')
  }

  /** The last message without a tool call is the answer. After an error, Pi may retry and send another. */
  #messageEnd(message: PiMessage): void {
    this.endText()
    if (message.usage) this.#spend(message.usage)
    const { stopReason = 'stop', errorMessage } = message
    if (stopReason === 'error' || stopReason === 'aborted') this.failed(errorMessage)
    else if (stopReason !== 'toolUse') this.succeeded(textOf(message))
  }

  #spend({ input, output, cacheRead, cacheWrite, cost }: NonNullable<PiMessage['usage']>): void {
    this.count({
      inputTokens: input,
      outputTokens: output,
      cacheReadTokens: cacheRead,
      cacheWriteTokens: cacheWrite,
    })
    this.spent(cost?.total)
  }
}

function textOf({ content = [] }: PiContent): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
