// A whole gateway with its HTTP side, in this process, and an agent that does what it is told.

import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inject, onTestFinished } from 'vitest'
import type { Agent } from '../../../src/client/aetheel-client.js'
import { type GatewayConfig, loadConfig } from '../../../src/config.js'
import { databaseFile, type Gateway, makeHome, startGateway } from '../../../src/gateway.js'
import { createApp } from '../../../src/service/app.js'
import { issueToken } from '../../../src/service/auth.js'
import type { App, ServiceDependencies } from '../../../src/service/dependencies.js'
import { httpChannels } from '../../../src/service/http-channel.js'
import { createLog, type Log } from '../../../src/log.js'
import { findExecutable } from '../../../src/processes/find-executable.js'
import { gitRunner } from '../../../src/projects/git-clone.js'
import { ProjectService } from '../../../src/projects/project-service.js'
import type { Scope } from '../../../src/store/tokens.js'
import { endLivingProcesses, livingProcesses } from '../../processes/living-processes.js'
import { putDatabase } from '../../put-database.js'
import { journalIn, until } from '../../waiting.js'

const AGENT = fileURLToPath(new URL('../../channels/discord/agent.mjs', import.meta.url))

export interface AnswerBody extends Command {
  id: string
  directory: string
  timeout: number
  next: string
  outcome: string
  job: string
  error: { code: string; message: string; problems: Array<{ path: string; message: string }> }
  commands: Command[]
  projects: Array<{ id: string }>
  templates: Array<{ name: string }>
  agents: Agent[]
  entries: Array<{ actor: string; action: string; subject: string; detail: string | null }>
  open: object[]
}

interface Command {
  command_id: string
  prompt: string
  state: string
  session_id: string
  stream_url: string
  agent_provider: string
  result: string
  files: object[]
  exit_code: number
  error: { reason?: string; message: string }
  runs: Array<{ state: string }>
  command: string[] | null
  metadata: Record<string, string>
}

export interface Answer {
  status: number
  /** Of JSON, what tests look into. */
  body: AnswerBody
  text: string
  headers: Record<string, unknown>
}

export type Ask = (
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  url: string,
  body?: object,
  headers?: object,
) => Promise<Answer>

/** Where a gateway keeps everything, and how it is set up. */
export interface Place {
  directory: string
  /** Of the project `site`. */
  site: string
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  log: Log
  logged: string[]
}

/** The project `site`, and two agents that are there: claude and codex. Gone when the test is over. */
export function makePlace(settings: object = {}): Place {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-routes-')))
  onTestFinished(() => {
    endLivingProcesses(directory)
    rmSync(directory, { recursive: true, force: true })
  })
  const make = (name: string): string => {
    mkdirSync(join(directory, name), { recursive: true })
    return join(directory, name)
  }
  const site = make('roots/site')
  const file = join(directory, 'aetheel.json5')
  const defaults = {
    backendCliPath: AGENT,
    agentMode: 'oneshot',
    workingDir: make('work'),
    projectRoots: [join(directory, 'roots')],
    drainTimeoutMs: 0,
    httpPort: 0,
    projects: { site: { directory: site } },
  }
  writeFileSync(file, JSON.stringify({ ...defaults, ...settings }))
  const environment = { PATH: makePrograms(make('bin')), HOME: make('home') }
  const config = loadConfig({ ...environment, AETHEEL_HOME: join(directory, 'data') }, file)
  makeHome(config)
  putDatabase({ file: databaseFile(config), databaseUrl: config.databaseUrl })
  const logged: string[] = []
  const log = createLog({ level: 'debug', destination: { write: (line) => logged.push(String(line)) > 0 } })
  return { directory, site, config, environment, log, logged }
}

