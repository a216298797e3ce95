// Which messages at Twilio are parts of which replies. Twilio takes no key of ours, so after an attempt whose end is not
// known, its own list says what got through; this log says what to look for there, and what belongs to other replies.
//
// A part is known by what it holds, not by its place: a file that is gone by the next attempt moves those after it.

import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { ChannelHost } from '../types.js'
import type { TwilioMessage } from './twilio-api.js'

/** What is given to Twilio as one message. */
export interface PartContent {
  replyId: string
  /** The text and the file in it, each by its key. */
  items: string[]
  /** As it is sent, by its fingerprint. */
  body: string
}

export interface LoggedPart extends PartContent {
  /** None while Twilio has not answered, and when its answer never came. */
  sid?: string | undefined
  at: number
}

export type SentPart = LoggedPart & { sid: string }

/** Of each number. */
export const KEPT_PARTS = 100
const NUMBERS_KEY = 'sent-numbers'
/** For so long a number is known as one to which something was sent. */
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

  /** Before it is given to Twilio. */
  begin(number: string, content: PartContent): Promise<void> {
    return this.#inTurn(async () => {
      const parts = await this.read(number)
      if (!parts.some((part) => isOpen(part, content))) await this.#write(number, [...parts, this.#stamped(content)])
    })
  }

  /** Twilio has taken it. */
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

  /** What Twilio has taken since, to any number, without what was sent again later. Not further back than an hour. */
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

  /** One after the other: what is read must not be changed before it is written. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = this.#written.then(write)
    this.#written = written.catch(() => {})
    return written
  }
}

/** Those that Twilio has taken, of which nothing was sent again later. */
export function latestOf(parts: LoggedPart[]): SentPart[] {
  const sent = parts.filter((part): part is SentPart => part.sid !== undefined)
  const keyed = (part: SentPart): string[] => part.items.map((item) => `${part.replyId} ${item}`)
  const latest = new Map(sent.flatMap((part) => keyed(part).map((key) => [key, part])))
  return sent.filter((part) => keyed(part).every((key) => latest.get(key) === part))
}

/** One for each, also when two are the same. */
export function keysOf(kind: string, contents: string[]): string[] {
  const counts = new Map<string, number>()
  return contents.map((content) => {
    const count = (counts.get(content) ?? 0) + 1
    counts.set(content, count)
    return hashOf(`${kind} ${count} ${content}`)
  })
}

/** Twilio may change white space. */
export function fingerprintOf(body: string): string {
  return hashOf(plain(body))
}

/** Twilio puts a sentence of its own before what trial accounts send. */
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
