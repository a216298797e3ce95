import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Channel, ChannelHost, LiveEvent, OutgoingReply } from '../../src/channels/types.js'
import type { GatewayLine, ServerLine } from './channel-server.js'

/** The gateway's end of a `ChannelServer`. */
export class LoopbackChannel implements Channel {
  readonly name = 'loopback'
  readonly #socket: Socket
  readonly #sending = new Map<string, () => void>()
  #host: ChannelHost | undefined

  constructor(path: string) {
    this.#socket = connect(path)
  }

  async start(host: ChannelHost): Promise<void> {
    if (this.#socket.connecting) await once(this.#socket, 'connect')
    this.#host = host
    createInterface(this.#socket).on('line', (line) => void this.#hear(JSON.parse(line) as ServerLine))
  }

  async send(reply: OutgoingReply, signal: AbortSignal): Promise<void> {
    const { idempotencyKey } = reply
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('The server did not accept it')))
      this.#sending.set(idempotencyKey, resolve)
      this.#write({ reply })
    })
    this.#sending.delete(idempotencyKey)
  }

  show(live: LiveEvent): void {
    this.#write({ live })
  }

  async stop(): Promise<void> {
    this.#host = undefined
  }

  async close(): Promise<void> {
    this.#socket.destroy()
  }

  async #hear(line: ServerLine): Promise<void> {
    if ('taken' in line) return this.#sending.get(line.taken)?.()
    // Unacknowledged, it is handed to the next gateway.
    if (!this.#host) return
    await this.#host.onMessage(line.message)
    this.#write({ acknowledged: line.message.platformId })
  }

  #write(line: GatewayLine): void {
    this.#socket.write(`${JSON.stringify(line)}\n`)
  }
}
