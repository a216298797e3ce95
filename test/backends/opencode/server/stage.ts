// A backend on a fake server, with its own directory; removed after the test.

import { onTestFinished } from 'vitest'
import type { BackendDependencies } from '../../../../src/backends/engine/cli-backend.js'
import { ExternalServer, type OpenCodeEndpoint } from '../../../../src/backends/opencode/server/servers.js'
import {
  type OneShot,
  OpenCodeServerBackend,
} from '../../../../src/backends/opencode/server/opencode-server-backend.js'
import type { AgentBackend, AgentEvent, AgentRequest } from '../../../../src/backends/types.js'
import { FakeOpenCode, type Received } from './fake-opencode.js'
import { temporaryDirectory } from '../../../kit/temporary-directory.js'
import { SILENT_LOG } from '../../../kit/log.js'
import { adapterConfig } from '../../../kit/adapter-config.js'
import { seeRun, type SeenRun } from '../../../kit/seen-run.js'

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

  static async open(): Promise<ServerStage> {
    const directory = temporaryDirectory()
    const stage = new ServerStage(directory, await FakeOpenCode.start(directory, { PATH: process.env['PATH'] }))
    onTestFinished(() => stage.close())
    return stage
  }

  async close(): Promise<void> {
    for (const backend of this.#backends.splice(0)) await backend.stop()
    await this.server.close()
  }

  backend(
    endpoint: Partial<OpenCodeEndpoint> = {},
    dependencies: Partial<BackendDependencies> = {},
    oneShot: OneShot = noOneShot,
  ): OpenCodeServerBackend {
    const config = adapterConfig({ workingDir: this.workingDir, queryTimeoutMs: 45_000 })
    const servers = new ExternalServer({ ...this.server.endpoint, ...endpoint })
    const backend = new OpenCodeServerBackend(
      config,
      { log: SILENT_LOG, environment: {}, ...dependencies },
      servers,
      oneShot,
    )
    this.#backends.push(backend)
    return backend
  }

  /** Runs to the end. */
  async see(request: AgentRequest, options: SeeOptions = {}): Promise<SeenRun> {
    const { backend = this.backend(), signal = new AbortController().signal, onEvent = () => {} } = options
    return seeRun(backend.run(request, signal), onEvent)
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
