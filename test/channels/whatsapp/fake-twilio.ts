// A Twilio on loopback: its REST API for messages and media, and its requests to us, signed by Twilio's own code.

import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js'

export interface FakeMedia {
  type: string
  content: Buffer
  /** Where the content is; by default at Twilio itself. */
  redirectTo?: string
}

export interface FakeMessage {
  sid: string
  direction: 'inbound' | 'outbound-api'
  from: string
  to: string
  body: string
  status: string
  media: FakeMedia[]
  /** As given to Twilio. */
  mediaUrl?: string
  statusCallback?: string
  createdAt: number
  sentAt?: number
  errorCode?: number
}

export type Fault =
  | { kind: 'status'; status: number; code?: number; message?: string; retryAfterSeconds?: number; hasEffect?: boolean }
  /** No response, and the connection closes. */
  | { kind: 'drop'; hasEffect?: boolean }
  /** No response. */
  | { kind: 'hang'; hasEffect?: boolean }

export type Route = 'create' | 'list' | 'fetch' | 'media-list' | 'media' | 'typing' | 'account' | 'senders'

export interface WebhookResponse {
  status: number
  body: string
}

interface WebhookChange {
  signature?: string
  /** After signing. */
  tamper?: (form: URLSearchParams) => void
  headers?: Record<string, string>
  body?: string
}

const ROUTES: [string, RegExp, Route][] = [
  ['POST', /\/Accounts\/\w+\/Messages\.json$/, 'create'],
  ['GET', /\/Accounts\/\w+\/Messages\.json$/, 'list'],
  ['GET', /\/Messages\/\w+\.json$/, 'fetch'],
  ['GET', /\/Messages\/\w+\/Media\.json$/, 'media-list'],
  ['GET', /\/Messages\/\w+\/Media\/\w+$/, 'media'],
  ['POST', /^\/v2\/Indicators\/Typing\.json$/, 'typing'],
  ['GET', /\/Accounts\/\w+\.json$/, 'account'],
  ['GET', /^\/v2\/Channels\/Senders$/, 'senders'],
]

export class FakeTwilio {
  readonly accountSid = `AC${randomBytes(16).toString('hex')}`
  readonly authToken = randomBytes(16).toString('hex')
  readonly number = '+14155238886'
  readonly messages: FakeMessage[] = []
  /** The message ids for which typing was shown, in order. */
  readonly typing: string[] = []
  /** The requests, in order. */
  readonly asked: Route[] = []
  readonly senders: { sender_id: string; status: string; webhook?: { callback_url: string } }[] = []
  accountType = 'Full'
  /** The status of the next messages sent, reported by the status callback. */
  nextStatus: { status: string; errorCode?: number } | undefined = { status: 'delivered' }
  /** Whether the status callback comes before the response to the sender. */
  tellsFirst = false
  /** Where requests to us really go, and the URL they are signed for. */
  webhook: { target: string; publicUrl: string } | undefined
  faultCount = 0
  pageSize = 100
  readonly #faults: { route: Route; fault: Fault | undefined }[] = []
  readonly #contents = new Map<string, FakeMedia>()
  #aheadMs = 0

