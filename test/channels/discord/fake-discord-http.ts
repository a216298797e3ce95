// The HTTP server: reads requests, logs them, applies buckets and faults, and writes the routes' responses.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import type { Admission, Buckets } from './fake-discord-buckets.js'
import { ApiError, refusals } from './fake-discord-errors.js'
import type { Fault, Faults } from './fake-discord-faults.js'
import type { Upload } from './fake-discord-message-body.js'
import type { StoredFile } from './fake-discord-records.js'
import type { Answer, Call, Route, Routes } from './fake-discord-routes.js'

export interface LoggedRequest {
  method: string
  /** Such as `/channels/:id/messages`; empty if there is no such route. */
  route: string
  /** Without `/api/v10`. */
  path: string
  query: Record<string, string>
  body: unknown
  /** The names of the attached files. */
  files: string[]
  /** In milliseconds since the epoch. */
  at: number
  /** Absent until, and unless, it was answered. */
  status?: number
  fault?: Fault['kind']
}

interface Dependencies {
  routes: Routes
  buckets: Buckets
  faults: Faults
  files: ReadonlyMap<string, StoredFile>
  token: string
  onSocket(socket: WebSocket, request: IncomingMessage): void
}

interface Reply extends Answer {
  headers?: Record<string, string>
}

const PREFIX = '/api/v10'

export class HttpServer {
  readonly requests: LoggedRequest[] = []
  readonly #dependencies: Dependencies
  readonly #server: Server
  readonly #webSockets = new WebSocketServer({ noServer: true })
  readonly #connections = new Set<Socket>()
  #isOffline = false
  #port = 0

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
    this.#server = createServer((request, response) => void this.#serve(request, response))
    this.#server.on('connection', (socket) => this.#admit(socket))
    this.#server.on('upgrade', (request, socket, head) => {
      this.#webSockets.handleUpgrade(request, socket, head, (opened) => dependencies.onSocket(opened, request))
    })
  }

  get host(): string {
    return `127.0.0.1:${this.#port}`
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve)
    })
    this.#port = (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    for (const socket of this.#connections) socket.destroy()
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  setOffline(isOffline: boolean): void {
    this.#isOffline = isOffline
    if (isOffline) for (const socket of this.#connections) socket.resetAndDestroy()
  }

  #admit(socket: Socket): void {
    // Keeps the port, so that nobody else takes it meanwhile.
    if (this.#isOffline) {
      socket.resetAndDestroy()
      return
    }
    this.#connections.add(socket)
    socket.on('close', () => this.#connections.delete(socket))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // The client aborted it before it was complete.
      return
    }
    const { method = '' } = request
    const url = new URL(request.url ?? '/', `http://${this.host}`)
    const path = url.pathname.startsWith(PREFIX) ? url.pathname.slice(PREFIX.length) : url.pathname
    const query = Object.fromEntries(url.searchParams)
    const entry: LoggedRequest = { method, route: '', path, query, body: undefined, files: [], at: Date.now() }
    this.requests.push(entry)
    if (path.startsWith('/attachments/')) {
      this.#withFault(entry, response, undefined, () => this.#file(entry, response))
      return
    }
    await this.#call(entry, url, request, Buffer.concat(chunks), response)
  }

  async #call(
    entry: LoggedRequest,
    url: URL,
    request: IncomingMessage,
    raw: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    const { routes, buckets, token } = this.#dependencies
    const match = url.pathname.startsWith(PREFIX) ? routes.find(entry.method, entry.path) : undefined
    if (!match) return this.#reply(entry, response, fromError(refusals.notFound()))
    const { route, ids } = match
    entry.route = route.name.slice(route.name.indexOf(' ') + 1)
    let call: Call
    try {
      const { body, uploads } = await readBody(raw, request.headers['content-type'] ?? '')
      call = { ids, query: url.searchParams, body, uploads }
    } catch {
      return this.#reply(entry, response, fromError(refusals.invalidJson()))
    }
    entry.body = call.body
    entry.files = call.uploads.map(({ name }) => name)
    const isKnown = route.needsNoToken || request.headers.authorization === `Bot ${token}`
    if (!isKnown) return this.#reply(entry, response, fromError(refusals.unauthorized()))
    const admission = route.bucket && buckets.admit(route.bucket, ids[route.bucketOf] ?? '')
    if (admission?.retryAfterMs !== undefined) {
      const beyond = limited(admission.retryAfterMs, 'user')
      return this.#reply(entry, response, beyond, admission)
    }
    this.#withFault(entry, response, admission, (isSilent) => {
      const reply = carryOut(route, call)
      if (!isSilent) this.#reply(entry, response, reply, admission)
    })
  }

  /** Runs the act unless it fails first; a fault afterwards suppresses its response. */
  #withFault(
    entry: LoggedRequest,
    response: ServerResponse,
    admission: Admission | undefined,
    act: (isSilent: boolean) => void,
  ): void {
    const fault = this.#dependencies.faults.take(entry.method, entry.path)
    if (!fault) return act(false)
    entry.fault = fault.kind
    if ('hasEffect' in fault && fault.hasEffect) act(true)
    switch (fault.kind) {
      case 'status': {
        return this.#reply(entry, response, { status: fault.status, body: { code: 0, message: 'fault' } }, admission)
      }
      case 'rate-limit': {
        const reply = limited(fault.retryAfterMs, fault.isGlobal ? 'global' : 'shared')
        return this.#reply(entry, response, reply, fault.isGlobal ? undefined : admission)
      }
      case 'hang': {
        return
      }
      case 'close': {
        response.socket?.destroy()
        return
      }
      case 'reset': {
        response.socket?.resetAndDestroy()
        return
      }
    }
  }

  #file(entry: LoggedRequest, response: ServerResponse): void {
    const file = this.#dependencies.files.get(entry.path.split('/')[3] ?? '')
    entry.status = file ? 200 : 404
    if (!file) {
      response.writeHead(404).end()
      return
    }
    response.writeHead(200, { 'Content-Type': file.type, 'Content-Length': file.content.length }).end(file.content)
  }

  #reply(entry: LoggedRequest, response: ServerResponse, reply: Reply, admission?: Admission): void {
    entry.status = reply.status
    const text = reply.body === undefined ? undefined : JSON.stringify(reply.body)
    response.writeHead(reply.status, {
      ...admission?.headers,
      ...reply.headers,
      ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
    })
    response.end(text)
    admission?.answered()
  }
}

