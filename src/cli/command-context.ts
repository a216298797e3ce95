import { findConfigFile, type GatewayConfig, loadConfig } from '../config.js'
import { secretsOfConfig } from '../config/secrets.js'
import { defined } from '../core/defined.js'
import { GLOBAL_OWNER } from '../credentials/credential-store.js'
import { createScrubber } from '../credentials/scrubber.js'
import { createLog, type Log, type LogDestination, type LogLevel, secretsOf } from '../log.js'
import { guardedOwner } from '../processes/guarded-owner.js'
import { ConfiguredAgents } from '../runtime/configured-agents.js'
import type { Store } from '../store/store.js'
import type { Control } from './control/protocol.js'
import { withControl } from './with-control.js'
import { closing, openForChanges, openForReading } from './open-store.js'

/** Where to find the configuration. */
export interface ConfigLocation {
  environment: NodeJS.ProcessEnv
  cwd: string
  /** The file from `--config`. */
  explicit?: string | undefined
}

export const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** What every command needs: configuration, log, store, agents and a stop signal. */
export class CommandContext {
  /** Learns secrets while a command runs; the log hides them from then on. */
  readonly scrubber = createScrubber()
  readonly #stop = new AbortController()

  constructor(
    readonly environment: NodeJS.ProcessEnv,
    private readonly explicitConfigFile: () => string | undefined,
  ) {
    for (const stream of [process.stdout, process.stderr]) {
      stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
        this.#stop.abort()
        // A reader that stops early, as in `aetheel ask … 2>&1 | head`, has what it wanted; a full disk is an error.
        if (code === 'EPIPE') return
        process.exitCode = 1
        if (stream === process.stdout) console.error(`Cannot write the output: ${message}`)
      })
    }
  }

  configLocation(): ConfigLocation {
    return { environment: this.environment, cwd: process.cwd(), explicit: this.explicitConfigFile() }
  }

  readConfig(): GatewayConfig {
    const { environment, cwd, explicit } = this.configLocation()
    const config = loadConfig(environment, findConfigFile(environment, cwd, explicit))
    for (const warning of config.warnings) console.error(`Warning: ${warning}`)
    return config
  }

  /** A person reads the output, so by default only errors are logged. */
  openLog(config: GatewayConfig, level: LogLevel = 'error', destination?: LogDestination): Log {
    this.scrubber.add([...secretsOf(this.environment), ...secretsOfConfig(config)])
    return createLog(defined({ level: config.logLevel ?? level, scrubber: this.scrubber, destination }))
  }

  /** Contract: nothing started for the agents is left afterwards. */
  async withAgents<T>(config: GatewayConfig, use: (agents: ConfiguredAgents) => Promise<T>): Promise<T> {
    const { environment, scrubber } = this
    const log = this.openLog(config)
    // If we are killed, neither a server nor an agent that waits for approval ends without the guardian.
    const isServed = config.opencodeEnabled && config.opencodeManaged
    const guarded = isServed || config.agentPermissions === 'ask' ? guardedOwner(log) : undefined
    const dependencies = { environment, passVariables: config.agentEnvPass, log, scrubber, owner: guarded?.owner }
    const agents = new ConfiguredAgents(config, defined(dependencies))
    try {
      return await use(agents)
    } finally {
      await agents.stop()
      await guarded?.stop()
    }
  }

  async readStore<T>(config: GatewayConfig, read: (store: Store, log: Log) => Promise<T>): Promise<T> {
    const log = this.openLog(config)
    return closing(await openForReading(config, log), (store) => read(store, log))
  }

  /** The names of the credentials that every turn gets; none if the database cannot be read. */
  async storedVariables(config: GatewayConfig): Promise<string[]> {
    try {
      const records = await this.readStore(config, ({ credentials }) => credentials.list([GLOBAL_OWNER]))
      return records.map(({ name }) => name)
    } catch {
      return [] // Whatever needs the database reports that.
    }
  }

  /** Prints what a command reads from the store. */
  async inspect(describe: (store: Store, config: GatewayConfig, log: Log) => Promise<string>): Promise<void> {
    const config = this.readConfig()
    console.log(await this.readStore(config, (store, log) => describe(store, config, log)))
  }

  /** Prints the result of a change in the database itself, which a running gateway sees in its next turn. */
  async change(work: (store: Store, config: GatewayConfig, log: Log) => Promise<string>): Promise<void> {
    const config = this.readConfig()
    const log = this.openLog(config)
    console.log(await closing(await openForChanges(config, log), (store) => work(store, config, log)))
  }

  /** Prints the result of a change by the running gateway, or in the database if there is none. */
  async operate(change: (control: Control) => Promise<string>): Promise<void> {
    const config = this.readConfig()
    console.log(await withControl(config, this.openLog(config), change))
  }

  /** Also aborts when nobody reads the output any more. */
  abortOn(signals: readonly NodeJS.Signals[]): AbortSignal {
    for (const signal of signals) process.on(signal, () => this.#stop.abort())
    return this.#stop.signal
  }

  /** The exit code of an earlier failure, such as of the output, wins. */
  endWith(exitCode: number): void {
    process.exitCode ||= exitCode
  }
}
