// Deadlines, waits that a signal can end, back-off and order by key: the one way to do each. By the global timers alone,
// which browsers have and tests can replace.

/** setTimeout turns anything longer into one millisecond. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface WaitOptions {
  signal?: AbortSignal | undefined
  /** False where the process may end meanwhile. */
  ref?: boolean
}

/** Contract: rejects with the signal's reason if that comes first. */
export function wait(ms: number, { signal, ref = true }: WaitOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (!ref) timer.unref()
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()
  })
}

/** The answer, or undefined if it takes too long. Contract: rejects as the answer does, unless that is too late. */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.min(ms, LONGEST_TIMER_MS))
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Work that a signal ends, even if it does not heed it. Contract: rejects with the signal's reason if that comes first.
 *
 * The work gets a signal of its own, because some libraries never stop listening to the one they are given.
 */
export async function abortable<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    own.signal.addEventListener('abort', () => reject(own.signal.reason as Error), { once: true })
  })
  const stop = (): void => own.abort(signal.reason)
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  try {
    return await Promise.race([aborted, work(own.signal)])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

export interface Deadline {
  signal: AbortSignal
  /** Contract: to be called when the work is over. */
  clear(): void
}

/**
 * A signal that fires when the time is over, or with another signal and its reason.
 *
 * Not `AbortSignal.timeout`: combined by `AbortSignal.any`, Node.js 20 collects its timer as garbage, and it never fires.
 */
export function startDeadline(ms: number, signal?: AbortSignal, reason: unknown = new DeadlinePassed()): Deadline {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(reason), Math.min(ms, LONGEST_TIMER_MS))
  const stop = (): void => deadline.abort(signal?.reason)
  signal?.addEventListener('abort', stop)
  if (signal?.aborted) stop()
  return {
    signal: deadline.signal,
    clear() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    },
  }
}

class DeadlinePassed extends Error {
  override name = 'TimeoutError'
  override message = 'It took too long.'
}

/** Work that heeds a signal, which fires when the time is over, or with another signal and its reason. */
export async function withDeadline<T>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const deadline = startDeadline(ms, signal)
  try {
    return await work(deadline.signal)
  } finally {
    deadline.clear()
  }
}

/** Fires with the first of them. */
export function eitherSignal(one: AbortSignal, other: AbortSignal): AbortSignal {
  return AbortSignal.any([one, other])
}

export interface Backoff {
  firstMs: number
  longestMs: number
}

/** How long to wait after so many failures in a row: twice as long each time. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff): number {
  return Math.min(firstMs * 2 ** (failures - 1), longestMs)
}

/** One at a time for each key, in the order they came; different keys side by side. */
export class Lanes {
  readonly #tails = new Map<string, Promise<void>>()

  /** Waits for its turn. Contract: the caller calls what it returns once, even if the signal ended the waiting. */
  async enter(key: string, signal?: AbortSignal): Promise<() => void> {
    const before = this.#tails.get(key)
    let leave = (): void => {}
    const left = new Promise<void>((resolve) => {
      leave = resolve
    })
    // Whoever gives up waiting does not let those behind it pass those before it.
    const tail = before ? before.then(() => left) : left
    this.#tails.set(key, tail)
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    if (before && signal) await abortable(signal, () => before).catch(() => {})
    else await before
    return leave
  }

  /** Contract: settles as the work does. */
  async run<T>(key: string, work: () => T | Promise<T>): Promise<T> {
    const leave = await this.enter(key)
    try {
      return await work()
    } finally {
      leave()
    }
  }

  /** Settles when everything that has come so far is done. */
  async idle(): Promise<void> {
    await Promise.all(this.#tails.values())
  }
}
