// Records which messages at Twilio are parts of which replies. Twilio accepts no idempotency key, so after an attempt
// with an unknown outcome its own list shows what got through; this log says what to look for in it, and what belongs
// to other replies.
//
// A part is identified by its content, not by its position: a file that is gone by the next attempt shifts the ones
// after it.

import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { ChannelHost } from '../types.js'
import type { TwilioMessage } from './twilio-api.js'

/** What is sent to Twilio as one message. */
export interface PartContent {
  replyId: string
  /** The keys of the text and the file in it. */
  items: string[]
  /** The fingerprint of the text as sent. */
  body: string
}

export interface LoggedPart extends PartContent {
  /** Absent until Twilio answers, and for good if its answer was lost. */
  sid?: string | undefined
  at: number
}

export type SentPart = LoggedPart & { sid: string }

/** Per number. */
export const KEPT_PARTS = 100
const NUMBERS_KEY = 'sent-numbers'
/** How long a number counts as recently written to. */
const RECENT_MS = 60 * 60_000

const logSchema = z.array(
  z.object({
    replyId: z.string(),
    items: z.array(z.string()),
    body: z.string(),
    sid: z.string().optional(),
    at: z.number(),
  }),
)
const numbersSchema = z.record(z.string(), z.number())

export class SentLog {
  #written: Promise<void> = Promise.resolve()

  constructor(
    private readonly host: Pick<ChannelHost, 'recall' | 'remember'>,
    private readonly now: () => number,
  ) {}

  async read(number: string): Promise<LoggedPart[]> {
    return logSchema.parse(JSON.parse((await this.host.recall(keyOf(number))) ?? '[]'))
  }

  /** Called before the part is sent to Twilio. */
  begin(number: string, content: PartContent): Promise<void> {
    return this.#inTurn(async () => {
      const parts = await this.read(number)
      if (!parts.some((part) => isOpen(part, content))) await this.#write(number, [...parts, this.#stamped(content)])
    })
  }

  /** Called once Twilio has accepted it. */
  finish(number: string, content: PartContent, sid: string): Promise<void> {
    return this.#inTurn(async () => {
      const parts = await this.read(number)
      const others = parts.filter((part) => !isOpen(part, content))
      await this.#write(number, [...others, { ...this.#stamped(content), sid }])
      const numbers = Object.entries({ ...(await this.#numbers()), [number]: this.now() })
      const recent = numbers.filter(([, at]) => at > this.now() - RECENT_MS)
      await this.host.remember(NUMBERS_KEY, JSON.stringify(Object.fromEntries(recent)))
    })
  }

  /** The parts Twilio accepted since then, for any number, without those resent later. Reaches back an hour at most. */
  async sentSince(since: number): Promise<SentPart[]> {
    const found: SentPart[] = []
    for (const number of Object.keys(await this.#numbers())) {
      found.push(...latestOf(await this.read(number)).filter(({ at }) => at >= since))
    }
    return found
  }

  async #numbers(): Promise<Record<string, number>> {
    return numbersSchema.parse(JSON.parse((await this.host.recall(NUMBERS_KEY)) ?? '{}'))
  }

  #stamped({ replyId, items, body }: PartContent): LoggedPart {
    return { replyId, items, body, at: this.now() }
  }

  async #write(number: string, parts: LoggedPart[]): Promise<void> {
    await this.host.remember(keyOf(number), JSON.stringify(parts.slice(-KEPT_PARTS)))
  }

  /** Serialised: nothing may change between reading and writing. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = this.#written.then(write)
    this.#written = written.catch(() => {})
    return written
  }
}

/** The parts Twilio accepted of which nothing was resent later. */
export function latestOf(parts: LoggedPart[]): SentPart[] {
  const sent = parts.filter((part): part is SentPart => part.sid !== undefined)
  const keyed = (part: SentPart): string[] => part.items.map((item) => `${part.replyId} ${item}`)
  const latest = new Map(sent.flatMap((part) => keyed(part).map((key) => [key, part])))
  return sent.filter((part) => keyed(part).every((key) => latest.get(key) === part))
}

/** One key each, even for identical contents. */
export function keysOf(kind: string, contents: string[]): string[] {
  const counts = new Map<string, number>()
  return contents.map((content) => {
    const count = (counts.get(content) ?? 0) + 1
    counts.set(content, count)
    return hashOf(`${kind} ${count} ${content}`)
  })
}

/** Ignores white space, which Twilio may change. */
export function fingerprintOf(body: string): string {
  return hashOf(plain(body))
}

/** Twilio prefixes a sentence of its own to messages from trial accounts. */
export function isSame({ body }: PartContent, message: TwilioMessage): boolean {
  const found = plain(message.body).replace(TRIAL_SENTENCE, '')
  return body === fingerprintOf(found) && (found !== '' || message.mediaCount > 0)
}

const TRIAL_SENTENCE = /^Sent from your Twilio trial account -( |$)/

function isOpen(part: LoggedPart, { replyId, items, body }: PartContent): boolean {
  const isSameContent = part.replyId === replyId && part.body === body && part.items.join() === items.join()
  return part.sid === undefined && isSameContent
}

function plain(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

function keyOf(number: string): string {
  return `sent:${number}`
}
