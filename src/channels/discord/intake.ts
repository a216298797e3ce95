// Passes what people say to the bot on to the gateway.

import { wait } from '../../core/async.js'
import { type APIInteraction, type APIMessage, escapeMarkdown } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { chunkMarkdown } from '../chunk.js'
import { COMMAND_FAILED } from '../command-failed.js'
import type { ChannelHost, ChannelMessage, Person, Place } from '../types.js'
import { type AdmissionAction, admit, readAdmission } from '../admission.js'
import { type AccessLists, howToGetAccess, mayTalk, type Speaker } from './access.js'
import { type Named, personNamedIn } from './admission.js'
import { type DiscordApi, referenceTo, untilAnswered } from './api.js'
import {
  type ChannelCache,
  type ChannelFacts,
  type Destinations,
  hasThreads,
  isThread,
  placeOf,
  threadAddress,
} from './destinations.js'
import { type Addressed, type BotIdentity, isFromPerson, readFiles, readMessage, threadName } from './incoming.js'
import type { AskCommand } from './interactions.js'
import { type Marks, TAKEN } from './marks.js'
import { MESSAGE_CHARACTERS, nonceOf } from './outgoing.js'

export interface IntakeOptions {
  api: DiscordApi
  host: ChannelHost
  channels: ChannelCache
  destinations: Destinations
  marks: Pick<Marks, 'taken'>
  bot: BotIdentity
  ownerIds: string[]
  access: AccessLists
  /** Whether a mention in a channel opens a thread. */
  opensThreads: boolean
  projectOf(channelId: string): string | undefined
  onAccepted(messageId: string): void
  /** Aborted when the channel stops accepting messages. */
  signal: AbortSignal
  log: Log
  now: () => number
}

type Heard = { message: APIMessage; facts: ChannelFacts; addressed: Addressed }

const REFUSE_AGAIN_MS = 3_600_000
const MAX_REFUSED = 10_000
const RETRY_MS = 1_000
const KNOWN_CONVERSATIONS_MS = 7 * 24 * 3_600_000

export class Intake {
  readonly #refusedAt = new Map<string, number>()
  /** Notes still on their way, for messages already stored. */
  readonly #background = new Set<Promise<void>>()

  constructor(private readonly options: IntakeOptions) {}

