// A gateway in this process with its HTTP side, and an agent that follows steps.

import { randomUUID } from 'node:crypto'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import type { Agent } from '../../../src/client/aetheel-client.js'
import type { GatewayConfig } from '../../../src/config.js'
import type { Gateway } from '../../../src/gateway.js'
import { findExecutable } from '../../../src/core/paths.js'
import { gitRunner } from '../../../src/projects/git-clone.js'
import { ProjectService } from '../../../src/projects/project-service.js'
import { createApp } from '../../../src/service/app.js'
import { issueToken } from '../../../src/service/auth.js'
import type { App, ServiceDependencies } from '../../../src/service/dependencies.js'
import { httpChannels } from '../../../src/service/http-channel.js'
import type { Scope } from '../../../src/store/tokens.js'
import { GatewayStage } from '../../kit/gateway-stage.js'
import { type Journaled, journalIn, release, STEPS_AGENT } from '../../kit/steps-agent.js'
import { until } from '../../kit/waiting.js'

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

/** Where gateways keep everything, with the project `site` and two installed agents, claude and codex. */
export class Place extends GatewayStage {
  /** The directory of the project `site`. */
  readonly site = this.makeDirectory('roots/site')
  readonly config: GatewayConfig

  constructor(settings: object = {}) {
    super()
    // What tests run, without any agents that this machine may have.
    this.environment.PATH = this.bin
    for (const name of ['node', 'git', 'sh', 'sleep']) {
      symlinkSync(findExecutable(name, process.env['PATH'] ?? '') ?? name, join(this.bin, name))
    }
    this.executable('codex', '#!/bin/sh\necho codex-cli 0.142.5\n')
    this.config = this.load({
      backendCliPath: STEPS_AGENT,
      agentMode: 'oneshot',
      workingDir: this.workingDir,
      projectRoots: [join(this.directory, 'roots')],
      drainTimeoutMs: 0,
      httpPort: 0,
      projects: { site: { directory: this.site } },
      ...settings,
    })
  }
}

/** A gateway with what its HTTP side needs. */
export async function startService(place: Place): Promise<ServiceDependencies & { gateway: Gateway }> {
  const { config, environment, log } = place
  const gateway = await place.launch(config, { channels: httpChannels() })
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
  const about = { name: `${scope} token`, scope, ...(projects && { projects }) }
  return (await issueToken(gateway.store.tokens, about, CLOCK)).token
}

export interface Stage extends Pick<Place, 'directory' | 'site' | 'config' | 'logged' | 'alive'> {
  gateway: Gateway
  app: App
  /** With an admin token. */
  ask: Ask
  askWith(token: string): Ask
  tokenWith(scope: Scope, projects?: string[]): Promise<string>
  /** Releases an agent in `site` that waits at `{"hold": name}`. */
  release(name: string): void
  /** The prompts agents got in `site`, in order. */
  journal(): Journaled[]
}

/** The routes on their own gateway, with a second project: `shop`, created by the API. */
export async function openStage(settings: object = {}): Promise<Stage> {
  const place = new Place(settings)
  const { directory, site, config, logged } = place
  const dependencies = await startService(place)
  const { gateway } = dependencies
  const shop = join(directory, 'roots/shop')
  mkdirSync(shop)
  await gateway.store.projects.add({ id: 'shop', directory: shop }, Date.now())
  const app = await createApp(dependencies)
  onTestFinished(() => app.close())
  const askWith = (token: string): Ask => askOf(app, token)
  return {
    directory,
    site,
    config,
    logged,
    alive: () => place.alive(),
    gateway,
    app,
    ask: askWith(await tokenFor(dependencies, 'admin')),
    askWith,
    tokenWith: (scope, projects) => tokenFor(dependencies, scope, projects),
    release: (name) => release(site, name),
    journal: () => journalIn(site),
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

/** Waits until a command of `site` is in one of the states, and returns it. */
export async function commandIn(ask: Ask, commandId: string, ...states: string[]): Promise<Command> {
  return until(
    async () => {
      const { body } = await ask('GET', `/projects/site/commands/${commandId}`)
      return states.includes(body.state) && body
    },
    `a command that is ${states.join(' or ')}`,
  )
}
