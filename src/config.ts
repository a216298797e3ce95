import { homedir } from 'node:os'
import { dirname, join, posix, resolve, sep } from 'node:path'
import type { BackendAdapterConfig, BackendName } from './backends/types.js'
import { fileExists, readConfigFile } from './config/file.js'
import { heartbeatOf, crossSettingProblems, crossSettingWarnings } from './config/checks.js'
import { type ReplyConfig, replacedKey } from './config/inbound.js'
import { describeProblems, dotted, quote, sentenceOf } from './config/problems.js'
import {
  DEFAULT_MAX_TURNS,
  maxTurnsSchema,
  type ProjectEntry,
  type SettingName,
  type Settings,
  settingsSchema,
} from './config/schema.js'
import { VARIABLES } from './config/variables.js'
import { defined } from './core/defined.js'
import { DEMO, DEMO_AGENT } from './core/demo-agent.js'
import { operatorEnvironment } from './core/environment.js'
import { GatewayError } from './errors.js'
import { POD_DIRECTORY, type PodAddress } from './kubernetes/types.js'

/** Every setting, with defaults filled in and paths resolved, and what was found while reading. */
export interface GatewayConfig extends Omit<Settings, 'heartbeat' | 'projects'> {
  /** Answers conversations in channels. */
  agentBackend: BackendName
  /** The agent of new projects. */
  codeAgentDefault: BackendName
  /** Whether its executable was configured. If so, a missing one is a mistake; otherwise it may be installed later. */
  isAgentChosen: boolean
  /** The built-in demo agent stands in for Claude Code. */
  isDemoAgent: boolean
  /** For `agentBackend` only; other agents are found by name. */
  backendCliPath: string
  /** If false, `backendMaxTurns` is the default. */
  isMaxTurnsChosen: boolean
  workingDir: string
  promptDir: string
  projects: ProjectConfig[]
  /** At least one. Projects created by API or CLI must lie inside them; new directories go into the first. */
  projectRoots: string[]
  heartbeat?: NonNullable<ReturnType<typeof heartbeatOf>>
  /** The data directory, absolute. It need not exist yet. */
  home: string
  /** The file that was read, absolute. */
  configFile?: string
  /** Problems that were corrected, one sentence each. */
  warnings: string[]
}

export interface ProjectConfig extends ProjectEntry {
  id: string
  directory: string
  /** With the configured context and namespace filled in. */
  pod?: PodAddress
}

export type SettingSource = 'default' | 'file' | 'environment'

export const CONFIG_FILE_NAME = 'aetheel.json5'

/**
 * The configuration file to use: the explicit one, else `aetheel.json5` in the current directory, else in the data
 * directory, else none. The explicit one need not exist; `loadConfig` reports it if it does not.
 */
export function findConfigFile(env: NodeJS.ProcessEnv, cwd: string, explicit?: string): string | undefined {
  if (explicit !== undefined) return resolve(cwd, explicit)
  return configFilePlaces(env, cwd).find(fileExists)
}

/** Where a configuration file is searched for when none is named, in order. */
export function configFilePlaces(env: NodeJS.ProcessEnv, cwd: string): string[] {
  return [resolve(cwd, CONFIG_FILE_NAME), join(dataDirectory(env), CONFIG_FILE_NAME)]
}

/**
 * Reads the configuration from the JSON5 file, if given, and from the environment, which wins.
 *
 * Contract: throws one `config_invalid` that names every problem.
 */
export function loadConfig(env: NodeJS.ProcessEnv = operatorEnvironment(), file?: string): GatewayConfig {
  return loadConfigWithSources(env, file).config
}

