// A backend on a fake server, with its own directory; removed after the test.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { BackendDependencies } from '../../../../src/backends/engine/cli-backend.js'
import { ExternalServer, type OpenCodeEndpoint } from '../../../../src/backends/opencode/server/servers.js'
import {
  type OneShot,
  OpenCodeServerBackend,
} from '../../../../src/backends/opencode/server/opencode-server-backend.js'
import type { AgentBackend, AgentEvent, AgentRequest, AgentResult } from '../../../../src/backends/types.js'
import { FakeOpenCode, type Received } from './fake-opencode.js'

const QUIET = { debug() {}, info() {}, warn() {}, error() {} }

export interface Seen {
  events: AgentEvent[]
  types: string
  output: string
  notices: string[]
  result: AgentResult
}

interface SeeOptions {
  backend?: AgentBackend
  signal?: AbortSignal
  onEvent?: (event: AgentEvent) => unknown
}

export class ServerStage {
  readonly #backends: OpenCodeServerBackend[] = []

  private constructor(
    readonly workingDir: string,
    readonly server: FakeOpenCode,
  ) {}

  static async open(onFinished: (close: () => Promise<void>) => void = onTestFinished): Promise<ServerStage> {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-opencode-')))
    const stage = new ServerStage(directory, await FakeOpenCode.start(directory, { PATH: process.env['PATH'] }))
    onFinished(() => stage.close())
    return stage
  }

  async close(): Promise<void> {
    for (const backend of this.#backends) await backend.stop()
    await this.server.close()
    rmSync(this.workingDir, { recursive: true })
  }

  backend(
    endpoint: Partial<OpenCodeEndpoint> = {},
    dependencies: Partial<BackendDependencies> = {},
    oneShot: OneShot = noOneShot,
  ): OpenCodeServerBackend {
    const config = { cliPath: '', workingDir: this.workingDir, queryTimeoutMs: 45_000, allowedTools: [], maxTurns: 25 }
    const servers = new ExternalServer({ ...this.server.endpoint, ...endpoint })
    const backend = new OpenCodeServerBackend(
      config,
      { log: QUIET, environment: {}, ...dependencies },
      servers,
      oneShot,
    )
    this.#backends.push(backend)
    return backend
  }

  /** Runs to the end. */
  async see(request: AgentRequest, options: SeeOptions = {}): Promise<Seen> {
    const { backend = this.backend(), signal = new AbortController().signal, onEvent = () => {} } = options
    const events: AgentEvent[] = []
    for await (const event of backend.run(request, signal)) {
      events.push(event)
      await onEvent(event)
    }
    const last = events.at(-1)
    if (last?.type !== 'complete') throw new Error(`The run did not end with complete: ${JSON.stringify(last)}`)
    return {
      events,
      types: events.map(({ type }) => type).join(' '),
      output: events.map((event) => (event.type === 'output' ? event.content : '')).join(''),
      notices: events.flatMap((event) => (event.type === 'notice' ? [event.content] : [])),
      result: last.result,
    }
  }

  /** The requests to the server, in order. */
  asked(method: string, path: RegExp): Received[] {
    return this.server.received.filter((one) => one.method === method && path.test(one.path))
  }
}

const noOneShot = {
  run() {
    throw new Error('Nothing is to be run here')
  },
} as unknown as OneShot
