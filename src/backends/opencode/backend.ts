// OpenCode. Wire types captured from `opencode run --format json`, CLI 1.18.33; see test/fixtures/opencode and
// docs/backends/opencode.md.

import { lstatSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { isDirectory } from '../../core/paths.js'
import type { ProcessOptions } from '../../processes/local-process.js'
import { CliBackend, type CliTraits, type Invocation } from '../engine/cli-backend.js'
import { namesOption, optionArgs, withoutOptions } from '../engine/command-args.js'
import type { JsonObject } from '../engine/jsonl.js'
import {
  OPENCODE,
  type OpenCodeError,
  OpenCodeTranslation,
  permissionOf,
  SESSION_TITLE,
  type StepFinish,
  type ToolPart,
} from './format.js'
import { MODEL_OPTION, withWholeModel } from './known-model.js'
import { opencodeLogin, opencodeModels } from './login.js'
import type { ServerNeeds } from './server/servers.js'
import type { LoginPlace, LoginReading } from '../engine/login.js'
import type { Place } from '../engine/place.js'
import { PROVIDER_VARIABLES } from '../engine/provider-variables.js'
import { mergeSettings, parseSettings } from '../engine/settings.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentEvent, AgentEventBody, AgentRequest } from '../types.js'

type OpenCodeLine = { sessionID?: string } & (
  | { type: 'step_start' }
  | { type: 'text' | 'reasoning'; part: { text: string } }
  | { type: 'tool_use'; part: ToolPart }
  | { type: 'step_finish'; part: StepFinish }
  | { type: 'error'; error: OpenCodeError }
  // A shape that `parseOutput` also accepts.
  | { type: 'result'; text: string; session_id?: string }
)

export class OpenCodeBackend extends CliBackend {
  protected readonly traits: CliTraits = {
    ...OPENCODE,
    packageName: 'opencode-ai',
    variables: ['OPENCODE_*', ...PROVIDER_VARIABLES],
    stopSignal: 'SIGTERM',
    supportsMaxTurns: true,
    supportsToolControl: true,
    supportsCommands: false,
    supportsCompact: false,
    supportsStreaming: false,
    subcommand: 'run',
    ownOptions: [
      {
        names: ['-c', '--continue', '--thinking', '--auto', '--yolo', '--dangerously-skip-permissions'],
        takesValue: false,
      },
      { names: ['--format', '-s', '--session', '--dir'], takesValue: true },
    ],
    modelOption: MODEL_OPTION,
  }

  name() {
    return 'opencode' as const
  }

  override run(request: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent, void, undefined> {
    const { model } = this.config
    const options = { model, models: () => this.models(), now: this.dependencies.now }
    return withWholeModel(request, options, (whole) => super.run(whole, signal))
  }

  buildArgs(prompt: string, _systemPromptOrFile: string, sessionId?: string): string[] {
    return [
      ...['run', '--format', 'json'],
      ...optionArgs('--model', this.config.model),
      ...sessionArgs(sessionId),
      prompt,
    ]
  }

  protected invocation(turn: Turn, place: Place): Invocation {
    const { model, sessionId, command } = turn
    const isRestricted = turn.allowedTools.length > 0
    // It rejects two `--agent` options.
    const further = withoutOptions(command?.args ?? [], isRestricted ? [AGENT_OPTION] : [])
    const isText = command?.format === 'text'
    return {
      args: [
        ...['run', '--format', isText ? 'default' : 'json'],
        ...optionArgs('--model', model),
        ...(command?.sessionArgs ?? sessionArgs(sessionId)),
        // Needs an option after it: some, such as --file, take every word up to the next option.
        ...further,
        ...(isText ? [] : ['--thinking']),
        // Only its log says that a session is damaged.
        ...(sessionId === undefined || namesOption(further, LOG_OPTIONS) ? [] : ['--print-logs', ...ERRORS_ALONE]),
        // Nobody could answer a permission prompt. What the operator's settings deny stays denied.
        '--auto',
        ...(namesOption(further, ['--title']) ? [] : ['--title', SESSION_TITLE]),
        ...(isRestricted ? ['--agent', RESTRICTED_AGENT] : []),
        ...['--dir', turn.workingDir],
      ],
      environment: {
        OPENCODE_CONFIG_CONTENT: JSON.stringify(settingsOf(turn, place)),
        ...(turn.isUntrusted && UNTRUSTED_ENVIRONMENT),
      },
      defaults: DEFAULTS,
    }
  }

  /** How `opencode serve` is started, independent of any turn. Contract: throws if OpenCode is not installed. */
  serverProcess({
    environment,
    isUntrusted,
  }: Pick<ServerNeeds, 'environment' | 'isUntrusted'>): Pick<ProcessOptions, 'executable' | 'cwd' | 'environment'> {
    const settings = JSON.stringify(
      mergeSettings(operatorSettings(this.dependencies.environment), isUntrusted ? UNTRUSTED_SETTINGS : {}),
    )
    const own = { OPENCODE_CONFIG_CONTENT: settings, ...(isUntrusted && UNTRUSTED_ENVIRONMENT) }
    const invocation = { environment: own, defaults: DEFAULTS }
    return {
      executable: this.cli.require(),
      cwd: NEUTRAL_DIRECTORY,
      environment: this.cli.environmentOf(invocation, { isUntrusted, workingDir: NEUTRAL_DIRECTORY }, environment),
    }
  }

  /** Regardless of its options, OpenCode loads plug-ins from these files shortly after its start. */
  protected override untrustedObstacle({ workingDir }: Turn): string | undefined {
    const { HOME = homedir() } = this.dependencies.environment
    const homes = [HOME, isDirectory(HOME) ? realpathSync(HOME) : HOME]
    const directories = [workingDir, realpathSync(workingDir)].flatMap((path) => upwards(path, homes))
    const paths = directories.flatMap((directory) => OBEYED_FILES.map((name) => join(directory, name)))
    const found = paths.find((path) => lstatSync(path, { throwIfNoEntry: false }))
    if (found === undefined) return undefined
    return `The project is untrusted and OpenCode would follow ${found}. Remove it, trust the project or choose another agent.`
  }

  protected login(place: LoginPlace): Promise<LoginReading> {
    return opencodeLogin(place)
  }

  protected override listModels(place: LoginPlace): Promise<string[]> {
    return opencodeModels(place)
  }

  protected translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation {
    return new RunTranslation(emit, turn)
  }
}

const LOG_OPTIONS = ['--print-logs', '--log-level']
const ERRORS_ALONE = ['--log-level', 'ERROR']

/** Ignores the directory's commands, AGENTS.md, skills and, at first, settings. */
const UNTRUSTED_ENVIRONMENT = { OPENCODE_DISABLE_PROJECT_CONFIG: '1', OPENCODE_DISABLE_EXTERNAL_SKILLS: '1' }

const OBEYED_FILES = ['.opencode', 'opencode.json', 'opencode.jsonc']

/** The directory and its ancestors, up to the operator's home, from where on files are the operator's own. */
function upwards(directory: string, homes: string[]): string[] {
  const parent = dirname(directory)
  return parent === directory || homes.includes(parent) ? [directory] : [directory, ...upwards(parent, homes)]
}

/** Both run programs, which are looked up in the directory first. */
const UNTRUSTED_SETTINGS = { lsp: false, formatter: false }

const DEFAULTS = { OPENCODE_DISABLE_AUTOUPDATE: '1' }

/** A server obeys settings in its directory and all its ancestors, so nobody else may be able to write there. */
const NEUTRAL_DIRECTORY = '/'

/** An agent's rules come last, so the operator's settings cannot override ours. */
const RESTRICTED_AGENT = 'aetheel'

/** Settings for one turn, merged over those the operator set in the same variable. */
function settingsOf({ systemPrompt, allowedTools, isUntrusted }: Turn, { environment, files }: Place): JsonObject {
  const operator = operatorSettings(environment)
  const instructions = Array.isArray(operator['instructions']) ? operator['instructions'] : []
  return mergeSettings(operator, {
    ...(systemPrompt !== '' && { instructions: [...instructions, files.write('system-prompt.md', systemPrompt)] }),
    ...(allowedTools.length > 0 && {
      agent: { [RESTRICTED_AGENT]: { mode: 'primary', permission: permissionOf(allowedTools) } },
    }),
    ...(isUntrusted && UNTRUSTED_SETTINGS),
  })
}

function operatorSettings(environment: Place['environment']): JsonObject {
  return parseSettings(environment['OPENCODE_CONFIG_CONTENT'] || '{}')
}

const AGENT_OPTION = { names: ['--agent'], takesValue: true }

function sessionArgs(sessionId: string | undefined): string[] {
  return sessionId ? ['--session', sessionId, '--continue'] : []
}

class RunTranslation extends OpenCodeTranslation {
  #hasStarted = false
  /** Text since the last round of tools. */
  #texts: string[] = []

  protected translate(value: JsonObject): void {
    const line = value as OpenCodeLine
    if (typeof line.sessionID === 'string' && !this.#hasStarted) {
      this.#hasStarted = true
      this.started(line.sessionID)
    }
    switch (line.type) {
      case 'step_start':
        return this.keepsWorking()
      case 'text':
        this.#texts.push(line.part.text)
        this.endText()
        return this.output(line.part.text)
      case 'reasoning':
        return this.thinking(line.part.text)
      case 'tool_use':
        // Call and result arrive together, when the tool is done.
        this.toolCall(line.part)
        return this.toolEnd(line.part)
      case 'step_finish':
        if (this.stepFinish(line.part, this.#texts)) this.#texts = []
        return
      case 'error':
        return this.error(line.error)
      case 'result':
        this.setSession(line.session_id)
        return this.succeeded(line.text)
      default:
        return this.unknown((line as JsonObject)['type'])
    }
  }
}
