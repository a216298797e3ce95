/**
 * Waits for what a signal can end. The work gets a signal of its own: some, as discord.js, listen to each that they are
 * given and never stop.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
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
