// Sends an answer to Twilio exactly once, whatever happens on the way. Twilio accepts no idempotency key, so a later
// attempt first looks up what Twilio has already sent and continues from there. If Twilio cannot be asked, nothing is
// sent.

import { GatewayError, messageOf } from '../../errors.js'
import { requirePublicUrl } from '../../media/public-fetch.js'
import { oneLine } from '../../core/one-line.js'
import { chunkMarkdown } from '../chunk.js'
import type { ChannelHost, OutgoingFile, OutgoingPath, OutgoingReply } from '../types.js'
import type { Deliveries } from './deliveries.js'
import { SENDABLE, sendableType } from './media-types.js'
import { sentBefore } from './sent-before.js'
import { fingerprintOf, keysOf, type SentLog } from './sent-log.js'
import type { TwilioApi } from './twilio-api.js'
import { TwilioError } from './twilio-errors.js'

export interface SendOptions {
  api: TwilioApi
  sentLog: SentLog
  deliveries: Deliveries
  ownNumber: string
  to: string
  openFile: ChannelHost['openFile']
  locateFile: ChannelHost['locateFile']
  /** Makes a public link to a file; absent if there can be none. */
  linkTo?: ((file: OutgoingPath, name: string) => string) | undefined
  /** Per file. */
  maxFileBytes: number
  statusCallback?: string | undefined
  signal: AbortSignal
}

type FileOptions = Pick<SendOptions, 'openFile' | 'locateFile' | 'linkTo' | 'maxFileBytes' | 'signal'>

type Media = { key: string } & ({ url: string } | { file: OutgoingPath; name: string })

interface Part {
  /** The keys of its contents. */
  items: string[]
  body: string
  media?: Media
}

const MESSAGE_CHARACTERS = 1_600
/** The limit for text sent with a file. */
const CAPTION_CHARACTERS = 1_024
/** Each costs money, and nobody reads more. */
const MAX_TEXT_PARTS = 20
const MAX_FILES = 10
/** WhatsApp's own limits, whatever the operator allows. */
const MAX_FILE_BYTES = 16 * 1024 * 1024
const MAX_PICTURE_BYTES = 5 * 1024 * 1024
const NO_LINKS = 'Twilio must be able to fetch files: the operator must set publicUrl and twilioAuthToken'

/** Contract: as `Channel.send`. */
export async function sendReply(reply: OutgoingReply, options: SendOptions): Promise<void> {
  const { deliveries } = options
  const { idempotencyKey: replyId, attempt } = reply
  deliveries.beginSending(replyId)
  try {
    const done = attempt > 1 ? await sentBefore(reply, options) : new Set<string>()
    for (const part of await partsOf(reply, done, options)) {
      requireNoFailure(replyId, deliveries)
      await postPart(part, replyId, options)
    }
    requireNoFailure(replyId, deliveries)
  } catch (error) {
    if (!(error instanceof TwilioError && error.isPermanent)) throw error
    throw new GatewayError('undeliverable', error.message, { cause: error })
  } finally {
    deliveries.endSending(replyId)
  }
}

/** What remains to be sent, as messages that Twilio accepts. Files already sent are not checked again. */
async function partsOf(reply: OutgoingReply, done: ReadonlySet<string>, options: FileOptions): Promise<Part[]> {
  const texts = textParts('text', bodiesOf(reply))
  const { media, problems } = await checkFiles(reply.files ?? [], done, options)
  const parts = texts.filter(({ items }) => !items.some((item) => done.has(item)))
  const last = parts.at(-1)
  const [first] = media
  if (last && first && last === texts.at(-1) && last.body.length <= CAPTION_CHARACTERS) {
    last.media = first
    last.items.push(first.key)
    media.shift()
  }
  parts.push(...media.map((item) => ({ items: [item.key], body: '', media: item })))
  const notes = textParts('note', chunkMarkdown(problems.join('\n'), MESSAGE_CHARACTERS))
  return [...parts, ...notes.filter(({ items }) => !items.some((item) => done.has(item)))]
}

function bodiesOf({ text, notes, isError, files = [] }: OutgoingReply): string[] {
  const whole = [`${isError ? '⚠️ ' : ''}${text}`, ...notes].filter((part) => part.trim() !== '').join('\n\n')
  if (whole === '') return files.length > 0 ? [] : ['The agent answered without text.']
  // A text that is not split stays as it is, even with an unclosed fence.
  if (whole.length <= MESSAGE_CHARACTERS) return [whole]
  const bodies = chunkMarkdown(whole, MESSAGE_CHARACTERS)
  if (bodies.length > MAX_TEXT_PARTS) {
    const missing = bodies.splice(MAX_TEXT_PARTS).reduce((sum, { length }) => sum + length, 0)
    bodies.push(`… The answer is ${missing} characters longer. Ask for the rest, or for a shorter answer.`)
  }
  return bodies
}

function textParts(kind: string, bodies: string[]): Part[] {
  const keys = keysOf(kind, bodies)
  return bodies.map((body, index) => ({ items: keys.slice(index, index + 1), body }))
}

