// The rate limits of routes. A bucket belongs to a kind of request and a channel (or an interaction's token); its
// window starts with the first request in it. Discord gives POST and PATCH of messages the same bucket name but counts
// them separately (discord-api-docs issues 1442 and 8073); so does this.

export interface Limit {
  limit: number
  perMs: number
}

export const DEFAULT_LIMITS = {
  postMessage: { limit: 5, perMs: 5_000 },
  editMessage: { limit: 5, perMs: 5_000 },
  deleteMessage: { limit: 5, perMs: 1_000 },
  readMessages: { limit: 5, perMs: 1_000 },
  reaction: { limit: 1, perMs: 250 },
  typing: { limit: 5, perMs: 5_000 },
  thread: { limit: 50, perMs: 300_000 },
  webhook: { limit: 5, perMs: 2_000 },
} satisfies Record<string, Limit>

export type BucketName = keyof typeof DEFAULT_LIMITS

export interface Overrun {
  bucket: BucketName
  /** The id of the channel, or the token of the interaction. */
  of: string
  /** In milliseconds since the epoch. */
  at: number
  /** An earlier response had announced that nothing remains: the client could have known. */
  wasTold: boolean
}

const HASHES: Record<BucketName, string> = {
  postMessage: '80c17d2f203122d936070c88c8d10f33',
  editMessage: '80c17d2f203122d936070c88c8d10f33',
  deleteMessage: 'b05c0d8c2ab83895085006a8eae073a3',
  readMessages: '2d3b1f8c6e7a4905bb21c0d9f3a86e14',
  reaction: '4b9c5a7e1d2f4386a0c7e95b3f1d8264',
  typing: '6d0e3c1b9f8a47528c4b7a1e2d5f9063',
  thread: '9a1f7c3e5b2d48608d7c6e4f0a3b1c52',
  webhook: 'c7e2a9d1f4b34c8095a6e8d7b2f1034e',
}

interface Bucket {
  used: number
  resetsAt: number
  /** A response has announced that nothing remains. */
  isTold: boolean
}

/** The outcome for one request; `headers` go on its response, and `answered` is called once that has been sent. */
export interface Admission {
  headers: Record<string, string>
  /** Set if the request exceeds the limit. */
  retryAfterMs?: number
  answered(): void
}

export class Buckets {
  readonly limits: Record<BucketName, Limit> = structuredClone(DEFAULT_LIMITS)
  readonly overruns: Overrun[] = []
  readonly #buckets = new Map<string, Bucket>()

  admit(name: BucketName, of: string): Admission {
    const now = Date.now()
    const { limit, perMs } = this.limits[name]
    const key = `${name}:${of}`
    let bucket = this.#buckets.get(key)
    if (!bucket || bucket.resetsAt <= now) {
      bucket = { used: 0, resetsAt: now + perMs, isTold: false }
      this.#buckets.set(key, bucket)
    }
    const current = bucket
    const isBeyond = current.used >= limit
    if (isBeyond) this.overruns.push({ bucket: name, of, at: now, wasTold: current.isTold })
    else current.used += 1
    const remaining = limit - current.used
    const resetAfterMs = current.resetsAt - now
    return {
      headers: {
        'X-RateLimit-Limit': String(limit),
        'X-RateLimit-Remaining': String(remaining),
        'X-RateLimit-Reset': (current.resetsAt / 1000).toFixed(3),
        'X-RateLimit-Reset-After': (resetAfterMs / 1000).toFixed(3),
        'X-RateLimit-Bucket': HASHES[name],
      },
      ...(isBeyond ? { retryAfterMs: resetAfterMs } : {}),
      answered() {
        if (remaining === 0) current.isTold = true
      },
    }
  }

  /** A restarted client knows nothing of earlier responses. */
  forgetTold(): void {
    for (const bucket of this.#buckets.values()) bucket.isTold = false
  }
}
