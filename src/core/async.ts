// The one implementation of deadlines, abortable waits, back-off and ordering by key. It uses only the global timers,
// which tests can replace; the parts that the client needs also run in browsers.

/** setTimeout turns any longer delay into one millisecond. */
export const MAX_TIMER_MS = 2 ** 31 - 1

export interface WaitOptions {
  signal?: AbortSignal | undefined
  /** False if the wait must not keep the process alive. */
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

/** A promise, and the function that resolves it. */
export interface Deferred<T> {
  promise: Promise<T>
  resolve(value: T): void
}

export function deferred<T = void>(): Deferred<T> {
  let resolve = (_value: T): void => {}
  const promise = new Promise<T>((resolvePromise) => {
    resolve = resolvePromise
  })
  return { promise, resolve }
}

/**
 * Undefined if the answer takes too long. One that has arrived while this process was suspended or busy is in time.
 *
 * Contract: rejects if the answer rejects in time.
 */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => void arrivalsRead().then(() => resolve(undefined)), Math.min(ms, MAX_TIMER_MS))
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Not one of the timers that tests replace: it takes as long as the event loop does. Browsers do not have it. */
const nextTurn = globalThis.setImmediate

/** The event loop runs timers before it reads. Twice: the end of a stream may take a turn of its own. */
async function arrivalsRead(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise<void>((resolve) => void nextTurn(resolve))
}

/**
 * Stops waiting for work when the signal fires, even if the work ignores it. Contract: rejects with the signal's reason
 * if that comes first.
 *
 * The work gets its own signal, because some libraries never remove their listeners.
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
  /** Contract: the caller calls it when the work is over. */
  clear(): void
}

/**
 * A signal that fires when the time is up, or when the given signal fires, with its reason.
 *
 * Not `AbortSignal.timeout`: combined with `AbortSignal.any`, Node.js 20 garbage-collects its timer and it never fires.
 */
export function startDeadline(ms: number, signal?: AbortSignal, reason: unknown = new DeadlinePassed()): Deadline {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(reason), Math.min(ms, MAX_TIMER_MS))
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

/** Runs work under `startDeadline`. The work must observe the signal. */
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

export function eitherSignal(one: AbortSignal, other: AbortSignal): AbortSignal {
  return AbortSignal.any([one, other])
}

export interface Backoff {
  firstMs: number
  longestMs: number
}

/** The delay after this many consecutive failures; it doubles each time. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff): number {
  return Math.min(firstMs * 2 ** (failures - 1), longestMs)
}

/** Runs work one at a time and in order for each key; different keys run concurrently. */
export class Lanes {
  readonly #tails = new Map<string, Promise<void>>()

  /** Waits for its turn. Contract: the caller calls the returned function once, even if the signal ended the wait. */
  async enter(key: string, signal?: AbortSignal): Promise<() => void> {
    const ahead = this.#tails.get(key)
    const { promise: left, resolve: leave } = deferred()
    // Giving up does not let later entries overtake earlier ones.
    const tail = ahead ? ahead.then(() => left) : left
    this.#tails.set(key, tail)
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    if (ahead && signal) await abortable(signal, () => ahead).catch(() => {})
    else await ahead
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

  /** Settles when everything entered so far is done. */
  async idle(): Promise<void> {
    await Promise.all(this.#tails.values())
  }
}
