import { connect, type Socket } from 'node:net'
import { ERROR_CODES, type ErrorCode, GatewayError, messageOf } from '../../errors.js'
import { LineSplitter } from '../../processes/output.js'
import {
  answerSchema,
  type Control,
  MAX_REQUEST_BYTES,
  type MethodName,
  type ParametersOf,
  parseLine,
  type Push,
  type ResultOf,
} from './protocol.js'

interface Call {
  resolve(result: unknown): void
  reject(error: GatewayError): void
}

/** Generous: the gateway is our own, and a long history is not an attack. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024

/** A running gateway, over its socket. */
export class ControlClient implements Control {
  readonly closed: Promise<void>
  readonly #calls = new Map<number, Call>()
  #lastId = 0

  /** Undefined if no gateway listens there. */
  static async connect(path: string, onPush: (push: Push) => void = () => {}): Promise<ControlClient | undefined> {
    const socket = connect(path)
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve)
        socket.once('error', reject)
      })
    } catch (error) {
      if (isNotListening(error)) return undefined
      const message = `Cannot open the gateway's socket ${path}: ${messageOf(error)}. Does it belong to another user?`
      throw new GatewayError('gateway_unavailable', message, { cause: error })
    }
    return new ControlClient(socket, onPush)
  }

  private constructor(
    private readonly socket: Socket,
    private readonly onPush: (push: Push) => void,
  ) {
    const limits = { lineBytes: MAX_ANSWER_BYTES, totalBytes: Number.POSITIVE_INFINITY }
    const splitter = new LineSplitter(
      limits,
      (line) => this.#take(line),
      () => socket.destroy(),
    )
    socket.on('data', (chunk) => splitter.push(chunk))
    // `close` reports it.
    socket.on('error', () => {})
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#failAll('The gateway stopped before it answered. Start it again with "aetheel start".')
        resolve()
      })
    })
  }

  async call<M extends MethodName>(method: M, parameters: ParametersOf<M>): Promise<ResultOf<M>> {
    this.#lastId += 1
    const id = this.#lastId
    const line = `${JSON.stringify({ id, method, params: parameters })}\n`
    if (Buffer.byteLength(line) > MAX_REQUEST_BYTES) {
      const advice = 'Put it in a file and name the file.'
      throw new GatewayError('request_invalid', `That is longer than 8 MiB. ${advice}`)
    }
    if (this.socket.destroyed) throw new GatewayError('gateway_unavailable', 'The gateway is no longer connected.')
    return new Promise<ResultOf<M>>((resolve, reject) => {
      this.#calls.set(id, { resolve: (result) => resolve(result as ResultOf<M>), reject })
      this.socket.write(line)
    })
  }

  async close(): Promise<void> {
    this.socket.end()
    this.socket.destroySoon()
    await this.closed
  }

  #take(line: string): void {
    const parsed = answerSchema.safeParse(parseLine(line))
    // Perhaps from a newer gateway; the answer we wait for still comes.
    if (!parsed.success) return
    const answer = parsed.data
    if ('push' in answer) {
      this.onPush(answer.push)
    } else if ('error' in answer) {
      const error = toError(answer.error)
      if (typeof answer.id !== 'number') return this.#failAll(error.message)
      this.#calls.get(answer.id)?.reject(error)
      this.#calls.delete(answer.id)
    } else {
      this.#calls.get(answer.id)?.resolve(answer.result)
      this.#calls.delete(answer.id)
    }
  }

  #failAll(message: string): void {
    for (const { reject } of this.#calls.values()) reject(new GatewayError('gateway_unavailable', message))
    this.#calls.clear()
  }
}

function isNotListening(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  // EINVAL and ENAMETOOLONG: no gateway could have created a socket there.
  return ['ENOENT', 'ECONNREFUSED', 'ENOTDIR', 'EINVAL', 'ENAMETOOLONG', 'ECONNRESET'].includes(code)
}

function toError({ code, message }: { code: string; message: string }): GatewayError {
  return Object.hasOwn(ERROR_CODES, code)
    ? new GatewayError(code as ErrorCode, message)
    : new GatewayError('gateway_unavailable', `The gateway failed: ${message}. See its log.`)
}