async function checkFiles(
  files: OutgoingFile[],
  done: ReadonlySet<string>,
  options: FileOptions,
): Promise<{ media: Media[]; problems: string[] }> {
  const media: Media[] = []
  const problems: string[] = []
  const names = files.map((file) => ('url' in file ? file.url : JSON.stringify([file.directory, file.path])))
  for (const [index, key] of keysOf('file', names).slice(0, MAX_FILES).entries()) {
    const file = files[index]
    if (!file || done.has(key)) continue
    try {
      media.push(
        'url' in file ? { key, url: checkedUrl(file.url) } : { key, file, name: await checkFile(file, options) },
      )
    } catch (error) {
      problems.push(messageOf(error))
    }
  }
  const unsent = files.slice(MAX_FILES).map(displayName)
  if (unsent.length > 0)
    problems.push(`An answer holds at most ${MAX_FILES} files, so these were not sent: ${unsent.join(', ')}`)
  return { media, problems }
}

/** Twilio fetches it, and a file it cannot fetch would be a failed message. Contract: as `checkFile`. */
function checkedUrl(url: string): string {
  try {
    requirePublicUrl(url)
    return url
  } catch (error) {
    throw notSent({ url }, `${messageOf(error)}. Open it yourself, or ask for a copy in the project's directory.`)
  }
}

/** Returns its name. Contract: throws a sentence for the person if it cannot be sent. */
async function checkFile(file: OutgoingPath, options: FileOptions): Promise<string> {
  const { name } = await openSendable(file, options)
  if (!options.linkTo) throw notSent(file, `${NO_LINKS}.`)
  return name
}

/** Opens a file that Twilio may have. Contract: throws a sentence for the person if it may not. */
export async function openSendable(
  file: OutgoingPath,
  { openFile, locateFile, maxFileBytes, signal }: Omit<FileOptions, 'linkTo'>,
): Promise<{ name: string; type: string; content: Buffer }> {
  const type = sendableType(file.path)
  if (type === undefined) {
    // Do not suggest another format for a file that may not be sent at all.
    await locateFile(file)
    throw notSent(file, `WhatsApp accepts only ${SENDABLE}. Ask for it as a PDF or a picture.`)
  }
  const limit = type.startsWith('image/') ? MAX_PICTURE_BYTES : MAX_FILE_BYTES
  const { name, content } = await openFile(file, Math.min(limit, maxFileBytes), signal)
  return { name, type, content }
}

function notSent(file: OutgoingFile, reason: string): GatewayError {
  return new GatewayError('request_invalid', `The file "${oneLine(displayName(file), 200)}" was not sent: ${reason}`)
}

/** Without credentials in the URL. */
function displayName(file: OutgoingFile): string {
  return 'url' in file ? file.url.replace(/^(\w+:\/\/)[^/?#]*@/, '$1') : file.path
}

/** Contract: a file that Twilio rejects does not hold back its text. */
async function postPart({ items, body, media }: Part, replyId: string, options: SendOptions): Promise<void> {
  const mediaUrl = media && ('url' in media ? media.url : options.linkTo?.(media.file, media.name))
  try {
    await post({ items, body, mediaUrl }, replyId, options)
  } catch (error) {
    if (!media || !isAboutMedia(error)) throw error
    const name = oneLine('url' in media ? media.url : media.name, 200)
    const note = `The file "${name}" was not sent: ${error.message}`
    await post({ items, body: body === '' ? note : `${body}\n\n${note}` }, replyId, options)
  }
}

async function post(
  { items, ...content }: { items: string[]; body: string; mediaUrl?: string | undefined },
  replyId: string,
  options: SendOptions,
): Promise<void> {
  const { sentLog, deliveries, to } = options
  const logged = { replyId, items, body: fingerprintOf(content.body) }
  await sentLog.begin(to, logged)
  const sid = await create(content, options)
  deliveries.onSent(sid, replyId)
  await sentLog.finish(to, logged, sid)
}

/** Contract: rejects with Twilio's error, or with a sentence saying that the outcome is unknown. */
async function create(
  content: { body: string; mediaUrl?: string | undefined },
  { api, ownNumber, to, statusCallback, signal }: SendOptions,
): Promise<string> {
  try {
    return (await api.createMessage({ to, from: ownNumber, statusCallback, ...content }, signal)).sid
  } catch (error) {
    if (error instanceof TwilioError && error.status < 500) throw error
    const said = messageOf(error).replace(/\.$/, '')
    throw new Error(`${said}; it is not known whether it was delivered.`, { cause: error })
  }
}

const MEDIA_CODES = [21620, 21623, 12300, 11200, 63019, 63021]

function isAboutMedia(error: unknown): error is TwilioError {
  return error instanceof TwilioError && MEDIA_CODES.includes(error.code ?? 0)
}

function requireNoFailure(replyId: string, deliveries: Deliveries): void {
  const problem = deliveries.problemOf(replyId)
  if (problem !== undefined) throw new GatewayError('undeliverable', problem)
}