  /** Resolves when none are left. */
  async idle(): Promise<void> {
    await Promise.all(this.#background)
  }

  /** `isMissed`: it was said while we were away. */
  async onMessage(message: APIMessage, guildId: string | undefined, isMissed = false): Promise<void> {
    const heard = await this.#hear(message, guildId)
    if (!heard) return
    const speaker = await this.#speaker(message, heard.facts)
    const refusal = await this.#retryUntilStopped(() => this.#refusal(speaker))
    if (refusal !== undefined) {
      if (!isMissed) this.#refuse(message, speaker, refusal)
      return
    }
    const { text } = heard.addressed
    // A bare mention asks what we can do.
    const isBare = text === '' && message.attachments.length === 0
    if (isBare) await this.#command(heard, '/help')
    else if (this.options.host.isCommand(text)) await this.#command(heard, text)
    else await this.#accept(heard)
  }

  async onEdit(message: APIMessage, guildId: string | undefined): Promise<void> {
    // Discord also sends an update when it adds a link preview.
    if (!message.edited_timestamp) return
    const heard = await this.#hear(message, guildId)
    if (!heard || (await this.#refusal(await this.#speaker(message, heard.facts))) !== undefined) return
    // A command cannot be edited: it has already run.
    if (this.options.host.isCommand(heard.addressed.text)) return
    await this.options.host.onEdit(await this.#read(heard))
  }

  /** Answers `/ask`: in a new thread if it was used in a channel, otherwise where it was used. */
  async ask({ interaction, author, text, isHere = false }: AskCommand): Promise<string> {
    if (text.trim() === '') return 'Write what the agent should do.'
    const { api, host, channels, destinations, opensThreads, onAccepted } = this.options
    const facts = await channels.get(interaction.channel.id, interaction.guild_id)
    const here = this.#placeOf(facts)
    const isThreaded = !isHere && opensThreads && hasThreads(facts.type)
    const place = isThreaded ? inThread(here, facts, (await api.response(interaction)).id) : here
    const acceptance = await host.onMessage({ ...place, platformId: `interaction:${interaction.id}`, author, text })
    if (isThreaded) await destinations.open(place.address, threadName(text))
    if (acceptance.status === 'refused') return 'That was not accepted; the reply says why.'
    onAccepted(acceptance.messageId)
    return `${TAKEN} ${text}`
  }

  async placeOfInteraction({ channel, guild_id }: APIInteraction): Promise<Place> {
    return this.#placeOf(await this.options.channels.get(channel?.id ?? '', guild_id))
  }

  /** Why the person has no access; undefined if they have access. */
  async refusalOf({ channel, guild_id, member, user }: APIInteraction): Promise<string | undefined> {
    const facts = await this.options.channels.get(channel?.id ?? '', guild_id)
    const speaker = speakerOf((member?.user ?? user)?.id ?? '', member?.roles ?? [], facts)
    return this.#refusal(speaker)
  }

  /** Carries out `/allow` or `/disallow`. */
  admit(action: AdmissionAction, person: Named, by: Person): Promise<string> {
    const { host, ownerIds, access } = this.options
    const configuredAs = (id: string): string | undefined => {
      if (ownerIds.includes(id)) return 'my owner'
      return access.users.includes(id) ? 'listed in discordUsers' : undefined
    }
    const mayAdmit = ownerIds.includes(by.id)
    const request = { action, person, by: by.name, mayAdmit, configuredAs, admitters: 'Only my owner' }
    return admit(request, host.admissions)
  }

  async #hear(message: APIMessage, guildId: string | undefined): Promise<Heard | undefined> {
    const { channels, bot } = this.options
    if (!isFromPerson(message)) return undefined
    const facts = await untilAnswered(() => channels.get(message.channel_id, guildId), this.options)
    const addressed = facts && readMessage(message, bot, facts)
    return addressed && { message, facts, addressed }
  }

  async #read({ message, facts, addressed }: Heard): Promise<ChannelMessage> {
    const files = readFiles(message.attachments)
    return {
      ...(await this.#conversation(message, facts, addressed)),
      platformId: message.id,
      author: message.author.username,
      text: addressed.text,
      ...(files.length > 0 && { files }),
    }
  }

  /** A mention in a channel starts a conversation in a thread; a reply to the bot continues in the channel. */
  async #conversation(message: APIMessage, facts: ChannelFacts, { isReplyToBot }: Addressed): Promise<Place> {
    const { host, opensThreads, now } = this.options
    const place = this.#placeOf(facts)
    if (!opensThreads || !hasThreads(facts.type)) return place
    if (!isReplyToBot) return inThread(place, facts, message.id)
    // A conversation whose thread could not be used continues in the channel.
    const about = message.referenced_message?.message_reference?.message_id
    if (about === undefined) return place
    const thread = inThread(place, facts, about)
    const addresses = await host.addresses(now() - KNOWN_CONVERSATIONS_MS)
    return addresses.includes(thread.address) ? thread : place
  }

  async #accept(heard: Heard): Promise<void> {
    const { marks, destinations, onAccepted } = this.options
    const { message, facts, addressed } = heard
    const incoming = await this.#read(heard)
    const acceptance = await this.#retryUntilStopped(() => this.options.host.onMessage(incoming))
    if (acceptance.status === 'duplicate') return
    // A message inside a thread already has one.
    const opened = isThread(facts.type) ? undefined : destinations.open(incoming.address, threadName(addressed.title))
    if (acceptance.status === 'refused') return
    onAccepted(acceptance.messageId)
    // The next message need not wait for these requests to Discord.
    marks.taken(message.channel_id, message.id)
    this.#inBackground(this.#postNotes(message, incoming.address, acceptance.notes, opened))
  }

  async #postNotes(
    { id }: APIMessage,
    address: string,
    notes: string[],
    opened: Promise<unknown> | undefined,
  ): Promise<void> {
    await opened
    const lines = notes.map((note) => `-# ${escapeMarkdown(note)}`).join('\n')
    for (const [index, content] of chunkMarkdown(lines, MESSAGE_CHARACTERS).entries()) {
      const note = { content, nonce: nonceOf(`${id}:notes:${index}`), enforce_nonce: true }
      await untilAnswered(() => this.options.destinations.post(address, { message: note }), this.options)
    }
  }

