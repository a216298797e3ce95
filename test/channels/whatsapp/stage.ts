// A whole gateway with the WhatsApp channel and the HTTP server, in this process, and a Twilio on loopback.

import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'vitest'
import { openWhatsApp } from '../../../src/channels/configured-channels.js'
import { type GatewayConfig, loadConfig } from '../../../src/config.js'
import { databaseFile, type Gateway, type GatewayDependencies, makeHome, startGateway } from '../../../src/gateway.js'
import { type HttpServer, startHttpServer } from '../../../src/service/server.js'
import { createLog, type Log } from '../../../src/log.js'
import { gitRunner } from '../../../src/projects/git-clone.js'
import { ProjectService } from '../../../src/projects/project-service.js'
import { endLivingProcesses, livingProcesses } from '../../kit/living-processes.js'
import { putDatabase } from '../../kit/put-database.js'
import { journalIn } from '../../kit/waiting.js'
import { FakeTwilio } from './fake-twilio.js'

const AGENT = fileURLToPath(new URL('../../fixtures/bin/steps-agent.mjs', import.meta.url))

export const ADA = '+4915112345678'
export const BEN = '+4915187654321'
export const STRANGER = '+4915100009999'
export const PUBLIC_URL = 'https://gateway.example'

/** Many of them end at once, on few CPUs. */
const END_WITHIN_MS = 60_000
/** Often enough for tests; people cannot configure it. */
const POLL_SECONDS = 0.1

export interface Journaled {
  prompt: string
  sessionId: string
  isResumed: boolean
}

export interface StartOptions extends Pick<GatewayDependencies, 'onStep'> {
  /** Without it, Twilio is polled. */
  isListening?: boolean
  now?: () => number
}

export class WhatsAppStage {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-whatsapp-')))
  readonly workingDir = this.makeDirectory('work')
  readonly logged: string[] = []
  readonly log: Log = createLog({
    level: 'debug',
    destination: { write: (line) => this.logged.push(String(line)) > 0 },
  })
  readonly #running = new Map<Gateway, HttpServer | undefined>()

  private constructor(readonly twilio: FakeTwilio) {}

  /** Everything is stopped and removed when the test is over. */
  static async open(onTestFinished: TestContext['onTestFinished']): Promise<WhatsAppStage> {
    const stage = new WhatsAppStage(await FakeTwilio.start())
    onTestFinished(async ({ task }) => {
      for (const gateway of [...stage.#running.keys()]) await stage.stop(gateway)
      await stage.twilio.stop()
      endLivingProcesses(stage.directory)
      rmSync(stage.directory, { recursive: true, force: true })
      if (task.result?.state === 'fail') console.error(stage.logged.join(''))
    }, END_WITHIN_MS)
    return stage
  }

  /** `reply` is the block `inbound.reply`, besides what every test needs. */
  config(reply: object = {}, settings: object = {}, isListening = true): GatewayConfig {
    const { twilio, workingDir } = this
    const file = join(this.directory, 'aetheel.json5')
    const defaults = {
      backendCliPath: AGENT,
      agentMode: 'oneshot',
      workingDir,
      twilioAccountSid: twilio.accountSid,
      twilioAuthToken: twilio.authToken,
      twilioWhatsappFrom: twilio.number,
      twilioApiUrl: twilio.apiUrl,
      httpPort: 0,
      drainTimeoutMs: 0,
      inbound: { reply: { agent: { kind: 'claude' }, allowFrom: [ADA, BEN], ...reply } },
      ...(isListening && { publicUrl: PUBLIC_URL }),
    }
    writeFileSync(file, JSON.stringify({ ...defaults, ...settings }))
    const home = join(this.directory, 'home')
    const config = loadConfig(
      { PATH: process.env['PATH'], HOME: home, AETHEEL_HOME: join(this.directory, 'data') },
      file,
    )
    return { ...config, whatsappPollSeconds: POLL_SECONDS }
  }

  async start(reply: object = {}, { isListening = true, now, onStep }: StartOptions = {}): Promise<Gateway> {
    return this.startWith(this.config(reply, {}, isListening), { ...(now && { now }), ...(onStep && { onStep }) })
  }

  async startWith(config: GatewayConfig, { now, onStep }: StartOptions = {}): Promise<Gateway> {
    const { log } = this
    makeHome(config)
    putDatabase({ file: databaseFile(config), databaseUrl: config.databaseUrl })
    const environment = { PATH: process.env['PATH'], HOME: join(this.directory, 'home') }
    const channel = await openWhatsApp(() => config, { environment, log, ...(now && { now }) })
    if (!channel) throw new Error('WhatsApp is not configured')
    const gateway = await startGateway(config, { environment, log, channels: [channel], ...(onStep && { onStep }) })
    this.#running.set(gateway, undefined)
    const { endpoints = [] } = channel
    if (endpoints.length > 0) {
      const { store, agents, credentials, metrics } = gateway
      const clock = { now: Date.now, newId: randomUUID }
      const projects = new ProjectService({ store, config, agents, run: gitRunner(environment), log, ...clock })
      const server = await startHttpServer({
        config,
        gateway,
        projects,
        credentials,
        metrics,
        endpoints,
        log,
        ...clock,
      })
      this.#running.set(gateway, server)
      this.twilio.webhook = { target: server.url, publicUrl: config.publicUrl ?? '' }
    }
    return gateway
  }

  async stop(gateway: Gateway): Promise<void> {
    const server = this.#running.get(gateway)
    if (!this.#running.delete(gateway)) return
    await server?.close()
    await gateway.stop()
  }

  /** Releases an agent that waits at `{"hold": name}`. */
  release(name: string): void {
    writeFileSync(join(this.workingDir, `go-${name}`), '')
  }

  makeDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path)
    return path
  }

  /** The prompts the agents got, in order. */
  journal(): Journaled[] {
    return journalIn(this.workingDir)
  }

  alive(): string[] {
    return livingProcesses(this.directory).map(({ command }) => command)
  }

  /** The log entries with this message. */
  logsOf(name: string): Record<string, unknown>[] {
    return this.logged.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === name)
  }
}

/** Steps for the agent, as a message. */
export function steps(...list: object[]): string {
  return JSON.stringify(list)
}

/** A port nobody is listening on. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
