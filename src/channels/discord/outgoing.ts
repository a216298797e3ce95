// Posts an answer to Discord exactly once, whatever happens on the way. Each part has a nonce, by which Discord itself
// drops duplicates for some minutes; a later attempt looks up which parts have been posted.

import { createHash } from 'node:crypto'
import { abortable } from '../../core/async.js'
import type { APIMessage, RawFile, RESTPostAPIChannelMessageJSONBody } from 'discord.js'
import { messageOf } from '../../errors.js'
import { oneLine } from '../../core/one-line.js'
import { chunkMarkdown } from '../chunk.js'
import type { ChannelHost, OutgoingFile, OutgoingReply } from '../types.js'
import { codeOf, type DiscordApi, isSnowflake, MISSING_PERMISSIONS, referenceTo, snowflakeAt } from './api.js'
import { answerButtons, button, type Row } from './buttons.js'
import { type Destinations, readAddress } from './destinations.js'
import { plainLine } from './plain-line.js'
import { renderForDiscord } from './render.js'

export interface Part {
  content: string
  files: RawFile[]
}

export const MESSAGE_CHARACTERS = 2_000
/** Nobody reads more of them; a longer answer is sent as a file. */
const MAX_PARTS = 20
/** Discord's limit in a server without boosts. */
const MAX_FILE_BYTES = 10 * 1024 * 1024
const MAX_FILES = 10
const REQUEST_TOO_LARGE = 40005
/** Why an answer is sent without its files. */
const FILE_PROBLEMS = new Map<number | undefined, string>([
  [REQUEST_TOO_LARGE, 'Not sent, because Discord does not accept files of this size'],
  [MISSING_PERMISSIONS, 'Not sent, because I need the Attach Files permission here'],
])
/** How far Discord's clock and ours may be apart. */
const CLOCK_SKEW_MS = 5_000
/** Discord's documentation says "a few minutes". */
const NONCE_MS = 120_000
const KNOWN_PARTS = 1_000
/** How many attempts include the files. */
const FILE_ATTEMPTS = 3
const MAX_PAGES = 10
const PAGE = 100

type FileOpener = Pick<ChannelHost, 'openFile'>

interface PostOptions {
  api: Pick<DiscordApi, 'messagesAfter'>
  host: FileOpener
  destinations: Destinations
  posted: PostedParts
  botId: string
  signal: AbortSignal
  now: () => number
}

/** The reply parts this gateway posted most recently. */
export class PostedParts {
  readonly #parts = new Map<string, { key: string; index: number }>()

