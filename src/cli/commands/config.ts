import type { Command } from 'commander'
import {
  configFilePlaces,
  findConfigFile,
  type GatewayConfig,
  loadConfigWithSources,
  type SettingSource,
} from '../../config.js'
import { SETTING_NAMES } from '../../config/schema.js'
import { VARIABLES } from '../../config/variables.js'
import { unknownVariables } from '../../config/unknown-variables.js'
import { masked } from '../../config/secrets.js'
import { parseMasterKey } from '../../credentials/key-ring.js'
import { GatewayError } from '../../errors.js'
import { findExecutable } from '../../core/paths.js'
import type { CommandContext, ConfigLocation } from '../command-context.js'
import { missingDirectories } from '../missing-directories.js'
import { table } from '../table.js'

interface Report {
  text: string
  exitCode: number
}

interface Setting {
  name: string
  /** Secrets are masked. Null if it is unset and has no default. */
  value: unknown
  from: SettingSource
  /** The environment variable it comes from. */
  variable?: string
}

export function registerConfig(program: Command, context: CommandContext): void {
  const print = ({ text, exitCode }: Report): void => {
    console.log(text)
    context.endWith(exitCode)
  }
  const config = program.command('config').description('Check or show the configuration.')
  config
    .command('check')
    .description('Report every problem of the configuration.')
    .action(() => print(configCheck(context.configLocation())))
  config
    .command('show')
    .description('Show every setting and where it comes from; secrets are masked.')
    .option('--json', 'print JSON')
    .action((flags: { json?: true }) => print(configShow({ ...context.configLocation(), isJson: flags.json === true })))
}

/** The output of `aetheel config check`. */
export function configCheck(options: ConfigLocation): Report {
  return report(options, ({ config }) => {
    const masterKey = options.environment['AETHEEL_MASTER_KEY']
    if (masterKey) parseMasterKey(masterKey)
    const places = configFilePlaces(options.environment, options.cwd)
    const subject = config.configFile ?? `No ${places.join(' and no ')}; using defaults and the environment`
    const warnings = [
      ...config.warnings,
      ...unknownVariables(options.environment),
      ...missingWarnings(config, options.environment),
    ]
    const verdict = `${subject}: ${verdictOn(warnings.length)}`
    return [verdict, ...warningLines(warnings)].join('\n')
  })
}

/** The output of `aetheel config show`: every effective setting and its source. Secrets are masked. */
export function configShow(options: ConfigLocation & { isJson: boolean }): Report {
  return report(options, (loaded) => {
    const { config } = loaded
    const settings = effectiveSettings(options.environment, loaded)
    if (options.isJson) {
      const byName = Object.fromEntries(settings.map(({ name, ...setting }) => [name, setting]))
      const shown = { configFile: config.configFile ?? null, settings: byName, warnings: config.warnings }
      return JSON.stringify(shown, null, 2)
    }
    const rows = settings.flatMap((setting) => settingRows(setting))
    return [
      `Configuration file: ${config.configFile ?? 'none'}`,
      table([['SETTING', 'FROM', 'VALUE'], ...rows]),
      ...warningLines(config.warnings),
    ].join('\n')
  })
}

type Loaded = ReturnType<typeof loadConfigWithSources>

function report({ environment, cwd, explicit }: ConfigLocation, describe: (loaded: Loaded) => string): Report {
  try {
    const loaded = loadConfigWithSources(environment, findConfigFile(environment, cwd, explicit))
    return { text: describe(loaded), exitCode: 0 }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { text: error.message, exitCode: 1 }
  }
}

function effectiveSettings(environment: NodeJS.ProcessEnv, { config, sourceOf }: Loaded): Setting[] {
  const shown = masked(config)
  const home: Setting = environment['AETHEEL_HOME']
    ? { name: 'home', value: config.home, from: 'environment', variable: 'AETHEEL_HOME' }
    : { name: 'home', value: config.home, from: 'default' }
  const settings = SETTING_NAMES.map((name): Setting => {
    const from = sourceOf(name)
    const variable = from === 'environment' && name in VARIABLES && VARIABLES[name as keyof typeof VARIABLES].name
    return { name, value: shown[name] ?? null, from, ...(variable && { variable }) }
  })
  return [home, ...settings]
}

/** One row per hook and project: a single cell would be too wide to read. */
function settingRows({ name, value, from, variable }: Setting): string[][] {
  const source = variable === undefined ? from : `${from} (${variable})`
  const entries: unknown[] = (name === 'hooks' || name === 'projects') && Array.isArray(value) ? value : []
  if (entries.length === 0) return [[name, source, value === null ? '-' : JSON.stringify(value)]]
  return entries.map((entry, index) => [`${name}[${index}]`, source, JSON.stringify(entry)])
}

function verdictOn(warnings: number): string {
  if (warnings === 0) return 'no problems'
  return `no errors, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`
}

function warningLines(warnings: string[]): string[] {
  return warnings.map((warning) => `Warning: ${warning}`)
}

/** Missing files are only warnings: they may exist by the time the gateway starts. */
function missingWarnings(config: GatewayConfig, environment: NodeJS.ProcessEnv): string[] {
  const { inbound, heartbeat, projects, kubectlPath } = config
  const { command, transcribeAudio } = inbound?.reply ?? {}
  const commands: Record<string, string[] | undefined> = {
    'inbound.reply.command': command,
    'inbound.reply.transcribeAudio.command': transcribeAudio?.command,
    'heartbeat.probe': heartbeat?.probe,
    kubectlPath: projects.some(({ pod }) => pod) ? [kubectlPath] : undefined,
  }
  return [
    ...missingDirectories(config, projects).map(({ setting, problem, fix }) => `${setting}: ${problem}. ${fix}`),
    ...Object.entries(commands).flatMap(([name, argv]) => {
      const isThere = !argv || findExecutable(argv[0] ?? '', environment['PATH'] ?? '') !== undefined
      return isThere ? [] : [`${name}: ${argv[0]} was not found, or is not executable.`]
    }),
  ]
}
