// A small chat platform, which outlives every gateway. It speaks JSON lines over a socket:
// - to the gateway: `{ message }`, and `{ taken: key }` for a reply it has taken;
// - from the gateway: `{ acknowledged: platformId }`, `{ reply }` and, while an agent works, `{ live }`.

import { createServer, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { ChannelMessage, LiveEvent, OutgoingReply } from '../../src/channels/types.js'

export type ServerLine = { message: ChannelMessage } | { taken: string }
export type GatewayLine = { acknowledged: string } | { reply: OutgoingReply } | { live: LiveEvent }

interface Waiting {
  message: ChannelMessage
  /** The gateway that has it and has not confirmed yet that it is stored. */
  handedTo?: Socket | undefined
}

export class ChannelServer {
  /** Everything received, including repeats. */
  readonly received: OutgoingReply[] = []
  readonly said: ChannelMessage[] = []
  readonly live: LiveEvent[] = []
  readonly #connections = new Set<Socket>()
  /** By conversation, oldest first; only the first is handed out, as on a platform that keeps order. */
  readonly #waiting = new Map<string, Waiting[]>()
  readonly #server: Server

  constructor(readonly path: string) {
    this.#server = createServer((socket) => this.#serve(socket)).listen(path)
  }

  say(address: string, text: string): void {
    const message = { address, platformId: `${address}: ${text}`, author: 'somebody', text }
    this.said.push(message)
    this.#waiting.set(address, [...(this.#waiting.get(address) ?? []), { message }])
    this.#handOut()
  }

  /** What people see: the first of each key. */
  shown(): OutgoingReply[] {
    return [...new Map(this.received.toReversed().map((reply) => [reply.idempotencyKey, reply])).values()].toReversed()
  }

  /** The keys received more than once. */
  repeated(): string[] {
    const keys = this.received.map(({ idempotencyKey }) => idempotencyKey)
    return [...new Set(keys.filter((key, index) => keys.indexOf(key) !== index))]
  }

  /** Whether each repeat was marked as one, of the same message and time. */
  tellsOfEarlier(key: string): boolean {
    const [first, ...again] = this.received.filter(({ idempotencyKey }) => idempotencyKey === key)
    return again.every(({ attempt, createdAt, platformId }) => {
      return attempt > (first?.attempt ?? 0) && createdAt === first?.createdAt && platformId === first.platformId
    })
  }

  async close(): Promise<void> {
    for (const socket of this.#connections) socket.destroy()
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  #serve(socket: Socket): void {
    this.#connections.add(socket)
    socket.on('close', () => {
      this.#connections.delete(socket)
      for (const [first] of this.#waiting.values()) if (first?.handedTo === socket) first.handedTo = undefined
      this.#handOut()
    })
    createInterface(socket)
      .on('line', (line) => this.#hear(socket, JSON.parse(line) as GatewayLine))
      // A killed gateway breaks its connection; `close` comes after it.
      .on('error', () => {})
    this.#handOut()
  }

  #hear(socket: Socket, line: GatewayLine): void {
    if ('reply' in line) {
      this.received.push(line.reply)
      write(socket, { taken: line.reply.idempotencyKey })
      return
    }
    if ('live' in line) {
      this.live.push(line.live)
      return
    }
    for (const waiting of this.#waiting.values()) {
      if (waiting[0]?.message.platformId === line.acknowledged) waiting.shift()
    }
    this.#handOut()
  }

  #handOut(): void {
    const [socket] = this.#connections
    if (!socket) return
    for (const [first] of this.#waiting.values()) {
      if (!first || first.handedTo) continue
      first.handedTo = socket
      write(socket, { message: first.message })
    }
  }
}

function write(socket: Socket, line: ServerLine): void {
  socket.write(`${JSON.stringify(line)}\n`)
}
