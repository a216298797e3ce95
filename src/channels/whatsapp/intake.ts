// What people write, on its way to the gateway: from the webhook and from Twilio's record alike.
//
// What must stay true:
// - Who may not write leaves nothing in the store but the id of the message, is not answered, and makes us fetch nothing.
// - What comes again under its id is dealt with once: while it is under way, from memory, and by the store. That is looked
//   up before anything else is made of it: what it meant under other settings is no matter any more.
// - What is claimed may not have been done, since we can be killed at any time: it counts as done with its answer.
// - Messages of one conversation are dealt with in the order in which they came.

import { wait } from '../../core/async.js'
import { GatewayError, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { fetchPublic } from '../../media/public-fetch.js'
import { COMMAND_FAILED } from '../command-failed.js'
import type { ChannelHost, IncomingFile, MessageVariables, Place } from '../types.js'
import { ConversationOrder } from './conversation-order.js'
import type { Incoming } from './incoming.js'
import { nameFor } from './media-types.js'
import { lastDigits } from './phone-number.js'
import { afterReset, mayWrite, placeOf, type ReplySettings } from './settings.js'
import type { TwilioMedia } from './twilio-api.js'
import { TwilioError } from './twilio-errors.js'

/** Contract: rejects with a sentence about what went wrong. */
export type Transcribe = (audio: Recording, signal: AbortSignal) => Promise<string>

export interface Recording {
  name: string
  content: Uint8Array
  variables: MessageVariables
}

export interface IntakeOptions {
  host: ChannelHost
  ownNumber: string
  /** The origin of Twilio's API, and what opens what it keeps. */
  apiOrigin: string
  authorization: string
  settings(): ReplySettings | undefined
  /** Nothing when voice messages stay as they are. */
  transcriber(): Transcribe | undefined
  maxFileBytes(): number
  /** It is safe. `position` is the number of messages before it. */
  onTaken(sid: string, position: number): void
  /** Aborted when nothing more is taken. */
  signal: AbortSignal
  log: Log
}

interface FetchedFile {
  file: IncomingFile
  /** Nothing when it could not be had. */
  content?: Uint8Array
}

/** What is to be done about a message. */
type Meaning = { command: string } | { text: string; beginsSession: boolean }

const GONE: FetchedFile = {
  file: { name: 'file', bytes: 0, read: () => Promise.reject(new Error('Twilio no longer has it')) },
}

const STOP_WORDS = new Set(['stop', 'esc', 'abort', 'wait', 'exit'])
const FETCH_TIMEOUT_MS = 60_000
const REMEMBERED = 10_000
/** No command takes longer: who has claimed one and not answered by then was killed. */
const LEFT_AFTER_MS = 10_000
const LOOK_EVERY_MS = 250

export class Intake {
  readonly #order = new ConversationOrder()
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #done = new Set<string>()

  constructor(private readonly options: IntakeOptions) {}

  /** Contract: when it resolves the message is safe, or is nobody's business. It rejects when it must come again. */
  take(incoming: Incoming): Promise<void> {
    const { sid } = incoming
    const underWay = this.#underWay.get(sid)
    if (underWay || this.#done.has(sid)) return underWay ?? Promise.resolve()
    const taken = this.#begin(incoming)
    this.#underWay.set(sid, taken)
    taken.then(() => this.#finish(sid)).catch(() => this.#underWay.delete(sid))
    return taken
  }

  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  #begin(incoming: Incoming): Promise<void> {
    const { host, settings: current } = this.options
    const { sid, from, hasMedia } = incoming
    const settings = current()
    if (!mayWrite(from, settings)) return this.#refuse(incoming)
    const place = placeOf(from, settings)
    const meaning = this.#read(incoming, settings)
    const isCommand = 'command' in meaning
    return this.#order.run(place.address, { isCommand, hasFiles: hasMedia }, async () => {
      if ((await host.isKnown(sid)) || (await host.isClaimed(takenKey(sid)))) return
      await (isCommand ? this.#command(incoming, place, meaning.command) : this.#message(incoming, place, meaning))
    })
  }

  /** Should they be let in later, that is not for what they wrote before. */
  async #refuse({ sid, from }: Incoming): Promise<void> {
    const { host, log } = this.options
    if (await host.claim(takenKey(sid))) log.info('whatsapp.refused', { from: lastDigits(from) })
  }

  #read({ text: written, hasMedia }: Incoming, settings: ReplySettings | undefined): Meaning {
    const text = written.trim()
    if (!hasMedia && STOP_WORDS.has(text.toLowerCase())) return { command: '/stop' }
    const rest = afterReset(text, settings)
    if (rest === '' && !hasMedia) return { command: '/new' }
    if (rest === undefined && this.options.host.isCommand(text)) return { command: text }
    return { text: rest ?? text, beginsSession: rest !== undefined }
  }

  async #message(
    incoming: Incoming,
    place: Place,
    { text, beginsSession }: { text: string; beginsSession: boolean },
  ): Promise<void> {
    const { host, ownNumber, onTaken, log } = this.options
    const { sid, from } = incoming
    const limit = this.#startDeadline()
    try {
      const media = await this.#mediaOf(incoming, limit.signal)
      const fetched = media ? await this.#fetchAll(media, limit.signal) : [GONE]
      const [first] = media ?? []
      const variables: MessageVariables = {
        From: from,
        To: ownNumber,
        MessageSid: sid,
        ...(first && { MediaUrl: first.url, MediaType: first.type }),
      }
      const heard = await this.#transcribe(fetched, variables)
      const acceptance = await host.onMessage({
        ...place,
        platformId: sid,
        author: from,
        text: text === '' ? (heard?.transcript ?? '') : text,
        ...(fetched.length > 0 && { files: fetched.map(({ file }) => file) }),
        options: {
          ...(beginsSession && { beginsSession }),
          variables: { ...variables, ...(heard?.transcript !== undefined && { Transcript: heard.transcript }) },
        },
      })
      if (acceptance.status !== 'accepted') return
      onTaken(sid, acceptance.position)
      const notes = [...acceptance.notes, ...(heard?.problem === undefined ? [] : [heard.problem])]
      if (notes.length === 0) return
      await host.say(place, notes.join('\n'), from).catch((error: unknown) => {
        log.warn('whatsapp.not-told', { sid, error: messageOf(error) })
      })
    } finally {
      limit.end()
    }
  }

  /** Nothing when Twilio does not have them any more. */
  async #mediaOf(incoming: Incoming, signal: AbortSignal): Promise<TwilioMedia[] | undefined> {
    try {
      return await incoming.media(signal)
    } catch (error) {
      if (error instanceof TwilioError && error.isFinal) return undefined
      throw error
    }
  }

  /** One after the other: WhatsApp brings one with each message. */
  async #fetchAll(media: TwilioMedia[], signal: AbortSignal): Promise<FetchedFile[]> {
    const fetched: FetchedFile[] = []
    for (const [index, item] of media.entries()) fetched.push(await this.#fetch(item, index, signal))
    return fetched
  }

  /** Contract: what cannot be had is a file that says so when it is read. */
  async #fetch({ url, type }: TwilioMedia, index: number, signal: AbortSignal): Promise<FetchedFile> {
    const { apiOrigin, authorization, maxFileBytes } = this.options
    const described = { name: nameFor(type, index), ...(type !== '' && { type }) }
    try {
      const isAtApi = URL.canParse(url) && new URL(url).origin === apiOrigin
      const { content } = await fetchPublic(url, {
        signal,
        maxBytes: maxFileBytes(),
        ...(isAtApi && { headers: { authorization }, trustedOrigin: apiOrigin }),
      })
      return { content, file: { ...described, bytes: content.length, read: async () => content } }
    } catch (error) {
      // Then the message comes again, whole.
      if (this.options.signal.aborted) throw error
      return { file: { ...described, bytes: 0, read: () => Promise.reject(error) } }
    }
  }

  async #transcribe(
    fetched: FetchedFile[],
    variables: MessageVariables,
  ): Promise<{ transcript?: string; problem?: string } | undefined> {
    const { transcriber, signal, log } = this.options
    const transcribe = transcriber()
    const audio = fetched.find(({ file, content }) => content && file.type?.startsWith('audio/'))
    if (!transcribe || !audio?.content) return undefined
    try {
      const transcript = await transcribe({ name: audio.file.name, content: audio.content, variables }, signal)
      if (transcript.trim() === '') throw new GatewayError('request_invalid', 'nothing was understood.')
      return { transcript: transcript.trim() }
    } catch (error) {
      if (signal.aborted) throw error
      log.warn('whatsapp.not-transcribed', { sid: variables.MessageSid, error: messageOf(error) })
      return { problem: `The voice message could not be turned into text: ${messageOf(error)}` }
    }
  }

  async #command({ sid, from }: Incoming, place: Place, line: string): Promise<void> {
    const { host, log } = this.options
    // Another gateway may have got it, too.
    if (!(await host.claim(`command:${sid}`)) && !(await this.#isLeft(sid))) return
    const answer = await host.onCommand(place, from, line).catch((error: unknown) => {
      log.error('whatsapp.command-failed', { sid, error: messageOf(error) })
      return COMMAND_FAILED
    })
    await host.say(place, answer, from, takenKey(sid))
  }

  /** Whether who has claimed a command does not do it. */
  async #isLeft(sid: string): Promise<boolean> {
    const { host, signal } = this.options
    for (let waitedMs = 0; waitedMs < LEFT_AFTER_MS; waitedMs += LOOK_EVERY_MS) {
      if (await host.isClaimed(takenKey(sid))) return false
      await wait(LOOK_EVERY_MS, { signal })
    }
    return true
  }

  #finish(sid: string): void {
    this.#underWay.delete(sid)
    this.#done.add(sid)
    const [oldest] = this.#done
    if (this.#done.size > REMEMBERED && oldest !== undefined) this.#done.delete(oldest)
  }

  #startDeadline(): { signal: AbortSignal; end(): void } {
    const { signal } = this.options
    const limit = new AbortController()
    const tooLate = new Error(`it took longer than ${FETCH_TIMEOUT_MS / 1000} s`)
    const timer = setTimeout(() => limit.abort(tooLate), FETCH_TIMEOUT_MS)
    const stop = (): void => limit.abort(signal.reason)
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    return {
      signal: limit.signal,
      end: () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', stop)
      },
    }
  }
}

/** Of what is done and is no message in the store: a command, or what somebody wrote who may not. */
function takenKey(sid: string): string {
  return `taken:${sid}`
}
