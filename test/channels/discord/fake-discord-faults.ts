// Faults, injected by a test or at random from a seed.

export type Fault =
  /** A response with this status. With `hasEffect` the request was carried out nevertheless. */
  | { kind: 'status'; status: number; hasEffect?: boolean }
  /** A 429 that no bucket announced. */
  | { kind: 'rate-limit'; retryAfterMs: number; isGlobal?: boolean }
  /** Never answered. */
  | { kind: 'hang'; hasEffect?: boolean }
  /** The connection closes cleanly without a response: discord.js gives up at once. */
  | { kind: 'close'; hasEffect?: boolean }
  /** The connection is reset: discord.js retries by itself. */
  | { kind: 'reset'; hasEffect?: boolean }

export interface RandomFaults {
  /** From 0 to 1. */
  rate: number
  seed: number
  /** The affected routes; by default all routes of channels and interactions. */
  routes?: string[]
  faults?: Fault[]
}

const ANY_FAULT: Fault[] = [
  { kind: 'status', status: 500 },
  { kind: 'status', status: 502, hasEffect: true },
  { kind: 'rate-limit', retryAfterMs: 100 },
  { kind: 'close' },
  { kind: 'close', hasEffect: true },
  { kind: 'reset' },
  { kind: 'reset', hasEffect: true },
]

const CHANNELS_AND_INTERACTIONS = ['* /channels/**', '* /interactions/**', '* /webhooks/**']

interface Ordered {
  pattern: RegExp
  fault: Fault
  times: number
}

export class Faults {
  /** The number of faults so far. */
  count = 0
  readonly #ordered: Ordered[] = []
  #random: { patterns: RegExp[]; rate: number; faults: Fault[]; next: () => number } | undefined

  order(route: string, fault: Fault, times: number): void {
    this.#ordered.push({ pattern: routePattern(route), fault, times })
  }

  random({ rate, seed, routes = CHANNELS_AND_INTERACTIONS, faults = ANY_FAULT }: RandomFaults): void {
    this.#random = { patterns: routes.map(routePattern), rate, faults, next: seeded(seed) }
  }

  /** Clears pending injected faults, and random ones. */
  clear(): void {
    this.#ordered.length = 0
    this.#random = undefined
  }

  take(method: string, path: string): Fault | undefined {
    const line = `${method} ${path}`
    const index = this.#ordered.findIndex(({ pattern }) => pattern.test(line))
    const ordered = this.#ordered[index]
    if (ordered) {
      ordered.times -= 1
      if (ordered.times <= 0) this.#ordered.splice(index, 1)
      this.count += 1
      return ordered.fault
    }
    const random = this.#random
    if (!random?.patterns.some((pattern) => pattern.test(line)) || random.next() >= random.rate) return undefined
    this.count += 1
    return random.faults[Math.floor(random.next() * random.faults.length)]
  }
}

/** `POST /channels/:id/messages`: `:name` matches one path segment, `**` any number, `*` any method. */
export function routePattern(route: string): RegExp {
  const [method = '', path = ''] = route.split(' ')
  const parts = path.split('/').map((part) => {
    if (part === '**') return '.*'
    return part.startsWith(':') ? '[^/]+' : part.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
  })
  return new RegExp(`^${method === '*' ? '[A-Z]+' : method} ${parts.join('/')}$`)
}

/** Deterministic on every machine: a linear congruential generator, of which only the high bits are used. */
function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
