import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import JSON5 from 'json5'
import { z } from 'zod'
import { DEFAULT_IDLE_TIMEOUT_MS } from './backends/cli-backend.js'
import { isObject } from './backends/jsonl.js'
import { resolveBackendName } from './backends/registry.js'
import type { BackendAdapterConfig, BackendName } from './backends/types.js'
import { operatorEnvironment } from './environment.js'
import { GatewayError, messageOf } from './errors.js'
import { LOG_LEVELS, type LogLevel } from './log.js'

export interface GatewayConfig {
  agentBackend: BackendName
  /** For `agentBackend` only; every other agent is looked up by its own name. */
  backendCliPath: string
  /** For `agentBackend` only. */
  backendModel?: string
  backendMaxTurns: number
  allowedTools: string[]
  queryTimeoutMs: number
  idleTimeoutMs: number
  workingDir: string
  /** Further variables that agents may see, as names or `PREFIX_*`. */
  agentEnvPass: string[]
  /** Left out, each command has its own. */
  logLevel?: LogLevel
  /** What was wrong but could be put right, one sentence each. */
  warnings: string[]
}

const DEFAULT_MAX_TURNS = 25
const DEFAULT_QUERY_TIMEOUT_MS = 1_800_000

/** A file has numbers, the environment has digits. */
const whole = z.union([z.number(), z.string().regex(/^\d+$/).transform(Number)], 'must be a whole number').pipe(z.int())
const positive = whole.pipe(z.number().positive())
const list = z.union([z.array(z.string()), z.string().transform(splitList)])

/** What the configuration file may hold. The environment speaks the same values under the names of `VARIABLES`. */
const settingsSchema = z.strictObject({
  agentBackend: z.string().optional().transform(toBackendName),
  backendCliPath: z.string().min(1).optional(),
  backendModel: z.string().min(1).optional(),
  backendMaxTurns: z.unknown().optional(),
  allowedTools: list.optional(),
  queryTimeoutMs: positive.optional(),
  idleTimeoutMs: whole.pipe(z.number().nonnegative()).optional(),
  workingDir: z.string().min(1).optional(),
  agentEnvPass: list.optional(),
  logLevel: z.enum(LOG_LEVELS).optional(),
})

const VARIABLES: Record<keyof z.input<typeof settingsSchema>, string> = {
  agentBackend: 'AGENT_BACKEND',
  backendCliPath: 'BACKEND_CLI_PATH',
  backendModel: 'BACKEND_MODEL',
  backendMaxTurns: 'BACKEND_MAX_TURNS',
  allowedTools: 'ALLOWED_TOOLS',
  queryTimeoutMs: 'QUERY_TIMEOUT_MS',
  idleTimeoutMs: 'IDLE_TIMEOUT_MS',
  workingDir: 'WORKING_DIR',
  agentEnvPass: 'AGENT_ENV_PASS',
  logLevel: 'LOG_LEVEL',
}

/**
 * Reads the configuration from a JSON5 file, if one is named, and the environment, which wins.
 *
 * Contract: throws one `config_invalid` that names every problem.
 */
export function loadConfig(env: NodeJS.ProcessEnv = operatorEnvironment(), file?: string): GatewayConfig {
  const fromEnvironment = readEnvironment(env)
  const parsed = settingsSchema.safeParse({ ...readFile(file), ...fromEnvironment })
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => describeIssue(issue, fromEnvironment, file))
    throw new GatewayError('config_invalid', problems.join('\n'))
  }

  const settings = parsed.data
  const agentBackend = settings.agentBackend
  const warnings: string[] = []
  return {
    agentBackend,
    backendCliPath: settings.backendCliPath ?? agentBackend,
    ...(settings.backendModel !== undefined && { backendModel: settings.backendModel }),
    backendMaxTurns: maxTurns(settings.backendMaxTurns, warnings),
    allowedTools: settings.allowedTools ?? [],
    queryTimeoutMs: settings.queryTimeoutMs ?? DEFAULT_QUERY_TIMEOUT_MS,
    idleTimeoutMs: settings.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS,
    workingDir: resolve(settings.workingDir ?? '.'),
    agentEnvPass: settings.agentEnvPass ?? [],
    ...(settings.logLevel && { logLevel: settings.logLevel }),
    warnings,
  }
}

function readFile(file: string | undefined): object {
  if (file === undefined) return {}
  try {
    const settings: unknown = JSON5.parse(readFileSync(file, 'utf8'))
    if (isObject(settings)) return settings
  } catch (error) {
    throw new GatewayError('config_invalid', `${file}: ${messageOf(error)}`, { cause: error })
  }
  throw new GatewayError('config_invalid', `${file}: must hold one object, as in { agentBackend: 'claude' }`)
}

/** An empty variable counts as not set, except for the backend: who empties that one should be told. */
function readEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const entries = Object.entries(VARIABLES).flatMap(([key, variable]) => {
    const value = env[variable]
    return value === undefined || (value === '' && key !== 'agentBackend') ? [] : [[key, value] as const]
  })
  return Object.fromEntries(entries)
}

function describeIssue(issue: z.core.$ZodIssue, fromEnvironment: object, file: string | undefined): string {
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.map((key) => `"${key}"`).join(', ')
    return `${file}: unknown key ${keys}. Known: ${Object.keys(VARIABLES).join(', ')}`
  }
  const [key = ''] = issue.path
  const name = key in fromEnvironment ? VARIABLES[key as keyof typeof VARIABLES] : `${file}: ${issue.path.join('.')}`
  return `${name}: ${issue.message}`
}

function toBackendName(raw: string | undefined, context: z.RefinementCtx): BackendName {
  try {
    return resolveBackendName(raw)
  } catch (error) {
    context.addIssue({ code: 'custom', message: messageOf(error) })
    return z.NEVER
  }
}

function maxTurns(raw: unknown, warnings: string[]): number {
  const parsed = positive.default(DEFAULT_MAX_TURNS).safeParse(raw)
  if (parsed.success) return parsed.data
  warnings.push(
    `BACKEND_MAX_TURNS must be a positive whole number, not ${JSON.stringify(raw)}; using ${DEFAULT_MAX_TURNS}.`,
  )
  return DEFAULT_MAX_TURNS
}

/** At commas, but not at those inside a rule such as `Bash(git log,git show)`. */
function splitList(text: string): string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((item) => item.trim())
    .filter((item) => item !== '')
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
    ...(isChosen && config.backendModel !== undefined && { model: config.backendModel }),
  }
}
