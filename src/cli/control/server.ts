// Invariants:
// - Only the holder of the gateway's lock listens, so an existing socket belongs to a dead gateway.
// - Only the owner may open the socket, at every moment.
// - A client that does not read, or sends garbage, is disconnected; no other client notices.

import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { within } from '../../core/async.js'
import { GatewayError, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { LineSplitter } from '../../processes/output.js'
import { dispatch } from './dispatch.js'
import { type Handlers, MAX_REQUEST_BYTES, parseLine, type Peer, requestSchema } from './protocol.js'

export interface ControlServer {
  /** Stops accepting requests, answers pending ones, then disconnects all clients. */
  close(): Promise<void>
}

/** How much a client may leave unread. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024
const CLOSE_TIMEOUT_MS = 5_000
/** The size of `sun_path`, without the terminating NUL. */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103

/** Contract: throws `config_invalid` if the path is too long for a socket. */
export function requireSocketPath(path: string): void {
  const bytes = Buffer.byteLength(path)
  if (bytes <= MAX_PATH_BYTES) return
  const problem = `too long for a socket: ${bytes} bytes, at most ${MAX_PATH_BYTES} are allowed`
  throw new GatewayError('config_invalid', `The path ${path} is ${problem}. Choose a shorter AETHEEL_HOME.`)
}

export async function startControlServer(path: string, handlers: Partial<Handlers>, log: Log): Promise<ControlServer> {
  requireSocketPath(path)
  const connections = new Set<ControlConnection>()
  // A client that has closed its side still gets its answers.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const connection = new ControlConnection(socket, handlers, log)
    connections.add(connection)
    socket.once('close', () => connections.delete(connection))
  })
  await listen(server, path)
  server.on('error', (error) => log.error('control.failed', { error: error.message }))

  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve())
    })
    const answered = Promise.all([...connections].map((connection) => connection.end()))
    await within(CLOSE_TIMEOUT_MS, answered)
    for (const connection of connections) connection.destroy()
    await closed
  }
  return { close }
}

async function listen(server: Server, path: string): Promise<void> {
  try {
    rmSync(path, { force: true })
    // The socket gets its mode when it is created, before `listen` returns.
    const before = process.umask(0o177)
    try {
      server.listen(path)
    } finally {
      process.umask(before)
    }
    await once(server, 'listening')
  } catch (error) {
    const message = `Cannot create the socket ${path}: ${messageOf(error)}. Set AETHEEL_HOME to another directory.`
    throw new GatewayError('config_invalid', message, { cause: error })
  }
}

class ControlConnection {
  readonly #running = new Set<Promise<void>>()
  #isEnding = false

  constructor(
    private readonly socket: Socket,
    private readonly handlers: Partial<Handlers>,
    private readonly log: Log,
  ) {
    const limits = { lineBytes: MAX_REQUEST_BYTES, totalBytes: Number.POSITIVE_INFINITY }
    const splitter = new LineSplitter(
      limits,
      (line) => this.#take(line),
      (problem) => {
        this.#refuse(null, new GatewayError('request_invalid', `The request is too long: ${problem}.`))
        socket.end()
      },
    )
    socket.on('data', (chunk) => splitter.push(chunk))
    socket.on('end', () => void this.end())
    // `close` reports it.
    socket.on('error', () => {})
  }

  /** Settles when pending requests are answered. */
  async end(): Promise<void> {
    this.#isEnding = true
    await Promise.all(this.#running)
    const { socket } = this
    if (socket.destroyed) return
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve())
      socket.end(() => socket.destroy())
    })
  }

  destroy(): void {
    this.socket.destroy()
  }

  #take(line: string): void {
    // Not answered: the client sees the connection end, and asks the next gateway.
    if (this.#isEnding || line.trim() === '') return
    const running = this.#answer(line).finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async #answer(line: string): Promise<void> {
    const request = requestSchema.safeParse(parseLine(line))
    if (!request.success) {
      const expected = 'It must be a line such as {"id":1,"method":"status","params":{}}.'
      this.#refuse(null, new GatewayError('request_invalid', `Invalid request. ${expected}`))
      return
    }
    const { id, method, params } = request.data
    const peer: Peer = {
      push: (push) => this.#write({ push }),
      onClose: (listener) => {
        if (this.socket.destroyed) listener()
        else this.socket.once('close', listener)
      },
    }
    try {
      this.#write({ id, result: await dispatch(this.handlers, method, params, peer) })
    } catch (error) {
      this.#refuse(id, error)
      if (!(error instanceof GatewayError)) this.log.error('control.failed', { method, error: messageOf(error) })
    }
  }

  #refuse(id: number | string | null, error: unknown): void {
    const reported =
      error instanceof GatewayError
        ? error
        : { code: 'internal', message: `The gateway failed: ${messageOf(error)}. See its log.` }
    this.#write({ id, error: { code: reported.code, message: reported.message } })
  }

  #write(answer: object): void {
    const { socket } = this
    if (socket.destroyed) return
    // Checked before writing: a client that reads may get one long answer.
    if (socket.writableLength <= MAX_UNREAD_BYTES) {
      socket.write(`${JSON.stringify(answer)}\n`)
      return
    }
    this.log.warn('control.client-dropped', { unreadBytes: socket.writableLength })
    socket.destroy()
  }
}