/** Like `loadConfig`, but also returns where each setting comes from. */
export function loadConfigWithSources(
  env: NodeJS.ProcessEnv,
  file?: string,
  now: number = Date.now(),
): { config: GatewayConfig; sourceOf: (name: SettingName) => SettingSource } {
  const configFile = file === undefined ? undefined : resolve(file)
  const { settings: fromFile, warnings } =
    configFile === undefined ? { settings: {}, warnings: [] } : readConfigFile(configFile)
  const fromEnvironment = readEnvironment(env)
  const given: Record<string, unknown> = { ...fromFile, ...fromEnvironment }
  const placeOf = (path: PropertyKey[]): string => variableOf(path, fromEnvironment) ?? `${configFile}: ${dotted(path)}`

  if ('backendMaxTurns' in given && !maxTurnsSchema.safeParse(given['backendMaxTurns']).success) {
    const value = quote('backendMaxTurns' in fromEnvironment ? env['BACKEND_MAX_TURNS'] : given['backendMaxTurns'])
    const place = placeOf(['backendMaxTurns'])
    warnings.push(`${place} must be a positive whole number, not ${value}; using ${DEFAULT_MAX_TURNS}.`)
    delete given['backendMaxTurns']
  }

  const parsed = settingsSchema.safeParse(given, { error: sentenceOf })
  if (!parsed.success) {
    const problems = describeProblems(settingsSchema, parsed.error.issues, placeOf, replacedKey)
    throw new GatewayError('config_invalid', problems.join('\n'))
  }
  const { $schema: _schema, ...settings } = parsed.data
  const problems = crossSettingProblems(settings)
  if (problems.length > 0) {
    const sentences = problems.map(({ path, message }) => `${placeOf(path)}: ${message}`)
    throw new GatewayError('config_invalid', sentences.join('\n'))
  }
  warnings.push(...crossSettingWarnings(settings, now).map(({ path, message }) => `${placeOf(path)}: ${message}.`))
  const { heartbeat: _heartbeat, ...rest } = settings
  // Each is the other's fallback.
  const named = settings.agentBackend ?? settings.codeAgentDefault ?? 'claude'
  const isDemoAgent = named === DEMO
  const agentBackend = isDemoAgent ? DEMO_STANDS_FOR : named
  const chosen = {
    agentBackend,
    codeAgentDefault: settings.codeAgentDefault ?? agentBackend,
    ...(isDemoAgent && { backendCliPath: DEMO_AGENT }),
  }
  const sourceOf = (name: SettingName): SettingSource =>
    !(name in given) ? 'default' : name in fromEnvironment ? 'environment' : 'file'
  const config = {
    ...rest,
    ...chosen,
    isDemoAgent,
    isAgentChosen: CHOOSES_AGENT.some((name) => name in given),
    isMaxTurnsChosen: 'backendMaxTurns' in given,
    ...resolvePaths({ ...settings, ...chosen }, env, (name) =>
      configFile && sourceOf(name) === 'file' ? dirname(configFile) : '.',
    ),
    home: dataDirectory(env),
    ...defined({ configFile }),
    warnings,
  }
  return { config, sourceOf }
}

/** The demo agent speaks this agent's wire format, and takes its settings and its name. */
const DEMO_STANDS_FOR = 'claude' satisfies BackendName

const CHOOSES_AGENT: SettingName[] = ['backendCliPath', 'inbound']

/** `baseOf` is the directory a setting's relative paths start from. */
function resolvePaths(
  settings: Settings & { agentBackend: BackendName },
  env: NodeJS.ProcessEnv,
  baseOf: (name: SettingName) => string,
): Pick<
  GatewayConfig,
  | 'backendCliPath'
  | 'kubectlPath'
  | 'workingDir'
  | 'promptDir'
  | 'hooks'
  | 'projects'
  | 'mediaRoots'
  | 'projectRoots'
  | 'templateDir'
  | 'inbound'
  | 'heartbeat'
