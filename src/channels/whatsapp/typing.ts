import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { isMessageSid } from './incoming.js'
import type { TwilioApi } from './twilio-api.js'
import { TwilioError } from './twilio-errors.js'

/** Shows a typing indicator. WhatsApp drops it after some seconds, so it is refreshed. */
export class Typing {
  readonly #timers = new Map<string, NodeJS.Timeout>()

  constructor(
    private readonly api: Pick<TwilioApi, 'showTyping'>,
    private readonly intervalMs: () => number,
    private readonly signal: AbortSignal,
    private readonly log: Log,
  ) {}

  /** Keeps it up until `end`. */
  begin(messageId: string, sid: string): void {
    if (this.#timers.has(messageId) || !isMessageSid(sid)) return
    const timer = setInterval(() => this.once(sid, () => this.end(messageId)), this.intervalMs())
    this.#timers.set(messageId, timer.unref())
    this.once(sid, () => this.end(messageId))
  }

  /** `onRefused` is called if a retry would be refused too. */
  once(sid: string, onRefused: () => void = () => {}): void {
    if (!isMessageSid(sid)) return
    this.api.showTyping(sid, this.signal).catch((error: unknown) => {
      this.log.debug('whatsapp.typing-not-shown', { sid, error: messageOf(error) })
      if (error instanceof TwilioError && error.isPermanent) onRefused()
    })
  }

  end(messageId: string): void {
    clearInterval(this.#timers.get(messageId))
    this.#timers.delete(messageId)
  }

  endAll(): void {
    for (const messageId of [...this.#timers.keys()]) this.end(messageId)
  }
}
