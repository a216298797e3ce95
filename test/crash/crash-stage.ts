// What a crash test plays on: a directory and a database of its own, a channel that outlives the gateways, and the
// gateways, each a process.

import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { Client } from 'pg'
import { describe, inject, type TestContext } from 'vitest'
import { readProcessTable } from '../../src/processes/process-table.js'
import type { Step } from '../../src/turns/types.js'
import { createDatabase, postgresUrl } from '../kit/postgres.js'
import { endLivingProcesses, livingProcesses } from '../kit/living-processes.js'
import { ChannelServer } from './channel-server.js'

export const WITHIN_10_SECONDS = { timeout: 10_000, interval: 100 }
/** A lease is 30 s where nothing else is said: what takes so long did not wait for its end. */
export const BEFORE_A_LEASE_ENDS = { timeout: 20_000, interval: 20 }

type EngineName = 'sqlite' | 'postgres'

/** What the agent wrote down when it was started for a message. */
interface JournalEntry {
  name: string
  sessionId: string
  isResumed: boolean
  /** Whether it was told of an interruption. */
  isTold: boolean
  /** Whether no other process was at work in the same session. */
  isAlone: boolean
  /** What the session knew before. */
  heard: string[]
  ownerId: string
}

export interface GatewayProcess {
  child: ChildProcess
  /** Its id, when it has started. */
  started: Promise<string>
  /** By which signal or with which code it ended. */
  ended: Promise<NodeJS.Signals | number | null>
}

interface StartOptions {
  signalAt?: [signal: NodeJS.Signals, step: Step, occurrence: number]
  environment?: Record<string, string>
}

/** `setUp` gives a test its stage, and takes it away when the test has ended. */
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

async function setUpStage(engine: EngineName, { task, onTestFinished }: TestContext): Promise<CrashStage> {
  const database = engine === 'postgres' ? await createDatabase() : undefined
  const stage = new CrashStage(join(inject('buildDirectory'), 'test', 'crash', 'gateway-process.js'), database?.url)
  onTestFinished(async () => {
    if (task.result?.state === 'fail') console.error(stage.log())
    await stage.remove()
    await database?.drop()
  })
  return stage
}

export class CrashStage {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-crash-')))
  readonly workingDir = join(this.directory, 'work')
  readonly server = new ChannelServer(join(this.directory, 'channel'))
  readonly #gateways: GatewayProcess[] = []

  constructor(
    private readonly entry: string,
    private readonly databaseUrl: string | undefined,
  ) {
    mkdirSync(this.workingDir)
  }

  start({ signalAt, environment = {} }: StartOptions = {}): GatewayProcess {
    const log = openSync(join(this.directory, 'log'), 'a')
    const child = spawn(process.execPath, [this.entry, this.server.path, ...(signalAt ?? []).map(String)], {
      cwd: '/',
      env: {
        PATH: process.env['PATH'],
        HOME: this.directory,
        AETHEEL_HOME: join(this.directory, 'home'),
        BACKEND_CLI_PATH: fileURLToPath(new URL('agent.mjs', import.meta.url)),
        WORKING_DIR: this.workingDir,
        AGENT_MODE: 'oneshot',
        ...(this.databaseUrl !== undefined && { DATABASE_URL: this.databaseUrl }),
        ...environment,
      },
      stdio: ['ignore', 'pipe', log],
    })
    closeSync(log)
    const started = new Promise<string>((resolve) => {
      child.stdout?.once('data', (line) => resolve(String(line).trim()))
    })
    const ended = new Promise<NodeJS.Signals | number | null>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? code))
    })
    const gateway = { child, started, ended }
    this.#gateways.push(gateway)
    return gateway
  }

  /** Tells it to end in order. Before it has started it would not understand. */
  async stop({ child, started, ended }: GatewayProcess): GatewayProcess['ended'] {
    await started
    child.kill('SIGTERM')
    return ended
  }

  /** Kills it in a way that its guardian cannot do anything about. */
  async killWithGuardian({ child, ended }: GatewayProcess): Promise<void> {
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

  isFrozen({ child }: GatewayProcess): boolean {
    return /^State:\tT/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
  }

  /** Lets the agents go on that hold: all of them, or those of one gateway. */
  go(ownerId = 'all'): void {
    writeFileSync(join(this.workingDir, `go-${ownerId}`), '')
  }

  journal(): JournalEntry[] {
    const file = join(this.workingDir, 'journal')
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
    return lines.map((line) => JSON.parse(line) as JournalEntry)
  }

  /** Where people see an answer come, or have seen that. */
  streaming(): string[] {
    const output = this.server.live.filter(({ event }) => event.type === 'output')
    return [...new Set(output.map(({ address }) => address))].toSorted()
  }

  /** What people see, by conversation and in order. */
  answers(): Record<string, string[]> {
    return byAddress(this.server.shown())
  }

  /** What they should see in the end. */
  expectedAnswers(): Record<string, string[]> {
    return byAddress(
      this.server.said.map(({ address, text }) => ({ address, text: `This answers ${text.split(' ')[0]}` })),
    )
  }

  /** Gateways, agents and their tools, wherever they hang now. */
  alive(): string[] {
    return livingProcesses(this.directory).map(({ command }) => command)
  }

  agents(): string[] {
    return this.alive().filter((command) => command.includes('agent.mjs'))
  }

  /** The pids of those that stay. */
  stayingAgents(): number[] {
    const living = livingProcesses(this.directory)
    return living.filter(({ command }) => command.includes('--input-format')).map(({ pid }) => pid)
  }

  /** What is left of the work in the database, by table. */
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

  log(): string {
    return readFileSync(join(this.directory, 'log'), 'utf8')
  }

  async remove(): Promise<void> {
    for (const { child } of this.#gateways) child.kill('SIGKILL')
    await Promise.all(this.#gateways.map(({ ended }) => ended))
    endLivingProcesses(this.directory)
    await this.server.close()
    // Whoever was killed may have held a file open a moment ago.
    rmSync(this.directory, { recursive: true, maxRetries: 5 })
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

/** Of a stage where everything was done and every gateway stopped in order. */
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
