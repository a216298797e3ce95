/** A whole listening gateway in this process, with one project and the benchmark's own agent. */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../src/config.js'
import { makeHome, startGateway } from '../src/gateway.js'
import { issueToken } from '../src/service/auth.js'
import { DEFAULT_LIMITS } from '../src/service/guards.js'
import { httpChannels } from '../src/service/http-channel.js'
import { startHttpServer } from '../src/service/server.js'
import { createLog } from '../src/log.js'
import { gitRunner } from '../src/projects/git-clone.js'
import { ProjectService } from '../src/projects/project-service.js'
import type { Store } from '../src/store/store.js'

const PROJECT_ID = 'bench'

export interface BenchService {
  store: Store
  port: number
  /** Has the scope `run`. */
  token: string
  /** Where commands are posted. */
  path: string
  /** Contract: rejects unless the command was accepted. */
  execute(body: { prompt: string }): Promise<{ stream_url: string }>
  /** Ends everything and removes its files. */
  stop(): Promise<void>
}

/** `agent` is the source of an executable that speaks Claude Code's format. Without a `databaseUrl` it uses SQLite. */
export async function startBenchService(agent: string, databaseUrl?: string): Promise<BenchService> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'service-')))
  const remove = (): Promise<void> => rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  try {
    const directory = join(home, 'projects', PROJECT_ID)
    await mkdir(directory, { recursive: true })
    await writeFile(join(home, 'agent'), agent, { mode: 0o700 })
    const environment = {
      PATH: process.env['PATH'],
      HOME: home,
      AETHEEL_HOME: join(home, 'data'),
      PROJECT_ROOTS: join(home, 'projects'),
      BACKEND_CLI_PATH: join(home, 'agent'),
      AGENT_MODE: 'oneshot',
      WORKING_DIR: home,
      HTTP_PORT: '0',
      MAX_CONCURRENT_QUERIES: '1',
      MAX_WAITING_COMMANDS: '1000000',
      DRAIN_TIMEOUT_MS: '0',
      ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    }
    const config = loadConfig(environment)
    makeHome(config)
    const log = createLog()
    const gateway = await startGateway(config, { environment, log, channels: httpChannels() })
    try {
      const { store, agents, credentials, metrics } = gateway
      const clock = { now: Date.now, newId: randomUUID }
      await store.projects.add({ id: PROJECT_ID, directory }, Date.now())
      const projects = new ProjectService({ store, config, agents, run: gitRunner(environment), log, ...clock })
      const { token } = await issueToken(store.tokens, { name: 'bench', scope: 'run' }, clock)
      const limits = { ...DEFAULT_LIMITS, requestsPerMinute: 1e9, strangerRequestsPerMinute: 1e9 }
      const http = await startHttpServer({ config, gateway, projects, credentials, metrics, log, ...clock }, limits)
      const stop = async (): Promise<void> => {
        await http.close()
        await gateway.stop()
        await remove()
      }
      const path = `/projects/${PROJECT_ID}/execute`
      const execute: BenchService['execute'] = async (body) => {
        const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
        const response = await fetch(http.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
        if (response.status !== 202) throw new Error(`The answer was ${response.status}: ${await response.text()}`)
        return (await response.json()) as { stream_url: string }
      }
      return { store, port: Number(new URL(http.url).port), token, path, execute, stop }
    } catch (error) {
      await gateway.stop()
      throw error
    }
  } catch (error) {
    await remove()
    throw error
  }
}
