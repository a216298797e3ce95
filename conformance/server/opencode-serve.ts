/** A real, unsupervised `opencode serve`, as an operator would start it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import type { OpenCodeEndpoint } from '../../src/backends/opencode/server/servers.js'
import type { Sandbox } from '../sandbox.js'

const startMs = 60_000

export interface OpenCodeServe {
  endpoint: OpenCodeEndpoint & { password: string }
  /** Contract: may be called after it has ended. */
  kill(): Promise<void>
}

/** Starts it in a directory that no turn works in. */
export async function startOpenCodeServe(cliPath: string, { environment, temporary }: Sandbox): Promise<OpenCodeServe> {
  const password = randomUUID()
  // By default it reuses the previous server's port, to which connections may still be open.
  const port = String(await freePort())
  const server = spawn(cliPath, ['serve', '--hostname', '127.0.0.1', '--port', port], {
    cwd: temporary,
    env: { ...environment, OPENCODE_SERVER_PASSWORD: password },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const kill = async (): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const ended = once(server, 'exit')
    server.kill('SIGKILL')
    await ended
  }
  try {
    return { endpoint: { url: await listeningAt(server), username: 'opencode', password }, kill }
  } catch (error) {
    await kill()
    throw error
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function listeningAt(server: ChildProcess & { stdout: NodeJS.ReadableStream }): Promise<string> {
  const lines = createInterface(server.stdout)
  const timer = setTimeout(() => lines.close(), startMs)
  try {
    for await (const line of lines) {
      const [, url] = /listening on (http:\S+)/.exec(line) ?? []
      if (url !== undefined) {
        server.stdout.resume()
        return url
      }
    }
  } finally {
    clearTimeout(timer)
  }
  throw new Error('opencode serve did not print its address')
}
