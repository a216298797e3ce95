import { once } from 'node:events'
import { createServer, type RequestListener, type Server as HttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { onTestFinished, type TestContext } from 'vitest'

/** Listens on a free port of loopback until the test ends, and returns the port. A concurrent test passes its own hook. */
export async function listen(
  server: Server | HttpServer,
  onFinished: TestContext['onTestFinished'] = onTestFinished,
): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onFinished(() => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** The URL of an HTTP server that answers like this until the test ends. */
export async function serveHttp(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(listener))}`
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
