// Passes what people write on to the gateway, whether it comes from the webhook or from Twilio's record.
//
// Invariants:
// - People without access leave only the message id in the store, get no answer, and cause no downloads.
// - A message that arrives again under its id is handled once: in memory while it is under way, and by the store
//   afterwards. The store is checked first, since the settings may have changed what the message means.
// - A claim does not prove that the work was done, since we can be killed at any time: a command counts as done once
//   its answer is stored.
// - Messages of one conversation are handled in the order in which they arrived.

import { startDeadline, wait } from '../../core/async.js'
import { GatewayError, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { fetchPublic } from '../../media/public-fetch.js'
import { type AdmissionAction, admit, readAdmission } from '../admission.js'
import { COMMAND_FAILED } from '../command-failed.js'
import type { ChannelHost, IncomingFile, MessageVariables, Place } from '../types.js'
import { ConversationOrder } from './conversation-order.js'
import type { Incoming } from './incoming.js'
import { nameFor } from './media-types.js'
import { isNumber, lastDigits } from './phone-number.js'
import { afterReset, mayWrite, placeOf, type ReplySettings } from './settings.js'
import type { TwilioMedia } from './twilio-api.js'
import { TwilioError } from './twilio-errors.js'

/** Contract: rejects with a sentence that says what went wrong. */
export type Transcribe = (audio: Recording, signal: AbortSignal) => Promise<string>

export interface Recording {
  name: string
  content: Uint8Array
  variables: MessageVariables
}

export interface IntakeOptions {
  host: ChannelHost
  ownNumber: string
  /** The origin of Twilio's API, and the credentials for media stored there. */
  apiOrigin: string
  authorization: string
  settings(): ReplySettings | undefined
  /** Undefined if voice messages stay as they are. */
  transcriber(): Transcribe | undefined
  maxFileBytes(): number
  /** The message is stored. `position` is the number of messages ahead of it. */
  onAccepted(sid: string, position: number): void
  /** Aborted when the channel stops accepting messages. */
  signal: AbortSignal
  log: Log
}

interface FetchedFile {
  file: IncomingFile
  /** Absent if it could not be fetched. */
  content?: Uint8Array
}

/** What a message asks for. */
type Meaning = { command: string } | { text: string; beginsSession: boolean }

const GONE: FetchedFile = {
  file: { name: 'file', bytes: 0, read: () => Promise.reject(new Error('Twilio no longer has it')) },
}

const STOP_WORDS = new Set(['stop', 'esc', 'abort', 'wait', 'exit'])
const FETCH_TIMEOUT_MS = 60_000
const MAX_REMEMBERED = 10_000
/** No command takes longer: a gateway that claimed one and has not answered by then was killed. */
const ABANDONED_AFTER_MS = 10_000
const CHECK_EVERY_MS = 250

export class Intake {
  readonly #order = new ConversationOrder()
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #done = new Set<string>()

  constructor(private readonly options: IntakeOptions) {}

  /**
   * Contract: when it resolves, the message is stored or needs no further handling. It rejects if the message must be
   * delivered again.
   */
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
    const place = placeOf(from, settings)
    const meaning = this.#read(incoming, settings)
    const isCommand = 'command' in meaning
    return this.#order.run(place.address, { isCommand, hasFiles: hasMedia }, async () => {
      // Without `inbound.reply` WhatsApp is closed.
      const isAdmitted = settings !== undefined && (await host.admissions.has(from))
      if (!mayWrite(from, settings) && !isAdmitted) return this.#refuse(incoming)
      if ((await host.isKnown(sid)) || (await host.isClaimed(handledKey(sid)))) return
      await (isCommand ? this.#command(incoming, place, meaning.command) : this.#message(incoming, place, meaning))
    })
  }

  /** Access granted later does not apply to earlier messages. */
  async #refuse({ sid, from }: Incoming): Promise<void> {
    const { host, log } = this.options
    if (await host.claim(handledKey(sid))) log.info('whatsapp.refused', { from: lastDigits(from) })
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
    const { host, ownNumber, onAccepted, log } = this.options
    const { sid, from } = incoming
    const tooLate = new Error(`it took longer than ${FETCH_TIMEOUT_MS / 1000} s`)
    const limit = startDeadline(FETCH_TIMEOUT_MS, this.options.signal, tooLate)
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
      onAccepted(sid, acceptance.position)
      const notes = [...acceptance.notes, ...(heard?.problem === undefined ? [] : [heard.problem])]
      if (notes.length === 0) return
      await host.say(place, notes.join('\n'), from).catch((error: unknown) => {
        log.warn('whatsapp.not-told', { sid, error: messageOf(error) })
      })
    } finally {
      limit.clear()
    }
  }

  /** Undefined if Twilio no longer has them. */
  async #mediaOf(incoming: Incoming, signal: AbortSignal): Promise<TwilioMedia[] | undefined> {
    try {
      return await incoming.media(signal)
    } catch (error) {
      if (error instanceof TwilioError && error.isPermanent) return undefined
      throw error
    }
  }

  /** Sequentially: WhatsApp sends one file per message. */
  async #fetchAll(media: TwilioMedia[], signal: AbortSignal): Promise<FetchedFile[]> {
    const fetched: FetchedFile[] = []
    for (const [index, item] of media.entries()) fetched.push(await this.#fetch(item, index, signal))
    return fetched
  }

  /** Contract: a file that cannot be fetched is represented by one that rejects when read. */
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
      // The whole message will be delivered again.
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
      if (transcript.trim() === '') throw new GatewayError('request_invalid', 'no speech was recognised.')
      return { transcript: transcript.trim() }
    } catch (error) {
      if (signal.aborted) throw error
      log.warn('whatsapp.not-transcribed', { sid: variables.MessageSid, error: messageOf(error) })
      return { problem: `The voice message could not be transcribed: ${messageOf(error)}` }
    }
  }

  async #command({ sid, from }: Incoming, place: Place, line: string): Promise<void> {
    const { host, log } = this.options
    // Another gateway may have received it too.
    if (!(await host.claim(`command:${sid}`)) && !(await this.#isAbandoned(sid))) return
    const admission = readAdmission(line)
    const answered = admission ? this.#admit(admission, from) : host.onCommand(place, from, line)
    const answer = await answered.catch((error: unknown) => {
      log.error('whatsapp.command-failed', { sid, error: messageOf(error) })
      return COMMAND_FAILED
    })
    await host.say(place, answer, from, handledKey(sid))
  }

  /** WhatsApp has no owner: those whose numbers the configuration names may let others in. */
  #admit({ action, argument }: { action: AdmissionAction; argument: string }, by: string): Promise<string> {
    const { host, settings } = this.options
    const isListed = (number: string): boolean => settings()?.allowFrom?.includes(number) ?? false
    const number = argument.replaceAll(/[\s()-]/g, '')
    const person = isNumber(number)
      ? { id: number, name: number }
      : { problem: 'Write the number like +4915112345678.' }
    const configuredAs = (id: string): string | undefined =>
      isListed(id) ? 'listed in inbound.reply.allowFrom' : undefined
    const admitters = 'Only people listed in inbound.reply.allowFrom'
    const named = argument === '' ? undefined : person
    return admit({ action, person: named, by, mayAdmit: isListed(by), configuredAs, admitters }, host.admissions)
  }

  /** Whether the gateway that claimed a command has abandoned it. */
  async #isAbandoned(sid: string): Promise<boolean> {
    const { host, signal } = this.options
    for (let waitedMs = 0; waitedMs < ABANDONED_AFTER_MS; waitedMs += CHECK_EVERY_MS) {
      if (await host.isClaimed(handledKey(sid))) return false
      await wait(CHECK_EVERY_MS, { signal })
    }
    return true
  }

  #finish(sid: string): void {
    this.#underWay.delete(sid)
    this.#done.add(sid)
    const [oldest] = this.#done
    if (this.#done.size > MAX_REMEMBERED && oldest !== undefined) this.#done.delete(oldest)
  }
}

/**
 * Marks what was handled without becoming a message in the store: a command, or a message from someone without access.
 */
function handledKey(sid: string): string {
  return `taken:${sid}`
}
