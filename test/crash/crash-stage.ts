// The stage of a crash test: its own directory and database, a channel that outlives the gateways, and the gateways, each
// in its own process.

import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { Client } from 'pg'
import { describe, type TestContext } from 'vitest'
import { readProcessTable } from '../../src/processes/process-table.js'
import type { Step } from '../../src/turns/types.js'
import { GatewayStarter, type KillableGateway } from '../kit/killable-gateway.js'
import { livingProcesses } from '../kit/living-processes.js'
import { createDatabase, postgresUrl } from '../kit/postgres.js'
import { journalIn, release } from '../kit/steps-agent.js'
import { processDirectory } from '../kit/temporary-directory.js'
import { ChannelServer } from './channel-server.js'

export const WITHIN_10_SECONDS = { timeout: 10_000, interval: 100 }
/** A lease is 30 s by default: anything earlier did not wait for it to end. */
export const BEFORE_A_LEASE_ENDS = { timeout: 20_000 }

type EngineName = 'sqlite' | 'postgres'

/** What the agent recorded when it was started for a message. */
interface JournalEntry {
  name: string
  sessionId: string
  isResumed: boolean
  /** Whether it was told of an interruption. */
  isTold: boolean
  /** Whether no other process was at work in the same session. */
  isAlone: boolean
  /** What the session already knew. */
  heard: string[]
  ownerId: string
}

interface StartOptions {
  signalAt?: [signal: NodeJS.Signals, step: Step, occurrence: number]
  environment?: Record<string, string>
}

/** `setUp` gives a test its stage. */
export function describeOnEngines(
  title: string,
  suite: (setUp: (context: TestContext) => Promise<CrashStage>, engine: EngineName) => void,
  engines: readonly EngineName[] = ['sqlite', 'postgres'],
): void {
  describe(`a gateway ${title}`, () => {
    for (const engine of engines) {
      const skip = engine === 'postgres' && postgresUrl() === undefined
      describe(`on ${engine}`, { concurrent: true, skip }, () => {
        suite((context) => setUpStage(engine, context), engine)
      })
    }
  })
}

async function setUpStage(engine: EngineName, { onTestFinished }: TestContext): Promise<CrashStage> {
  const database = engine === 'postgres' ? await createDatabase() : undefined
  if (database) onTestFinished(database.drop)
  return new CrashStage(database?.url, onTestFinished)
}

export class CrashStage {
  readonly directory: string
  readonly workingDir: string
  readonly server: ChannelServer
  readonly #gateways: GatewayStarter

  constructor(
    private readonly databaseUrl: string | undefined,
    onTestFinished: TestContext['onTestFinished'],
  ) {
    this.directory = processDirectory(onTestFinished)
    this.workingDir = join(this.directory, 'work')
    mkdirSync(this.workingDir)
    this.server = new ChannelServer(join(this.directory, 'channel'))
    onTestFinished(() => this.server.close())
    const environment = {
      AETHEEL_HOME: join(this.directory, 'home'),
      BACKEND_CLI_PATH: fileURLToPath(new URL('agent.mjs', import.meta.url)),
      WORKING_DIR: this.workingDir,
      AGENT_MODE: 'oneshot',
      ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    }
    this.#gateways = new GatewayStarter(this.directory, 'crash', environment, onTestFinished)
  }

  start({ signalAt, environment }: StartOptions = {}): KillableGateway {
    return this.#gateways.start([this.server.path, ...(signalAt ?? []).map(String)], environment)
  }

  /** Asks it to stop, once it has started: earlier, the signal would just kill it. */
  async stop({ child, started, ended }: KillableGateway): KillableGateway['ended'] {
    await started
    child.kill('SIGTERM')
    return ended
  }

  /** Kills it together with its guardian. */
  async killWithGuardian({ child, ended }: KillableGateway): Promise<void> {
    const guardian = readProcessTable().find(
      ({ pid, parentPid }) => parentPid === child.pid && commandOf(pid).includes('aetheel-guardian'),
    )
    if (!guardian) throw new Error('The gateway has no guardian')
    // It must not start another one.
    child.kill('SIGSTOP')
    process.kill(guardian.pid, 'SIGKILL')
    child.kill('SIGKILL')
    await ended
  }

  isFrozen({ child }: KillableGateway): boolean {
    return /^State:\tT/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
  }

  /** Lets waiting agents continue: all of them, or those of one gateway. */
  go(ownerId = 'all'): void {
    release(this.workingDir, ownerId)
  }

  journal(): JournalEntry[] {
    return journalIn(this.workingDir)
  }

  /** The conversations in which people have seen output stream. */
  streaming(): string[] {
    const output = this.server.live.filter(({ event }) => event.type === 'output')
    return [...new Set(output.map(({ address }) => address))].toSorted()
  }

  /** What people see, by conversation and in order. */
  answers(): Record<string, string[]> {
    return byAddress(this.server.shown())
  }

  /** What they should finally see. */
  expectedAnswers(): Record<string, string[]> {
    return byAddress(
      this.server.said.map(({ address, text }) => ({ address, text: `This answers ${text.split(' ')[0]}` })),
    )
  }

  /** Gateways, agents and their tools, whatever their parents are now. */
  alive(): string[] {
    return livingProcesses(this.directory).map(({ command }) => command)
  }

  agents(): string[] {
    return this.alive().filter((command) => command.includes('agent.mjs'))
  }

  /** The pids of warm agents. */
  warmAgents(): number[] {
    const living = livingProcesses(this.directory)
    return living.filter(({ command }) => command.includes('--input-format')).map(({ pid }) => pid)
  }

  /** What is left in the database, by table. */
  async leftovers(): Promise<Record<string, unknown>> {
    return {
      jobs: await this.#count('jobs'),
      processes: await this.#count('processes'),
      gateways: await this.#count('gateways'),
      runs: await this.#count(`runs where state = 'running'`),
      outbox: await this.#count(`outbox where state <> 'delivered'`),
      messages: await this.#count(`messages where state <> 'answered'`),
      ...(this.databaseUrl === undefined && { damage: await this.#query('pragma integrity_check') }),
    }
  }

  async #count(from: string): Promise<unknown> {
    const [row] = await this.#query(`select count(*) as count from ${from}`)
    return Number(row?.['count'])
  }

  async #query(statement: string): Promise<Record<string, unknown>[]> {
    if (this.databaseUrl === undefined) {
      const database = new Database(join(this.directory, 'home', 'aetheel.db'))
      try {
        return database.prepare(statement).all() as Record<string, unknown>[]
      } finally {
        database.close()
      }
    }
    const client = new Client({ connectionString: this.databaseUrl })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows
    } finally {
      await client.end()
    }
  }
}

/** The leftovers once all work is done and all gateways have stopped. */
export function nothingLeft(engine: EngineName): Record<string, unknown> {
  return {
    jobs: 0,
    processes: 0,
    gateways: 0,
    runs: 0,
    outbox: 0,
    messages: 0,
    ...(engine === 'sqlite' && { damage: [{ integrity_check: 'ok' }] }),
  }
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
}

function byAddress(texts: { address: string; text: string }[]): Record<string, string[]> {
  const result: Record<string, string[]> = {}
  for (const { address, text } of texts) result[address] = [...(result[address] ?? []), text]
  return result
}
