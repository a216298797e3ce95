import { within } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { StreamCallback } from '../types.js'

const DRAIN_MS = 5_000

interface StreamPump {
  push(text: string): void
  /** Settles when the callback has received everything, or takes too long. */
  drained(): Promise<void>
}

/** Passes text to a callback in order, one call at a time. Text that arrives during a call goes into the next one. */
export function pumpStream(onStream: StreamCallback, log: Log): StreamPump {
  let waiting = ''
  let isPumping = false
  let pumped: Promise<void> | undefined
  let hasFailed = false

  const pump = async (): Promise<void> => {
    isPumping = true
    while (waiting !== '') {
      const text = waiting
      waiting = ''
      try {
        await onStream(text)
      } catch (error) {
        if (!hasFailed) log.warn('stream.callback-failed', { error: messageOf(error) })
        hasFailed = true
      }
    }
    isPumping = false
  }

  return {
    push(text) {
      waiting += text
      if (!isPumping) pumped = pump()
    },
    async drained() {
      if (pumped) await within(DRAIN_MS, pumped)
    },
  }
}
