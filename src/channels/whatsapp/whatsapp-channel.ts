// The WhatsApp channel, through Twilio. docs/whatsapp.md describes the setup and how it looks to people.
//
// Invariants:
// - A request comes from Twilio only if it is signed for the configured public URL.
// - A webhook is answered with success once the message is stored, or if fetching its files takes longer than Twilio
//   waits. Anything not stored by then, or that no webhook delivered, is found by polling.
// - Each part of an answer is sent to Twilio once, or reported as possibly delivered.

import { setMaxListeners } from 'node:events'
import { abortable, within } from '../../core/async.js'
import { GatewayError, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type {
  Channel,
  ChannelHost,
  Forgotten,
  LiveEvent,
  OutgoingReply,
  PlatformEndpoint,
  PlatformRequest,
  PlatformResponse,
} from '../types.js'
import { Deliveries } from './deliveries.js'
import { FileLinks } from './file-links.js'
import { readWebhook } from './incoming.js'
import { Intake, type Transcribe } from './intake.js'
import { openSendable, sendReply } from './outgoing.js'
import { isNumber } from './phone-number.js'
import { Poller } from './poller.js'
import { FILES_PATH, STATUS_PATH, WEBHOOK_GREETING, WEBHOOK_PATH } from './public-paths.js'
import { SentLog } from './sent-log.js'
import type { ReplySettings } from './settings.js'
import { isSigned } from './signature.js'
import { TwilioApi, type TwilioOptions } from './twilio-api.js'
import { TwilioError } from './twilio-errors.js'
import { Typing } from './typing.js'

export interface WhatsAppOptions extends TwilioOptions {
  /** Verifies webhooks, and encrypts links to files. */
  authToken: string | undefined
  /** The gateway's own number, such as +14155238886. */
  from: string
  /** Where Twilio reaches us, without a trailing slash. Without it, everything is polled. */
  publicUrl: string | undefined
  pollSeconds: number
  /** Read at each use, since the operator may change it. */
  reply(): ReplySettings | undefined
  /** Transcribes voice messages; undefined if they stay as they are. */
  transcriber(): Transcribe | undefined
  /** Per incoming file. */
  maxFileBytes(): number
  log: Log
  now: () => number
}

/** Everything that exists once the channel has started. */
interface ChannelState {
  host: ChannelHost
  intake: Intake
  deliveries: Deliveries
  sentLog: SentLog
  polling: Promise<void>
}

/** Twilio's largest forms are far smaller. */
const MAX_FORM_BYTES = 128 * 1024
/** The interval for polling what a webhook failed to deliver. */
const LISTENING_POLL_MS = 60_000
const FIRST_CHECK_MS = 2_000
/**
 * Twilio waits 15 s. A message that takes longer, because of its files, continues in the background; if we end first,
 * polling finds it.
 */
const ANSWER_WITHIN_MS = 10_000
/** Without a network the gateway starts anyway. */
const START_WITHIN_MS = 20_000
const CLOSE_WITHIN_MS = 2_000
const LOG_UNSIGNED_EVERY_MS = 60_000
const DEFAULT_TYPING_SECONDS = 8
const DEFAULT_MEDIA_MB = 5
const MEGABYTE = 1024 * 1024

const EMPTY_ANSWER: PlatformResponse = {
  status: 200,
  headers: { 'content-type': 'text/xml; charset=utf-8' },
  body: '<?xml version="1.0" encoding="UTF-8"?><Response></Response>',
}

export class WhatsAppChannel implements Channel {
  readonly name = 'whatsapp'
  readonly takesFiles = true
  readonly endpoints: PlatformEndpoint[]
  readonly #api: TwilioApi
  readonly #typing: Typing
  readonly #links: FileLinks | undefined
  readonly #stopped = new AbortController()
  readonly #closed = new AbortController()
  #state: ChannelState | undefined
  #unsigned = 0
  #unsignedLoggedAt = 0

  constructor(private readonly options: WhatsAppOptions) {
    const { publicUrl, authToken, reply, log, now } = options
    // Each pending request adds a listener.
    setMaxListeners(0, this.#stopped.signal)
    this.#api = new TwilioApi(options)
    const typingMs = (): number => (reply()?.typingIntervalSeconds ?? DEFAULT_TYPING_SECONDS) * 1000
    this.#typing = new Typing(this.#api, typingMs, this.#stopped.signal, log)
    this.#links = publicUrl === undefined || authToken === undefined ? undefined : new FileLinks(authToken, now)
    this.endpoints = publicUrl === undefined || authToken === undefined ? [] : this.#endpoints(publicUrl, authToken)
  }

  async start(host: ChannelHost): Promise<void> {
    const { from: ownNumber, publicUrl, pollSeconds, reply, transcriber, maxFileBytes, apiUrl, log, now } = this.options
    const { signal } = this.#stopped
    const isListening = this.endpoints.length > 0
    const intervalMs = isListening ? Math.max(LISTENING_POLL_MS, pollSeconds * 1000) : pollSeconds * 1000
    const deliveries = new Deliveries({
      api: this.#api,
      host,
      firstCheckMs: isListening ? LISTENING_POLL_MS : FIRST_CHECK_MS,
      log,
      now,
    })
    const sentLog = new SentLog(host, now)
    await deliveries.resumeWatching(sentLog)
    const intake = new Intake({
      host,
      ownNumber,
      apiOrigin: new URL(apiUrl).origin,
      authorization: this.#api.authorization,
      settings: reply,
      transcriber,
      maxFileBytes,
      onAccepted: (sid, position) => {
        if (position === 0) this.#typing.once(sid)
      },
      signal,
      log,
    })
    const poller = new Poller({
      api: this.#api,
      host,
      ownNumber,
      intervalMs,
      take: (incoming) => intake.take(incoming),
      alsoPoll: (polling) => deliveries.checkDue(polling),
      signal,
      log,
      now,
    })
    await poller.load()
    const first = poller.poll().catch((error: unknown) => {
      // The operator must fix a refusal; anything else is waited out.
      if (error instanceof TwilioError && error.isRefusal) throw new GatewayError('config_invalid', error.message)
      if (!signal.aborted) log.error('whatsapp.not-asked', { error: messageOf(error) })
    })
    this.#state = {
      host,
      intake,
      deliveries,
      sentLog,
      polling: first.then(
        () => poller.run(),
        (error: unknown) => log.error('whatsapp.not-started', { error: messageOf(error) }),
      ),
    }
    if (isListening) log.info('whatsapp.listening', { url: `${publicUrl}${WEBHOOK_PATH}` })
    await within(
      START_WITHIN_MS,
      abortable(signal, () => first),
    ).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }

  async send(reply: OutgoingReply, signal: AbortSignal): Promise<void> {
    const { from: ownNumber, publicUrl } = this.options
    const state = this.#state
    if (!state) throw new Error('The channel has not been started')
    if (reply.messageId !== undefined) this.#typing.end(reply.messageId)
    const to = [reply.address, reply.author ?? ''].find(isNumber)
    if (to === undefined) {
      throw new GatewayError('undeliverable', 'There is no recipient. Give a phone number such as +4915112345678.')
    }
    const links = this.#links
    await sendReply(reply, {
      api: this.#api,
      sentLog: state.sentLog,
      deliveries: state.deliveries,
      ownNumber,
      to,
      ...(links && {
        linkTo: (file, name) => `${publicUrl}${FILES_PATH}/${links.seal(file)}/${encodeURIComponent(name)}`,
        statusCallback: `${publicUrl}${STATUS_PATH}/${reply.idempotencyKey}`,
      }),
      openFile: state.host.openFile,
      locateFile: state.host.locateFile,
      maxFileBytes: this.#maxSentBytes(),
      signal,
    })
  }

  show({ messageId, platformId, event }: LiveEvent): void {
    if (this.#stopped.signal.aborted || event.type === 'complete') this.#typing.end(messageId)
    else this.#typing.begin(messageId, platformId)
  }

  forget({ messageId }: Forgotten): void {
    this.#typing.end(messageId)
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#typing.endAll()
    const state = this.#state
    // Whatever is unfinished by then is found by the next poll.
    if (state) await within(CLOSE_WITHIN_MS, Promise.all([state.intake.idle(), state.polling]))
  }

  async close(): Promise<void> {
    this.#closed.abort()
    this.#typing.endAll()
    this.#state?.deliveries.close()
  }

  #endpoints(publicUrl: string, authToken: string): PlatformEndpoint[] {
    const signed =
      (path: string, handle: (form: URLSearchParams, rest: string) => Promise<PlatformResponse>) =>
      async ({ rest, query, headers, body }: PlatformRequest): Promise<PlatformResponse> => {
        const url = `${publicUrl}${path}${rest === '' ? '' : `/${rest}`}${query === '' ? '' : `?${query}`}`
        const form = new URLSearchParams(body.toString('utf8'))
        if (isSigned(authToken, headers['x-twilio-signature'] ?? '', url, form)) return handle(form, rest)
        this.#onUnsigned(path)
        return { status: 403, body: 'This request is not signed by Twilio for this gateway.' }
      }
    const refused = (allow: string, body: string) => async () => ({ status: 405, headers: { allow }, body })
    const get = { method: 'GET', maxBytes: 0 } as const
    const post = { method: 'POST', maxBytes: MAX_FORM_BYTES } as const
    return [
      { ...post, path: WEBHOOK_PATH, handle: signed(WEBHOOK_PATH, (form) => this.#onWebhook(form)) },
      { ...get, path: WEBHOOK_PATH, handle: refused('POST', WEBHOOK_GREETING) },
      { ...post, path: STATUS_PATH, handle: signed(STATUS_PATH, (form, rest) => this.#onStatus(form, rest)) },
      { ...get, path: FILES_PATH, handle: ({ rest }) => this.#onFile(rest) },
      { ...post, path: FILES_PATH, handle: refused('GET, HEAD', 'Files are fetched here, by GET.') },
    ]
  }

  /** Rate-limited, so that nobody can flood the log. */
  #onUnsigned(path: string): void {
    const { log, now } = this.options
    this.#unsigned += 1
    if (now() - this.#unsignedLoggedAt < LOG_UNSIGNED_EVERY_MS) return
    const advice =
      'If this was Twilio, check that publicUrl is the URL it calls and twilioAuthToken belongs to the account'
    log.warn('whatsapp.not-signed', { path, count: this.#unsigned, advice })
    this.#unsignedLoggedAt = now()
    this.#unsigned = 0
  }

  async #onWebhook(form: URLSearchParams): Promise<PlatformResponse> {
    const { from, log } = this.options
    const state = this.#state
    if (!state || this.#stopped.signal.aborted) return { status: 503, body: 'The gateway is not running.' }
    const incoming = readWebhook(form, from)
    if (!incoming) {
      log.warn('whatsapp.not-for-us', { sid: form.get('MessageSid') })
      return EMPTY_ANSWER
    }
    const taken = state.intake.take(incoming).then(
      () => EMPTY_ANSWER,
      (error: unknown): PlatformResponse => {
        log.error('whatsapp.message-not-stored', { sid: incoming.sid, error: messageOf(error) })
        return { status: 500, body: 'The message could not be stored. The gateway will fetch it again.' }
      },
    )
    return (await within(ANSWER_WITHIN_MS, taken)) ?? EMPTY_ANSWER
  }

  async #onStatus(form: URLSearchParams, replyId: string): Promise<PlatformResponse> {
    const [sid, status] = [form.get('MessageSid'), form.get('MessageStatus')]
    // It may be present but empty.
    const code = Number(form.get('ErrorCode')) || undefined
    if (sid !== null && status !== null && /^[\w-]{1,64}$/.test(replyId)) {
      await this.#state?.deliveries.onStatus(sid, replyId, status, code)
    }
    return { status: 204 }
  }

  /** Contract: does not reveal why a file is unavailable. */
  async #onFile(rest: string): Promise<PlatformResponse> {
    const { log } = this.options
    const [link = ''] = rest.split('/', 1)
    const file = this.#links?.open(link)
    const host = this.#state?.host
    if (!file || !host) return NOT_FOUND
    try {
      const { openFile, locateFile } = host
      const options = { openFile, locateFile, maxFileBytes: this.#maxSentBytes(), signal: this.#closed.signal }
      const { type, content } = await openSendable(file, options)
      return { status: 200, headers: { 'content-type': type }, body: content }
    } catch (error) {
      log.warn('whatsapp.file-refused', { error: messageOf(error) })
      return NOT_FOUND
    }
  }

  #maxSentBytes(): number {
    return (this.options.reply()?.mediaMaxMb ?? DEFAULT_MEDIA_MB) * MEGABYTE
  }
}

const NOT_FOUND: PlatformResponse = { status: 404, body: 'The file was not found, or is no longer available.' }