  add(id: string, key: string, index: number): void {
    this.#parts.set(id, { key, index })
    const [oldest] = this.#parts.keys()
    if (this.#parts.size > KNOWN_PARTS && oldest !== undefined) this.#parts.delete(oldest)
  }

  has(key: string, index: number): boolean {
    return [...this.#parts.values()].some((part) => part.key === key && part.index === index)
  }

  /** Whether it may belong to this reply: an identical text may be the answer to something else. */
  mayBeOf(id: string, key: string): boolean {
    return (this.#parts.get(id)?.key ?? key) === key
  }
}

/** Posts the parts of a reply that no earlier attempt has posted. */
export async function postReply(reply: OutgoingReply, options: PostOptions): Promise<void> {
  const { host, destinations, posted, signal, now } = options
  const { address, idempotencyKey, attempt, createdAt, platformId } = reply
  const buttons = buttonsOf(reply)
  const parts = await partsOf(reply, host, signal)
  // If aborted, do not report files that could not be fetched: the next attempt fetches them.
  signal.throwIfAborted()
  // Nonces identify a part exactly; its text is only a guess.
  const isGuessed = attempt > 1 && now() - createdAt > NONCE_MS
  const count = isGuessed ? countPosted(parts, await ownMessages(reply, options)) : 0
  const post = (message: RESTPostAPIChannelMessageJSONBody, files: RawFile[] = []): Promise<APIMessage> =>
    abortable(signal, (own) => destinations.post(address, { message, files, signal: own }))
  for (const [index, part] of parts.entries()) {
    if (index < count || (attempt > 1 && posted.has(idempotencyKey, index))) continue
    const isLast = index === parts.length - 1
    const message = {
      content: part.content,
      nonce: nonceOf(`${idempotencyKey}:${index}`),
      enforce_nonce: true,
      ...(index === 0 && !address.includes('/') && isSnowflake(platformId) && referenceTo(platformId)),
      ...(isLast && buttons.length > 0 && { components: buttons }),
    }
    const { id } = await postPart(message, part.files, attempt, post)
    posted.add(id, idempotencyKey, index)
  }
}

function buttonsOf({ messageId, canRetry, canContinue, question }: OutgoingReply): Row[] {
  if (question) return [answerButtons(question)]
  if (messageId === undefined) return []
  if (canRetry) return [button('retry', messageId)]
  return canContinue ? [button('continue', messageId)] : []
}

/** Contract: files that Discord rejects, or the network cannot carry, do not hold back the text. */
async function postPart(
  message: RESTPostAPIChannelMessageJSONBody,
  files: RawFile[],
  attempt: number,
  post: (message: RESTPostAPIChannelMessageJSONBody, files?: RawFile[]) => Promise<APIMessage>,
): Promise<APIMessage> {
  let problem = attempt > FILE_ATTEMPTS ? 'Not sent, because the upload failed' : undefined
  if (files.length === 0 || problem === undefined) {
    try {
      return await post(message, files)
    } catch (error) {
      problem = FILE_PROBLEMS.get(codeOf(error))
      if (problem === undefined || files.length === 0) throw error
    }
  }
  const names = files.map(({ name }) => name).join(', ')
  const note = {
    content: oneLine(`-# ${problem}: ${names}`, MESSAGE_CHARACTERS),
    nonce: nonceOf(`${message.nonce}:files`),
  }
  const text = message.content === '' ? undefined : await post(message)
  const told = await post({ ...note, enforce_nonce: true })
  return text ?? told
}

/** The reply as messages that Discord accepts. */
export async function partsOf(reply: OutgoingReply, host: FileOpener, signal: AbortSignal): Promise<Part[]> {
  const { text, files } = renderForDiscord(reply.text)
  const opened = await openAll(reply.files ?? [], host, signal)
  const notes = [...reply.notes, ...opened.problems, ...waitNote(reply)].map((note) => `-# ${oneLine(note, 500)}`)
  // On a line of its own where it would break the formatting, as before a fence.
  const mark = !reply.isError ? '' : /^[\p{L}\p{N}]/u.test(text) ? '⚠️ ' : '⚠️\n'
  const attached = [...files.map(({ name, content }) => ({ name, data: content })), ...opened.files]
  const said = [`${mark}${text}`, ...notes].filter((part) => part.trim() !== '')
  if (said.length === 0 && attached.length === 0) said.push('-# The agent answered without text.')
  const footer = reply.footer === undefined ? [] : [`-# ${plainLine(reply.footer)}`]
  const whole = [...said, ...footer].join('\n\n')
  const contents = chunkMarkdown(whole, MESSAGE_CHARACTERS)
  if (contents.length > MAX_PARTS) {
    const [beginning = ''] = chunkMarkdown(`${mark}${text}`, MESSAGE_CHARACTERS - 100)
    const rest = chunkMarkdown([...notes, ...footer].join('\n'), MESSAGE_CHARACTERS)
    contents.splice(0, contents.length, `${beginning}\n-# … The full answer is in answer.md.`, ...rest)
    attached.splice(0, files.length, { name: 'answer.md', data: reply.text })
  }
  if (contents.length === 0) contents.push('')
  const last = contents.length - 1
  const parts = contents.map((content, index) => ({
    content,
    files: index === last ? attached.splice(0, MAX_FILES) : [],
  }))
  while (attached.length > 0) parts.push({ content: '', files: attached.splice(0, MAX_FILES) })
  return parts
}

/** How many parts, counted from the first, appear in order among the messages. */
export function countPosted(parts: Part[], messages: Pick<APIMessage, 'content' | 'attachments'>[]): number {
  let count = 0
  for (const { content, attachments } of messages) {
    const part = parts[count]
    if (!part) break
    const isSame = content.trim() === part.content.trim() && (content !== '' || attachments.length > 0)
    if (isSame) count += 1
  }
  return count
}

/** Discord accepts at most 25 characters. */
export function nonceOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 24)
}

async function openAll(
  wanted: OutgoingFile[],
  host: FileOpener,
  signal: AbortSignal,
): Promise<{ files: RawFile[]; problems: string[] }> {
  const files: RawFile[] = []
  const problems: string[] = []
  const unsent = wanted.slice(MAX_FILES).map((file) => ('url' in file ? file.url : file.path))
  if (unsent.length > 0)
    problems.push(`A message holds at most ${MAX_FILES} files, so these were not sent: ${unsent.join(', ')}`)
  // In parallel: each download may take the full time allowed.
  const opened = await Promise.allSettled(
    wanted.slice(0, MAX_FILES).map((file) => host.openFile(file, MAX_FILE_BYTES, signal)),
  )
  for (const outcome of opened) {
    if (outcome.status === 'fulfilled') files.push({ name: outcome.value.name, data: outcome.value.content })
    else problems.push(messageOf(outcome.reason))
  }
  return { files, problems }
}

/** In the reader's own time zone. */
function waitNote({ waitsUntil }: OutgoingReply): string[] {
  if (waitsUntil === undefined) return []
  const seconds = Math.ceil(waitsUntil / 1000)
  return [`That is <t:${seconds}:t> your time, <t:${seconds}:R>.`]
}

/** Our own messages, oldest first: in the thread, or in its channel if the thread could not be used. */
async function ownMessages(
  { address, idempotencyKey, createdAt }: OutgoingReply,
  { api, posted, botId }: PostOptions,
): Promise<APIMessage[]> {
  const { channelId, threadId } = readAddress(address)
  const after = snowflakeAt(createdAt - CLOCK_SKEW_MS)
  const read = async (place: string): Promise<APIMessage[]> => {
    try {
      const messages = await allAfter(place, after, api)
      return messages.filter(({ id, author }) => author.id === botId && posted.mayBeOf(id, idempotencyKey))
    } catch (error) {
      // A missing channel holds nothing; posting deals with the rest.
      if (codeOf(error) === undefined) throw error
      return []
    }
  }
  if (threadId === undefined) return read(channelId)
  const beside = (await read(channelId)).filter(({ message_reference }) => message_reference?.message_id === threadId)
  return [...(await read(threadId)), ...beside]
}

async function allAfter(place: string, after: string, api: Pick<DiscordApi, 'messagesAfter'>): Promise<APIMessage[]> {
  const messages: APIMessage[] = []
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const next = await api.messagesAfter(place, messages.at(-1)?.id ?? after)
    messages.push(...next)
    if (next.length < PAGE) break
  }
  return messages
}