  #inBackground(work: Promise<void>): void {
    const done = work.catch((error: unknown) => {
      this.options.log.warn('discord.not-told', { error: messageOf(error) })
    })
    this.#background.add(done)
    void done.finally(() => this.#background.delete(done))
  }

  /**
   * For work on the store. Contract: rejects if the gateway stops first; the message is fetched again at the next start.
   */
  async #retryUntilStopped<T>(work: () => Promise<T>): Promise<T> {
    const { signal, log } = this.options
    for (let hasFailed = false; ; hasFailed = true) {
      try {
        return await work()
      } catch (error) {
        if (!hasFailed) log.error('discord.message-not-stored', { error: messageOf(error) })
        await wait(RETRY_MS, { signal })
      }
    }
  }

  async #command({ message, facts, addressed }: Heard, line: string): Promise<void> {
    const { host, log } = this.options
    // Discord may deliver it twice, and to every gateway.
    if (!(await host.claim(`command:${message.id}`))) return
    const place = addressed.isReplyToBot ? await this.#conversation(message, facts, addressed) : this.#placeOf(facts)
    const { id, username: name } = message.author
    const admission = readAdmission(line)
    const answered = admission
      ? this.admit(admission.action, personNamedIn(message, admission.argument, this.options.bot.id), { id, name })
      : host.onCommand(place, name, line)
    const answer = await answered.catch((error: unknown) => {
      log.error('discord.command-failed', { messageId: message.id, error: messageOf(error) })
      return COMMAND_FAILED
    })
    this.#inBackground(this.#say(message, escapeMarkdown(answer), 'answer'))
  }

  /** Rate-limited: someone who writes a lot need not read it every time. */
  #refuse(message: APIMessage, speaker: Speaker, refusal: string): void {
    const { now, log } = this.options
    const key = `${speaker.userId}:${message.channel_id}`
    const last = this.#refusedAt.get(key)
    if (last !== undefined && now() - last < REFUSE_AGAIN_MS) return
    // Strangers must not fill up the memory.
    if (this.#refusedAt.size >= MAX_REFUSED) this.#refusedAt.clear()
    this.#refusedAt.set(key, now())
    log.info('discord.refused', { userId: speaker.userId, channelId: message.channel_id })
    this.#inBackground(this.#say(message, refusal, 'refusal'))
  }

  /** Replies to a message outside its conversation. */
  async #say({ id, channel_id }: APIMessage, text: string, about: string): Promise<void> {
    for (const [index, content] of chunkMarkdown(text, MESSAGE_CHARACTERS).entries()) {
      const nonce = nonceOf(`${id}:${about}:${index}`)
      const message = { content, nonce, enforce_nonce: true, ...referenceTo(id) }
      await untilAnswered(() => this.options.api.post(channel_id, message), this.options)
    }
  }

  /** Why the person may not talk here; undefined if they may. */
  async #refusal(speaker: Speaker): Promise<string | undefined> {
    const { host, access, ownerIds } = this.options
    if (mayTalk(speaker, access, ownerIds)) return undefined
    const isAdmitted = await host.admissions.has(speaker.userId)
    if (mayTalk(speaker, access, ownerIds, { isAdmitted })) return undefined
    return howToGetAccess(speaker, access, { isAdmitted })
  }

  /** Messages that were fetched come without their author's roles. */
  async #speaker(message: APIMessage & { member?: { roles: string[] } }, facts: ChannelFacts): Promise<Speaker> {
    const { author, member } = message
    const { guildId } = facts
    const lacksRoles = member === undefined && guildId !== undefined && this.options.access.roles.length > 0
    return speakerOf(author.id, lacksRoles ? await this.#rolesOf(guildId, author.id) : (member?.roles ?? []), facts)
  }

  async #rolesOf(guildId: string, userId: string): Promise<string[]> {
    const member = await untilAnswered(() => this.options.api.member(guildId, userId), this.options)
    return member?.roles ?? []
  }

  #placeOf(facts: ChannelFacts): Place {
    return placeOf(facts, this.options.projectOf)
  }
}

/** The conversation in the thread of a message. */
function inThread(place: Place, { id }: ChannelFacts, messageId: string): Place {
  return { ...place, address: threadAddress(id, messageId), parent: id }
}

function speakerOf(userId: string, roleIds: string[], { id, parentId, guildId }: ChannelFacts): Speaker {
  return { userId, roleIds, guildId, channelIds: parentId === undefined ? [id] : [parentId, id] }
}
