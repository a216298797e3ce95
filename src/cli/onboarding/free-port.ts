import { createServer } from 'node:net'

const MOST_TRIED = 50

/** The port, or the next free one. Undefined if there is none nearby. */
export async function freePort(host: string, port: number): Promise<number | undefined> {
  for (let candidate = port; candidate < Math.min(port + MOST_TRIED, 65_536); candidate += 1) {
    if (await isFree(host, candidate)) return candidate
  }
  return undefined
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'EADDRINUSE'))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}
