import { homedir } from 'node:os'
import { dirname, join, posix, resolve, sep } from 'node:path'
import type { AgentMode, BackendAdapterConfig, BackendName, Permissions } from './backends/types.js'
import type { QueueMode } from './channels/types.js'
import { fileExists, readConfigFile } from './config/file.js'
import { heartbeatOf, problemsAcross, warningsAcross } from './config/checks.js'
import { type InboundConfig, type ReplyConfig, replacedKey } from './config/inbound.js'
import { describeProblems, dotted, quote, sentenceOf } from './config/problems.js'
import {
  DEFAULT_MAX_TURNS,
  type HookConfig,
  maxTurnsSchema,
  type SettingName,
  type Settings,
  settingsSchema,
} from './config/schema.js'
import { VARIABLES } from './config/variables.js'
import { operatorEnvironment } from './core/environment.js'
import { GatewayError } from './errors.js'
import { POD_DIRECTORY, type PodAddress } from './kubernetes/types.js'
import type { LogLevel } from './log.js'

export interface GatewayConfig {
  /** Of conversations in channels. */
  agentBackend: BackendName
  /** Of new projects. */
  codeAgentDefault: BackendName
  /** Else `agentBackend` is the usual one, which may not be there. */
  isAgentChosen: boolean
  /** For `agentBackend` only; every other agent is looked up by its own name. */
  backendCliPath: string
  agentMode: AgentMode
  liveIdleMs: number
  liveMaxProcesses: number
  liveMaxMemoryMb: number
  liveSpare: boolean
  /** Whether a person is asked before an agent uses its tools. */
  agentPermissions: Permissions
  approvalTimeoutMs: number
  /** For `agentBackend` only. */
  backendModel?: string
  backendMaxTurns: number
  /** Else `backendMaxTurns` is the default. */
  isMaxTurnsChosen: boolean
  allowedTools: string[]
  queryTimeoutMs: number
  idleTimeoutMs: number
  workingDir: string
  /** Further variables that agents may see, as names or `PREFIX_*`. */
  agentEnvPass: string[]
  /** Left out, each command has its own. */
  logLevel?: LogLevel
  /** Left out, an SQLite file under `home`. */
  databaseUrl?: string
  maxConcurrentQueries: number
  /** Of one conversation. */
  maxQueueDepth: number
  /** Of conversations where none was chosen. */
  queueMode: QueueMode
  /** Of one project, over HTTP. */
  maxWaitingCommands: number
  replyExpiryMs: number
  /** 0 for never. */
  sessionIdleMs: number
  leaseMs: number
  /** 0 for at once. */
  drainTimeoutMs: number
  promptDir: string
  hooks: HookConfig[]
  projects: ProjectConfig[]
  /** Left out, Discord is not served. */
  discordBotToken?: string
  /** Left out, the owner of the application. */
  discordOwnerId?: string
  /** Where others than the owner may talk; an empty list leaves out no place. */
  discordGuilds: string[]
  discordChannels: string[]
  /** Who may talk there; both empty, everybody, unless the lists of places are empty, too: then the owner alone. */
  discordUsers: string[]
  discordRoles: string[]
  /** Whether a mention opens a thread. */
  discordThreads: boolean
  /** Where goes what answers no message. */
  outputChannelId?: string
  /** Without the version, and without a slash at the end. */
  discordApiUrl: string
  attachmentMaxMb: number
  /** MIME types in lower case, or `image/*`. */
  attachmentTypes: string[]
  /** Absolute. From these an agent may send files, beside the directory it works in. */
  mediaRoots: string[]
  /** OpenCode is a server: one that the gateway starts itself, or the one at `opencodeUrl`. */
  opencodeEnabled: boolean
  opencodeManaged: boolean
  /** Without a slash at the end. */
  opencodeUrl: string
  opencodeUsername: string
  opencodePassword?: string
  kubectlPath: string
  /** For pods that name none. */
  kubernetesContext?: string
  kubernetesNamespace?: string
  /** The key of the label whose value is the agent. */
  kubernetesLabel: string
  /** Absolute; at least one. Projects that the HTTP API or the command line makes are inside of them, new ones in the first. */
  projectRoots: string[]
  /** The operator's own templates. */
  templateDir?: string
  httpEnabled: boolean
  httpHost: string
  /** 0 for any that is free. */
  httpPort: number
  /** Beside those that need no mention: `host` or `host:port`, in lower case. */
  httpAllowedHosts: string[]
  /** Where platforms reach us; without a slash at the end. */
  publicUrl?: string
  /** Left out, WhatsApp is not served. With it come `twilioWhatsappFrom` and either the auth token or key and secret. */
  twilioAccountSid?: string
  twilioAuthToken?: string
  twilioApiKey?: string
  twilioApiSecret?: string
  /** As +14155238886. */
  twilioWhatsappFrom?: string
  twilioApiUrl: string
  whatsappPollSeconds: number
  inbound?: InboundConfig
  heartbeat?: NonNullable<ReturnType<typeof heartbeatOf>>
  /** The data directory, as an absolute path. It need not exist yet. */
  home: string
  /** The file that was read, as an absolute path. */
  configFile?: string
  /** What was wrong but could be put right, one sentence each. */
  warnings: string[]
}