> {
  const pathOf = (name: SettingName, path: string): string => resolve(baseOf(name), expandHome(path, env))
  // A name without a slash is looked up in PATH.
  const executableOf = (name: SettingName, command: string): string =>
    command.includes(sep) ? pathOf(name, command) : command
  const commandOf = (name: SettingName, [executable = '', ...elements]: string[]): string[] => [
    executableOf(name, executable),
    ...elements,
  ]
  const heartbeat = heartbeatOf(settings)
  const resolveReply = ({ cwd, command, transcribeAudio, ...reply }: ReplyConfig): ReplyConfig => ({
    ...reply,
    ...(cwd !== undefined && { cwd: pathOf('inbound', cwd) }),
    ...(command && { command: commandOf('inbound', command) }),
    ...(transcribeAudio && {
      transcribeAudio: { ...transcribeAudio, command: commandOf('inbound', transcribeAudio.command) },
    }),
  })
  return {
    backendCliPath: executableOf('backendCliPath', settings.backendCliPath ?? settings.agentBackend),
    kubectlPath: executableOf('kubectlPath', settings.kubectlPath),
    workingDir: pathOf('workingDir', settings.workingDir ?? '.'),
    promptDir: pathOf('promptDir', settings.promptDir ?? join(dataDirectory(env), 'prompt')),
    hooks: settings.hooks.map((hook) => (hook.command ? { ...hook, command: commandOf('hooks', hook.command) } : hook)),
    projects: Object.entries(settings.projects).map(([id, { directory = POD_DIRECTORY, pod, ...project }]) => ({
      id,
      ...project,
      directory: pod ? posix.resolve(directory) : pathOf('projects', directory),
      ...(pod && { pod: podOf(pod, settings) }),
    })),
    mediaRoots: settings.mediaRoots.map((root) => pathOf('mediaRoots', root)),
    // Beside the data directory, not in it: an agent that searches parent directories must not find keys.
    projectRoots: (settings.projectRoots ?? [join(dirname(dataDirectory(env)), 'aetheel-projects')]).map((root) =>
      pathOf('projectRoots', root),
    ),
    ...(settings.templateDir !== undefined && { templateDir: pathOf('templateDir', settings.templateDir) }),
    ...(heartbeat && {
      heartbeat: { ...heartbeat, ...(heartbeat.probe && { probe: commandOf('heartbeat', heartbeat.probe) }) },
    }),
    ...(settings.inbound && { inbound: { reply: resolveReply(settings.inbound.reply) } }),
  }
}

/** Fills in the configured context and namespace where the address has none. */
export function podOf(
  pod: PodAddress,
  { kubernetesContext, kubernetesNamespace }: Pick<GatewayConfig, 'kubernetesContext' | 'kubernetesNamespace'>,
): PodAddress {
  return { ...defined({ context: kubernetesContext, namespace: kubernetesNamespace }), ...pod }
}

/** `AETHEEL_HOME`, else `.aetheel` in the user's home directory. */
function dataDirectory(env: NodeJS.ProcessEnv): string {
  const home = env['AETHEEL_HOME']
  return home ? resolve(expandHome(home, env)) : join(userHome(env), '.aetheel')
}

/** Only shells expand `~`; configuration files and service definitions do not go through one. */
export function expandHome(path: string, env: NodeJS.ProcessEnv): string {
  return path === '~' || path.startsWith(`~${sep}`) ? join(userHome(env), path.slice(1)) : path
}

function userHome(env: NodeJS.ProcessEnv): string {
  return resolve(env['HOME'] || homedir())
}

/** An empty variable counts as unset, except AGENT_BACKEND, where it is reported as a mistake. */
function readEnvironment(env: NodeJS.ProcessEnv): Record<string, unknown> {
  const entries = Object.entries(VARIABLES).flatMap(([key, { name, read }]) => {
    const value = env[name]
    return value === undefined || (value === '' && key !== 'agentBackend') ? [] : [[key, read(value)] as const]
  })
  return Object.fromEntries(entries)
}

function variableOf([key = '']: PropertyKey[], fromEnvironment: object): string | undefined {
  return Object.hasOwn(fromEnvironment, key) ? VARIABLES[key as keyof typeof VARIABLES].name : undefined
}

/** The options of one backend. `BACKEND_CLI_PATH` and `BACKEND_MODEL` apply only to the chosen agent. */
export function backendConfig(config: GatewayConfig, name: BackendName): BackendAdapterConfig {
  const isChosen = name === config.agentBackend
  return {
    cliPath: isChosen ? config.backendCliPath : name,
    workingDir: config.workingDir,
    queryTimeoutMs: config.queryTimeoutMs,
    allowedTools: config.allowedTools,
    maxTurns: config.backendMaxTurns,
    isMaxTurnsChosen: config.isMaxTurnsChosen,
    ...(isChosen && config.backendModel !== undefined && { model: config.backendModel }),
  }
}

/** The project a Discord channel belongs to, else the default one. */
export function projectOfChannel(
  { projects, defaultProject }: Pick<GatewayConfig, 'projects' | 'defaultProject'>,
  channelId: string,
): string | undefined {
  return projects.find(({ discordChannels }) => discordChannels?.includes(channelId))?.id ?? defaultProject
}