/** What tests run, and no agent that this machine may have. */
function makePrograms(bin: string): string {
  for (const name of ['node', 'git', 'sh', 'sleep']) {
    symlinkSync(findExecutable(name, process.env['PATH'] ?? '') ?? name, join(bin, name))
  }
  writeFileSync(join(bin, 'codex'), '#!/bin/sh\necho codex-cli 0.142.5\n', { mode: 0o755 })
  return bin
}

/** A gateway with what its HTTP side needs. Stopped when the test is over, or before. */
export async function startService({
  config,
  environment,
  log,
}: Place): Promise<ServiceDependencies & { gateway: Gateway }> {
  const gateway = await startGateway(config, { environment, log, channels: httpChannels() })
  onTestFinished(() => gateway.stop())
  const { store, agents, credentials, metrics } = gateway
  const run = gitRunner(environment)
  return {
    config,
    gateway,
    projects: new ProjectService({ store, config, agents, run, log, ...CLOCK }),
    credentials,
    metrics,
    dashboardDirectory: join(inject('buildDirectory'), 'dist/web'),
    log,
    ...CLOCK,
  }
}

const CLOCK = { now: Date.now, newId: randomUUID }

export async function tokenFor({ gateway }: ServiceDependencies, scope: Scope, projects?: string[]): Promise<string> {
  const about = { name: `a ${scope} token`, scope, ...(projects && { projects }) }
  return (await issueToken(gateway.store.tokens, about, CLOCK)).token
}

export interface Stage extends Place {
  gateway: Gateway
  app: App
  /** With a token for everything. */
  ask: Ask
  askWith(token: string): Ask
  tokenWith(scope: Scope, projects?: string[]): Promise<string>
  /** Lets an agent go on that waits at `{"hold": name}`. */
  release(name: string): void
  /** What agents were asked in `site`, in order. */
  journal(): Journaled[]
  alive(): string[]
}

interface Journaled {
  prompt: string
  sessionId: string
  isResumed: boolean
  model: string
  tools?: string
}

/** The routes on a gateway of their own, with a second project: `shop`, which was made by the API. */
export async function openStage(settings: object = {}): Promise<Stage> {
  const place = makePlace(settings)
  const { directory, site } = place
  const dependencies = await startService(place)
  const { gateway } = dependencies
  const shop = join(directory, 'roots/shop')
  mkdirSync(shop)
  await gateway.store.projects.add({ id: 'shop', directory: shop }, Date.now())
  const app = await createApp(dependencies)
  onTestFinished(() => app.close())
  const askWith = (token: string): Ask => askOf(app, token)
  return {
    ...place,
    gateway,
    app,
    ask: askWith(await tokenFor(dependencies, 'admin')),
    askWith,
    tokenWith: (scope, projects) => tokenFor(dependencies, scope, projects),
    release: (name) => release(site, name),
    journal: () => journal(site),
    alive: () => livingProcesses(directory).map(({ command }) => command),
  }
}

export function askOf(app: App, token: string): Ask {
  return async (method, url, payload, headers = {}) => {
    const response = await app.inject({
      method,
      url,
      headers: { authorization: `Bearer ${token}`, host: '127.0.0.1', ...headers },
      ...(payload && { payload }),
    })
    const isJson = String(response.headers['content-type']).startsWith('application/json')
    const body = (isJson ? response.json() : {}) as AnswerBody
    return { status: response.statusCode, body, text: response.body, headers: response.headers }
  }
}

export function release(directory: string, name: string): void {
  writeFileSync(join(directory, `go-${name}`), '')
}

export function journal(directory: string): Journaled[] {
  return journalIn(directory)
}

/** Waits until a command of `site` is in one of the states, and gives it. */
export async function commandIn(ask: Ask, commandId: string, ...states: string[]): Promise<Command> {
  return until(
    async () => {
      const { body } = await ask('GET', `/projects/site/commands/${commandId}`)
      return states.includes(body.state) && body
    },
    `a command that is ${states.join(' or ')}`,
  )
}

/** What one may ask the agent to do. */
export function steps(...list: object[]): string {
  return JSON.stringify(list)
}