export interface ProjectConfig {
  id: string
  name?: string
  directory: string
  /** With context and namespace filled in, as far as they are configured. */
  pod?: PodAddress
  backend?: BackendName
  /** Left out, that of all. */
  agentMode?: AgentMode
  /** Left out, those of all. */
  agentPermissions?: Permissions
  model?: string
  allowedTools?: string[]
  queryTimeoutMs?: number
  maxTurns?: number
  isUntrusted?: boolean
  /** Ids of the Discord channels whose conversations work in it; none is in two projects. */
  discordChannels?: string[]
}

export type SettingSource = 'default' | 'file' | 'environment'

export const CONFIG_FILE_NAME = 'aetheel.json5'

/**
 * The configuration file to use: the one that is named, else `aetheel.json5` in the current directory, else the one in
 * the data directory, else none. One that is named need not exist: `loadConfig` then says so.
 */
export function findConfigFile(env: NodeJS.ProcessEnv, cwd: string, explicit?: string): string | undefined {
  if (explicit !== undefined) return resolve(cwd, explicit)
  return configFilePlaces(env, cwd).find(fileExists)
}

/** Where a configuration file is looked for when none is named, first place first. */
export function configFilePlaces(env: NodeJS.ProcessEnv, cwd: string): string[] {
  return [resolve(cwd, CONFIG_FILE_NAME), join(dataDirectory(env), CONFIG_FILE_NAME)]
}

/**
 * Reads the configuration from a JSON5 file, if one is named, and the environment, which wins.
 *
 * Contract: throws one `config_invalid` that names every problem.
 */
export function loadConfig(env: NodeJS.ProcessEnv = operatorEnvironment(), file?: string): GatewayConfig {
  return loadConfigWithSources(env, file).config
}

/** As `loadConfig`, and where each setting comes from. */
export function loadConfigWithSources(
  env: NodeJS.ProcessEnv,
  file?: string,
  now: number = Date.now(),
): { config: GatewayConfig; sourceOf: (name: SettingName) => SettingSource } {
  const configFile = file === undefined ? undefined : resolve(file)
  const fromFile = configFile === undefined ? {} : readConfigFile(configFile)
  const fromEnvironment = readEnvironment(env)
  const given: Record<string, unknown> = { ...fromFile, ...fromEnvironment }
  const placeOf = (path: PropertyKey[]): string => variableOf(path, fromEnvironment) ?? `${configFile}: ${dotted(path)}`

  const warnings: string[] = []
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
  const problems = problemsAcross(settings)
  if (problems.length > 0) {
    const sentences = problems.map(({ path, message }) => `${placeOf(path)}: ${message}`)
    throw new GatewayError('config_invalid', sentences.join('\n'))
  }
  warnings.push(...warningsAcross(settings, now).map(({ path, message }) => `${placeOf(path)}: ${message}.`))
  const { heartbeat: _heartbeat, ...rest } = settings
  // Each stands in for the other.
  const agentBackend = settings.agentBackend ?? settings.codeAgentDefault ?? 'claude'
  const chosen = { agentBackend, codeAgentDefault: settings.codeAgentDefault ?? agentBackend }
  const sourceOf = (name: SettingName): SettingSource =>
    !(name in given) ? 'default' : name in fromEnvironment ? 'environment' : 'file'
  const config = {
    ...rest,
    ...chosen,
    isAgentChosen: CHOOSES_AGENT.some((name) => name in given),
    isMaxTurnsChosen: 'backendMaxTurns' in given,
    ...resolvePaths({ ...settings, ...chosen }, env, (name) =>
      configFile && sourceOf(name) === 'file' ? dirname(configFile) : '.',
    ),
    home: dataDirectory(env),
    ...(configFile !== undefined && { configFile }),
    warnings,
  }
  return { config, sourceOf }
}

const CHOOSES_AGENT: SettingName[] = ['agentBackend', 'codeAgentDefault', 'backendCliPath', 'inbound']

/** `baseOf` says where a relative path of a setting begins. */
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
    // Beside the data, not in it: who works in a project and looks around upwards must not come upon keys.
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

/** With what is configured for pods that do not say it themselves. */
export function podOf(
  pod: PodAddress,
  { kubernetesContext, kubernetesNamespace }: Pick<GatewayConfig, 'kubernetesContext' | 'kubernetesNamespace'>,
): PodAddress {
  return {
    ...(kubernetesContext !== undefined && { context: kubernetesContext }),
    ...(kubernetesNamespace !== undefined && { namespace: kubernetesNamespace }),
    ...pod,
  }
}

/** Where the gateway keeps its data: `AETHEEL_HOME`, else `.aetheel` in the person's own directory. */
function dataDirectory(env: NodeJS.ProcessEnv): string {
  const home = env['AETHEEL_HOME']
  return home ? resolve(expandHome(home, env)) : join(personalDirectory(env), '.aetheel')
}

/** Only a shell knows `~`; files and service definitions do not go through one. */
export function expandHome(path: string, env: NodeJS.ProcessEnv): string {
  return path === '~' || path.startsWith(`~${sep}`) ? join(personalDirectory(env), path.slice(1)) : path
}

function personalDirectory(env: NodeJS.ProcessEnv): string {
  return resolve(env['HOME'] || homedir())
}

/** An empty variable counts as not set, except for the backend: who empties that one should be told. */
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

/** What a backend is built with. `BACKEND_CLI_PATH` and `BACKEND_MODEL` are meant for the chosen agent alone. */
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

/** The project whose threads a Discord channel holds. */
export function projectOfChannel({ projects }: Pick<GatewayConfig, 'projects'>, channelId: string): string | undefined {
  return projects.find(({ discordChannels }) => discordChannels?.includes(channelId))?.id
}
