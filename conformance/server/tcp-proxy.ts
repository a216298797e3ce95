/** A proxy between client and server on loopback that can be cut. */
import { createServer, connect, type AddressInfo, type Socket } from 'node:net'

export interface TcpProxy {
  url: string
  /** How many event streams the server has opened since the last cut. */
  streams(): number
  /** Breaks open connections, and rejects new ones until `mend`. */
  cut(): void
  mend(): void
  close(): Promise<void>
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  let isCut = false
  let streams = 0
  const server = createServer((client) => {
    if (isCut) {
      client.resetAndDestroy()
      return
    }
    const upstream = connect(Number(port), hostname)
    upstream.on('data', (chunk: Buffer) => {
      if (chunk.includes('"server.connected"')) streams += 1
    })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  const breakAll = (): void => {
    for (const socket of open) socket.resetAndDestroy()
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    streams: () => streams,
    cut() {
      isCut = true
      streams = 0
      breakAll()
    },
    mend() {
      isCut = false
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        breakAll()
      }),
  }
}