  private constructor(private readonly server: Server) {
    server.on('request', (incoming, response) => void this.#answer(incoming, response))
  }

  static async start(): Promise<FakeTwilio> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new FakeTwilio(server)
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  get apiUrl(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  /** Advances Twilio's clock. */
  advance(ms: number): void {
    this.#aheadMs += ms
  }

  /** Makes the next requests of this kind fail, after some that succeed. */
  fail(route: Route, fault: Fault, times = 1, after = 0): void {
    for (let count = 0; count < after; count += 1) this.#faults.push({ route, fault: undefined })
    for (let count = 0; count < times; count += 1) this.#faults.push({ route, fault })
  }

  /** What people received from us, in order. */
  textsTo(number: string): string[] {
    return this.sentTo(number).map(({ body }) => body)
  }

  sentTo(number: string): FakeMessage[] {
    return this.messages.filter(({ direction, to }) => direction === 'outbound-api' && to === `whatsapp:${number}`)
  }

  /** A person writes. The message is on record; `deliver` calls the webhook. */
  write(from: string, body: string, media: FakeMedia[] = []): FakeMessage {
    const message: FakeMessage = {
      sid: `${media.length > 0 ? 'MM' : 'SM'}${randomBytes(16).toString('hex')}`,
      direction: 'inbound',
      from: `whatsapp:${from}`,
      to: `whatsapp:${this.number}`,
      body,
      status: 'received',
      media,
      createdAt: this.#now(),
      sentAt: this.#now(),
    }
    this.messages.push(message)
    return message
  }

  /** A person writes, and the webhook is called. */
  async say(from: string, body: string, media: FakeMedia[] = []): Promise<FakeMessage> {
    const message = this.write(from, body, media)
    const { status } = await this.deliver(message)
    if (status !== 200) throw new Error(`The webhook answered with ${status}`)
    return message
  }

  deliver(message: FakeMessage, change: WebhookChange = {}): Promise<WebhookResponse> {
    const form = new URLSearchParams({
      SmsMessageSid: message.sid,
      NumMedia: String(message.media.length),
      ProfileName: 'Ada',
      MessageType: 'text',
      SmsSid: message.sid,
      WaId: message.from.replace('whatsapp:+', ''),
      SmsStatus: 'received',
      Body: message.body,
      To: message.to,
      NumSegments: '1',
      ReferralNumMedia: '0',
      MessageSid: message.sid,
      AccountSid: this.accountSid,
      From: message.from,
      ApiVersion: '2010-04-01',
    })
    for (const [index, media] of message.media.entries()) {
      form.set(`MediaUrl${index}`, this.#mediaUrl(message, index))
      form.set(`MediaContentType${index}`, media.type)
    }
    return this.post('/whatsapp/webhook', form, change)
  }

  /** Reports the status of a message, through its status callback if it has one. */
  async tell(message: FakeMessage, status: string, errorCode?: number): Promise<WebhookResponse | undefined> {
    message.status = status
    message.sentAt ??= this.#now()
    if (errorCode !== undefined) message.errorCode = errorCode
    const { statusCallback } = message
    if (statusCallback === undefined) return undefined
    const form = new URLSearchParams({
      MessageSid: message.sid,
      MessageStatus: status,
      AccountSid: this.accountSid,
      From: message.from,
      To: message.to,
      ...(errorCode !== undefined && { ErrorCode: String(errorCode) }),
    })
    const { publicUrl } = this.#listener()
    return this.post(statusCallback.slice(publicUrl.length), form)
  }

  /** Sends a signed request to our public URL. */
  post(path: string, form: URLSearchParams, change: WebhookChange = {}): Promise<WebhookResponse> {
    const { publicUrl } = this.#listener()
    const signature =
      change.signature ?? getExpectedTwilioSignature(this.authToken, `${publicUrl}${path}`, fieldsOf(form))
    change.tamper?.(form)
    return this.#send('POST', path, change.body ?? form.toString(), {
      'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
      'x-twilio-signature': signature,
      'i-twilio-idempotency-token': randomBytes(8).toString('hex'),
      ...change.headers,
    })
  }

  /** Fetches a file as Twilio does. */
  async fetchFile(url: string): Promise<WebhookResponse & { type: string | undefined }> {
    const { publicUrl } = this.#listener()
    if (!url.startsWith(publicUrl)) throw new Error(`${url} is not at the public URL`)
    return this.#send('GET', url.slice(publicUrl.length), '', {})
  }

  #send(
    method: string,
    path: string,
    body: string,
    headers: Record<string, string>,
  ): Promise<WebhookResponse & { type: string | undefined }> {
    const { target, publicUrl } = this.#listener()
    return new Promise((resolve, reject) => {
      const host = new URL(publicUrl).host
      const outgoing = request(
        `${target}${path}`,
        { method, headers: { ...headers, host }, agent: false },
        (response) => {
          text(response).then((answer) => {
            resolve({ status: response.statusCode ?? 0, body: answer, type: response.headers['content-type'] })
          }, reject)
        },
      )
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }

  #listener(): { target: string; publicUrl: string } {
    if (!this.webhook) throw new Error('Twilio knows no webhook')
    return this.webhook
  }

  #now(): number {
    return Date.now() + this.#aheadMs
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await text(incoming))
    const url = new URL(incoming.url ?? '', this.apiUrl)
    const content = this.#contents.get(url.pathname)
    if (content) {
      response.setHeader('content-type', content.type)
      response.end(content.content)
      return
    }
    const route = ROUTES.find(([method, path]) => method === incoming.method && path.test(url.pathname))?.[2]
    if (!route) return answerJson(response, 404, { code: 20404, message: 'Not found', status: 404 })
    this.asked.push(route)
    if (!this.#isKnown(incoming.headers.authorization)) {
      return answerJson(response, 401, { code: 20003, message: 'Authenticate', status: 401 })
    }
    const index = this.#faults.findIndex((entry) => entry.route === route)
    const [fault] = index === -1 ? [] : this.#faults.splice(index, 1).map((entry) => entry.fault)
    if (!fault) return this.#do(route, url, form, response)
    this.faultCount += 1
    if (fault.hasEffect) this.#do(route, url, form)
    if (fault.kind === 'drop') response.destroy()
    if (fault.kind !== 'status') return undefined
    if (fault.retryAfterSeconds !== undefined) response.setHeader('retry-after', fault.retryAfterSeconds)
    const { status, code, message = 'Something went wrong' } = fault
    return answerJson(response, status, { ...(code !== undefined && { code }), message, status })
  }

  #isKnown(authorization: string | undefined): boolean {
    return authorization === `Basic ${Buffer.from(`${this.accountSid}:${this.authToken}`).toString('base64')}`
  }

  /** Without a response, only the side effect. */
  #do(route: Route, url: URL, form: URLSearchParams, response?: ServerResponse): void {
    const answer = (status: number, body: object): void => {
      if (response) answerJson(response, status, body)
    }
    const parts = url.pathname.replace(/\.json$/, '').split('/')
    const message = this.messages.find(({ sid }) => parts.includes(sid))
    switch (route) {
      case 'create': {
        const created = this.#create(form)
        if (!this.tellsFirst) return answer(201, this.#view(created))
        void this.#tellNext(created).then(() => answer(201, this.#view(created)))
        return undefined
      }
      case 'list':
        return answer(200, this.#list(url))
      case 'fetch':
        return message ? answer(200, this.#view(message)) : answer(404, { code: 20404, message: 'Not found' })
      case 'media-list': {
        const media_list = (message?.media ?? []).map(({ type }, place) => ({
          sid: mediaSid(place),
          content_type: type,
          uri: `${new URL(this.#mediaUrl(message as FakeMessage, place)).pathname}.json`,
        }))
        return answer(200, { media_list })
      }
      case 'media': {
        const media = message?.media[Number(parts.at(-1)?.slice(2)) || 0]
        if (!media || !response) return answer(404, { code: 20404, message: 'Not found' })
        const path = `/content/${message?.sid}/${parts.at(-1)}`
        this.#contents.set(path, media)
        response.writeHead(307, { location: media.redirectTo ?? `${this.apiUrl}${path}` }).end()
        return undefined
      }
      case 'typing':
        this.typing.push(form.get('messageId') ?? '')
        return answer(200, { success: true })
      case 'account':
        return answer(200, { sid: this.accountSid, status: 'active', type: this.accountType, friendly_name: 'Test' })
      case 'senders':
        return answer(200, { senders: this.senders, meta: {} })
      default:
        return undefined
    }
  }

  #create(form: URLSearchParams): FakeMessage {
    const message: FakeMessage = {
      sid: `SM${randomBytes(16).toString('hex')}`,
      direction: 'outbound-api',
      from: form.get('From') ?? '',
      to: form.get('To') ?? '',
      body: form.get('Body') ?? '',
      status: 'queued',
      media: form.getAll('MediaUrl').map(() => ({ type: '', content: Buffer.alloc(0) })),
      createdAt: this.#now(),
    }
    const [mediaUrl, statusCallback] = [form.get('MediaUrl'), form.get('StatusCallback')]
    if (mediaUrl !== null) message.mediaUrl = mediaUrl
    if (statusCallback !== null) message.statusCallback = statusCallback
    this.messages.push(message)
    // Later, as if from another machine.
    if (!this.tellsFirst) setTimeout(() => void this.#tellNext(message), 20)
    return message
  }

  async #tellNext(message: FakeMessage): Promise<void> {
    const { nextStatus: next } = this
    // Nobody may be listening any more.
    if (next) await this.tell(message, next.status, next.errorCode).catch(() => {})
  }

  #list(url: URL): object {
    const query = url.searchParams
    const after = Date.parse(query.get('DateSent>') ?? '')
    const found = this.messages
      .filter(({ to, from }) => [to, null].includes(query.get('To')) && [from, null].includes(query.get('From')))
      .filter(({ sentAt }) => Number.isNaN(after) || (sentAt !== undefined && sentAt >= after))
      .toReversed()
    const size = Math.min(Number(query.get('PageSize') ?? 50), this.pageSize)
    const page = Number(query.get('Page') ?? 0)
    query.set('Page', String(page + 1))
    query.set('PageToken', 'PASM1')
    const hasMore = found.length > (page + 1) * size
    return {
      messages: found.slice(page * size, (page + 1) * size).map((message) => this.#view(message)),
      next_page_uri: hasMore ? `${url.pathname}?${query.toString()}` : null,
      page,
      page_size: size,
    }
  }

  #view(message: FakeMessage): object {
    return {
      sid: message.sid,
      account_sid: this.accountSid,
      direction: message.direction,
      from: message.from,
      to: message.to,
      body: message.body,
      status: message.status,
      num_media: String(message.media.length),
      date_created: rfc2822(message.createdAt),
      date_sent: message.sentAt === undefined ? null : rfc2822(message.sentAt),
      error_code: message.errorCode ?? null,
      uri: `/2010-04-01/Accounts/${this.accountSid}/Messages/${message.sid}.json`,
    }
  }

  #mediaUrl({ sid }: FakeMessage, index: number): string {
    return `${this.apiUrl}/2010-04-01/Accounts/${this.accountSid}/Messages/${sid}/Media/${mediaSid(index)}`
  }
}

/** Twilio's own code expects a value per name, or a list. */
export function fieldsOf(form: URLSearchParams): Record<string, string | string[]> {
  return Object.fromEntries([...new Set(form.keys())].map((name) => [name, single(form.getAll(name))]))
}

function single(values: string[]): string | string[] {
  const [first = ''] = values
  return values.length === 1 ? first : values
}

function mediaSid(index: number): string {
  return `ME${String(index).padStart(32, '0')}`
}

function rfc2822(at: number): string {
  return new Date(at).toUTCString().replace('GMT', '+0000')
}

function answerJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
