// The parts of Twilio's REST API that we need. https://www.twilio.com/docs/messaging/api
//
// Invariant: the credentials go only to the configured origin and to Twilio's own messaging host. So redirects are not
// followed.

import { abortable, startDeadline, wait } from '../../core/async.js'
import { defined } from '../../core/defined.js'
import { z } from 'zod'
import { messageOf } from '../../errors.js'
import { fromTwilio, toTwilio } from './phone-number.js'
import { describeError, TwilioError } from './twilio-errors.js'

export interface TwilioOptions {
  accountSid: string
  /** The account SID and its auth token, or an API key and its secret. */
  auth: { user: string; password: string }
  /** Without a trailing slash. */
  apiUrl: string
}

export interface NewMessage {
  to: string
  from: string
  body: string
  mediaUrl?: string | undefined
  statusCallback?: string | undefined
}

/** A message in Twilio's record, in either direction. */
export interface TwilioMessage {
  sid: string
  status: string
  /** Numbers without `whatsapp:`; absent if it is not a number. */
  from?: string | undefined
  to?: string | undefined
  body: string
  mediaCount: number
  isInbound: boolean
  /** In milliseconds since the epoch. */
  createdAt: number
  /** When it came in or went out; absent while it is queued. */
  sentAt?: number | undefined
  errorCode?: number | undefined
}

/** The states of a message that did not arrive. */
export const FAILED: readonly string[] = ['failed', 'undelivered', 'canceled']

export interface TwilioMedia {
  url: string
  type: string
}

const messageSchema = z
  .object({
    sid: z.string(),
    status: z.string(),
    direction: z.string().nullish(),
    from: z.string().nullish(),
    to: z.string().nullish(),
    body: z.string().nullish(),
    num_media: z.coerce.number().catch(0),
    date_created: z.string().nullish(),
    date_sent: z.string().nullish(),
    error_code: z.number().nullish(),
  })
  .transform((message): TwilioMessage => {
    const sentAt = timeOf(message.date_sent)
    return {
      sid: message.sid,
      status: message.status,
      from: fromTwilio(message.from),
      to: fromTwilio(message.to),
      body: message.body ?? '',
      mediaCount: message.num_media,
      isInbound: message.direction === 'inbound',
      createdAt: timeOf(message.date_created) ?? sentAt ?? 0,
      sentAt,
      errorCode: message.error_code ?? undefined,
    }
  })
const pageSchema = z.object({ messages: z.array(messageSchema), next_page_uri: z.string().nullish() })
const mediaSchema = z.object({ media_list: z.array(z.object({ uri: z.string(), content_type: z.string().catch('') })) })
const problemSchema = z.object({ code: z.number().optional().catch(undefined), message: z.string().catch('') })
const accountSchema = z.object({ status: z.string(), type: z.string().catch(''), friendly_name: z.string().catch('') })
const sendersSchema = z.object({
  senders: z.array(
    z.object({
      sender_id: z.string().nullish(),
      status: z.string().catch(''),
      webhook: z.object({ callback_url: z.string().nullish() }).nullish(),
    }),
  ),
})

export type TwilioAccount = z.output<typeof accountSchema>
export type TwilioSender = z.output<typeof sendersSchema>['senders'][number]

const TIMEOUT_MS = 15_000
const PAGE = 100
/** How often a rate-limited request is tried, and the longest wait we accept. */
const RATE_ATTEMPTS = 3
const MAX_RATE_WAIT_MS = 10_000
const VERSION = '2010-04-01'

export class TwilioApi {
  readonly #authorization: string
  readonly #messagingUrl: string
  readonly #accountPath: string

  constructor(private readonly options: TwilioOptions) {
    const { accountSid, auth, apiUrl } = options
    this.#authorization = `Basic ${Buffer.from(`${auth.user}:${auth.password}`).toString('base64')}`
    this.#messagingUrl = messagingUrl(apiUrl)
    this.#accountPath = `/${VERSION}/Accounts/${accountSid}`
  }

  /** The header for media stored at Twilio's API, and nothing else. */
  get authorization(): string {
    return this.#authorization
  }

  async createMessage(message: NewMessage, signal?: AbortSignal): Promise<TwilioMessage> {
    const { to, from, body, mediaUrl: MediaUrl, statusCallback: StatusCallback } = message
    const parts = { Body: body === '' ? undefined : body, MediaUrl, StatusCallback }
    const form = new URLSearchParams(defined({ To: toTwilio(to), From: toTwilio(from), ...parts }))
    return this.#ask(messageSchema, this.#path('/Messages.json'), { form, signal })
  }

  /** Pages of messages, newest first. `sentAfter` excludes queued messages, which have no time sent yet. */
  async *pages(
    { to, from, sentAfter }: { to: string; from?: string; sentAfter?: number },
    signal?: AbortSignal,
  ): AsyncGenerator<TwilioMessage[]> {
    const filter = {
      From: from && toTwilio(from),
      'DateSent>': sentAfter === undefined ? undefined : isoSeconds(sentAfter),
    }
    const query = new URLSearchParams(defined({ To: toTwilio(to), ...filter, PageSize: String(PAGE) }))
    let next: string | null | undefined = `${this.#path('/Messages.json')}?${query.toString()}`
    while (next) {
      const page: z.output<typeof pageSchema> = await this.#ask(pageSchema, next, { signal })
      yield page.messages
      next = page.next_page_uri && this.#ownUrl(page.next_page_uri)
    }
  }