function carryOut(route: Route, call: Call): Reply {
  try {
    return route.handle(call)
  } catch (error) {
    if (error instanceof ApiError) return fromError(error)
    throw error
  }
}

function fromError({ status, code, message, details, headers }: ApiError): Reply {
  return { status, body: { message, code, ...details }, headers }
}

function limited(retryAfterMs: number, scope: 'user' | 'shared' | 'global'): Reply {
  const seconds = (retryAfterMs / 1000).toFixed(3)
  return {
    status: 429,
    body: { message: 'You are being rate limited.', retry_after: Number(seconds), global: scope === 'global' },
    headers: {
      'Retry-After': seconds,
      'X-RateLimit-Scope': scope,
      ...(scope === 'global' ? { 'X-RateLimit-Global': 'true' } : {}),
    },
  }
}

async function readBody(raw: Buffer, type: string): Promise<{ body: unknown; uploads: Upload[] }> {
  if (raw.length === 0) return { body: undefined, uploads: [] }
  if (!type.startsWith('multipart/form-data')) return { body: JSON.parse(raw.toString()) as unknown, uploads: [] }
  const form = await new Response(raw, { headers: { 'content-type': type } }).formData()
  const json = form.get('payload_json')
  const uploads: Upload[] = []
  for (const [key, value] of form) {
    const index = /^files\[(\d+)\]$/.exec(key)?.[1]
    if (index === undefined || typeof value === 'string') continue
    const content = new Uint8Array(await value.arrayBuffer())
    uploads.push({ index, name: value.name, type: value.type, content })
  }
  return { body: typeof json === 'string' ? (JSON.parse(json) as unknown) : {}, uploads }
}