  async message(sid: string, signal?: AbortSignal): Promise<TwilioMessage> {
    return this.#ask(messageSchema, this.#path(`/Messages/${encodeURIComponent(sid)}.json`), { signal })
  }

  async media(sid: string, signal?: AbortSignal): Promise<TwilioMedia[]> {
    const path = this.#path(`/Messages/${encodeURIComponent(sid)}/Media.json`)
    const { media_list } = await this.#ask(mediaSchema, path, { signal })
    return media_list.map(({ uri, content_type }) => ({
      url: this.#ownUrl(uri.replace(/\.json$/, '')),
      type: content_type,
    }))
  }

  /** Shows a typing indicator for some seconds, and marks the message as read. */
  async showTyping(sid: string, signal?: AbortSignal): Promise<void> {
    const form = new URLSearchParams({ messageId: sid, channel: 'whatsapp' })
    await this.#ask(z.unknown(), `${this.#messagingUrl}/v2/Indicators/Typing.json`, { form, signal })
  }

  async account(signal?: AbortSignal): Promise<TwilioAccount> {
    return this.#ask(accountSchema, `${this.options.apiUrl}${this.#accountPath}.json`, { signal })
  }

  async senders(signal?: AbortSignal): Promise<TwilioSender[]> {
    const url = `${this.#messagingUrl}/v2/Channels/Senders?Channel=whatsapp&PageSize=${PAGE}`
    return (await this.#ask(sendersSchema, url, { signal })).senders
  }

  #path(rest: string): string {
    return `${this.options.apiUrl}${this.#accountPath}${rest}`
  }

  /** Twilio's page URIs are relative to the root of its API. */
  #ownUrl(uri: string): string {
    const { apiUrl } = this.options
    const url = new URL(uri, `${apiUrl}/`)
    if (url.origin !== new URL(apiUrl).origin) throw new Error('Twilio returned a page URL outside its API')
    return url.href
  }

  async #ask<Schema extends z.ZodType>(
    schema: Schema,
    url: string,
    { form, signal }: { form?: URLSearchParams; signal?: AbortSignal | undefined },
  ): Promise<z.output<Schema>> {
    for (let attempt = 1; ; attempt += 1) {
      const { status, text, retryAfter } = await this.#fetch(url, form, signal)
      if (status >= 200 && status < 300) {
        const answer = schema.safeParse(readJson(text))
        if (answer.success) return answer.data
        // A proxy or a captive portal may answer in Twilio's place.
        const advice = 'check twilioApiUrl and any proxy in between.'
        throw new Error(`The server at ${new URL(url).origin} is not Twilio: ${advice}`)
      }
      const waitMs = (retryAfter ?? attempt) * 1000
      if (status !== 429 || attempt === RATE_ATTEMPTS || waitMs > MAX_RATE_WAIT_MS) throw errorOf(status, text)
      await wait(waitMs, { signal })
    }
  }

  async #fetch(
    url: string,
    form: URLSearchParams | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ status: number; text: string; retryAfter: number | undefined }> {
    const deadline = startDeadline(TIMEOUT_MS, signal, new Error(`no answer within ${TIMEOUT_MS / 1000} s`))
    try {
      return await abortable(deadline.signal, async (own) => {
        const response = await fetch(url, {
          method: form ? 'POST' : 'GET',
          headers: { authorization: this.#authorization, accept: 'application/json' },
          body: form ?? null,
          redirect: 'error',
          signal: own,
        })
        const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
        const retryAfter = Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
        return { status: response.status, text: await response.text(), retryAfter }
      })
    } catch (error) {
      const { cause } = error as Error
      throw new Error(`Twilio could not be reached: ${messageOf(cause ?? error)}`, { cause: error })
    } finally {
      deadline.clear()
    }
  }
}

/** Twilio has one host per product, in its regions too; a stand-in has one for everything. */
export function messagingUrl(apiUrl: string): string {
  const url = new URL(apiUrl)
  if (!/^api\.([a-z0-9-]+\.)*twilio\.com$/.test(url.hostname)) return apiUrl
  url.hostname = url.hostname.replace(/^api\./, 'messaging.')
  return url.origin
}

function errorOf(status: number, text: string): TwilioError {
  const problem = problemSchema.safeParse(readJson(text)).data
  const code = problem?.code ?? (status === 401 ? 20003 : status === 429 ? 20429 : undefined)
  return new TwilioError(describeError(code, problem?.message || `Twilio answered with status ${status}`), status, code)
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Proxies answer with HTML, in which there is nothing to read.
    return undefined
  }
}

function isoSeconds(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`
}

function timeOf(text: string | null | undefined): number | undefined {
  const at = Date.parse(text ?? '')
  return Number.isNaN(at) ? undefined : at
}
