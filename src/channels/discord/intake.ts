// What people say to the bot, on its way to the gateway.

import { wait } from '../../core/async.js'
import { type APIInteraction, type APIMessage, escapeMarkdown } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { chunkMarkdown } from '../chunk.js'
import { COMMAND_FAILED } from '../command-failed.js'
import type { Acceptance, ChannelHost, ChannelMessage, Place } from '../types.js'
import { type AccessLists, howToOpen, mayTalk, type Speaker } from './access.js'
import type { DiscordApi } from './api.js'
import type { Destinations } from './destinations.js'
import { type Addressed, type BotIdentity, isFromPerson, readFiles, readMessage, threadName } from './incoming.js'
import type { Asked } from './interactions.js'
import { MESSAGE_CHARACTERS, nonceOf, referenceTo } from './outgoing.js'
import { hasThreads, isThread, placeOf, type PlaceFacts, type Places, threadAddress } from './places.js'
import { untilAnswered } from './until-answered.js'

export interface IntakeOptions {
  api: DiscordApi
  host: ChannelHost
  places: Places
  destinations: Destinations
  bot: BotIdentity
  ownerIds: string[]
  access: AccessLists
  /** Whether a mention in a channel opens a thread. */
  opensThreads: boolean
  projectOf(channelId: string): string | undefined
  onTaken(messageId: string): void
  /** Aborted when nothing more is taken. */
  signal: AbortSignal
  log: Log
  now: () => number
}

type Heard = { message: APIMessage; facts: PlaceFacts; addressed: Addressed }

const TAKEN = '👀'
const REFUSE_AGAIN_MS = 3_600_000
const MAX_REFUSED = 10_000
const AGAIN_MS = 1_000
const KNOWN_CONVERSATIONS_MS = 7 * 24 * 3_600_000

export class Intake {
  readonly #refusedAt = new Map<string, number>()
  /** What is still to be told of messages that are safe. */
  readonly #following = new Set<Promise<void>>()

  constructor(private readonly options: IntakeOptions) {}

  /** Settles when nothing is on its way. */
  async idle(): Promise<void> {
    await Promise.all(this.#following)
  }

  /** `isMissed`: said while we were away. */
  async onMessage(message: APIMessage, guildId: string | undefined, isMissed = false): Promise<void> {
    const heard = await this.#hear(message, guildId)
    if (!heard) return
    const speaker = await this.#speaker(message, heard.facts)
    if (!this.#mayTalk(speaker)) {
      if (!isMissed) this.#refuse(message, speaker)
      return
    }
    const { text } = heard.addressed
    // Who only calls us wants to know what we can do.
    const isBare = text === '' && message.attachments.length === 0
    if (isBare) await this.#command(heard, '/help')
    else if (this.options.host.isCommand(text)) await this.#command(heard, text)
    else await this.#take(heard)
  }

  async onEdit(message: APIMessage, guildId: string | undefined): Promise<void> {
    // Discord updates a message also when it shows what a link leads to.
    if (!message.edited_timestamp) return
    const heard = await this.#hear(message, guildId)
    if (!heard || !this.#mayTalk(await this.#speaker(message, heard.facts))) return
    // A command is for us, and comes too late for it here.
    if (this.options.host.isCommand(heard.addressed.text)) return
    await this.options.host.onEdit(await this.#read(heard))
  }

  /** Answers `/ask`: with a thread of its own in a channel, else where it was said. */
  async ask({ interaction, author, text }: Asked): Promise<string> {
    if (text.trim() === '') return 'Write what the agent should do.'
    const { api, host, places, destinations, opensThreads, onTaken } = this.options
    const facts = await places.get(interaction.channel.id, interaction.guild_id)
    const { projectId } = this.#placeOf(facts)
    const isThreaded = opensThreads && hasThreads(facts.type)
    const place: Place = isThreaded
      ? {
          address: threadAddress(facts.id, (await api.response(interaction)).id),
          parent: facts.id,
          ...(projectId !== undefined && { projectId }),
        }
      : this.#placeOf(facts)
    const acceptance = await host.onMessage({ ...place, platformId: `interaction:${interaction.id}`, author, text })
    if (isThreaded) await destinations.open(place.address, threadName(text))
    if (acceptance.status === 'refused') return 'That was not taken; the answer says why.'
    onTaken(acceptance.messageId)
    return `${TAKEN} ${text}`
  }

  async placeOfInteraction({ channel, guild_id }: APIInteraction): Promise<Place> {
    return this.#placeOf(await this.options.places.get(channel?.id ?? '', guild_id))
  }

  /** Why somebody may not; undefined when they may. */
  async refusalOf({ channel, guild_id, member, user }: APIInteraction): Promise<string | undefined> {
    const facts = await this.options.places.get(channel?.id ?? '', guild_id)
    const speaker = speakerOf((member?.user ?? user)?.id ?? '', member?.roles ?? [], facts)
    return this.#mayTalk(speaker) ? undefined : howToOpen(speaker, this.options.access)
  }

  async #hear(message: APIMessage, guildId: string | undefined): Promise<Heard | undefined> {
    const { places, bot } = this.options
    if (!isFromPerson(message)) return undefined
    const facts = await untilAnswered(() => places.get(message.channel_id, guildId), this.options)
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

  /** A mention in a channel begins a conversation in a thread; a reply to what the bot said there goes on in the channel. */
  async #conversation(message: APIMessage, facts: PlaceFacts, { isReplyToBot }: Addressed): Promise<Place> {
    const { host, opensThreads, now } = this.options
    const place = this.#placeOf(facts)
    if (!opensThreads || !hasThreads(facts.type)) return place
    if (!isReplyToBot) return { ...place, address: threadAddress(facts.id, message.id), parent: facts.id }
    // What was to be answered in a thread, and could not, goes on beside it.
    const about = message.referenced_message?.message_reference?.message_id
    const address = about === undefined ? undefined : threadAddress(facts.id, about)
    const addresses = address === undefined ? [] : await host.addresses(now() - KNOWN_CONVERSATIONS_MS)
    return address !== undefined && addresses.includes(address) ? { ...place, address, parent: facts.id } : place
  }

  async #take(heard: Heard): Promise<void> {
    const { api, destinations, onTaken } = this.options
    const { message, facts, addressed } = heard
    const taken = await this.#read(heard)
    const acceptance = await this.#untilStored(taken)
    if (!acceptance || acceptance.status === 'duplicate') return
    // What is said in a thread has one.
    const opened = isThread(facts.type) ? undefined : destinations.open(taken.address, threadName(addressed.title))
    if (acceptance.status === 'refused') return
    onTaken(acceptance.messageId)
    // The next message need not wait for what Discord makes of this one.
    this.#follow(api.react(message.channel_id, message.id, TAKEN))
    this.#follow(this.#note(message, taken.address, acceptance.notes, opened))
  }

  async #note(
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

  #follow(work: Promise<void>): void {
    const done = work.catch((error: unknown) => {
      this.options.log.warn('discord.not-told', { error: messageOf(error) })
    })
    this.#following.add(done)
    void done.finally(() => this.#following.delete(done))
  }

  /** Contract: undefined when the gateway stops first; Discord is asked for the message again at the next start. */
  async #untilStored(message: ChannelMessage): Promise<Acceptance | undefined> {
    const { host, signal, log } = this.options
    for (let hasFailed = false; ; hasFailed = true) {
      try {
        return await host.onMessage(message)
      } catch (error) {
        if (!hasFailed) log.error('discord.message-not-stored', { error: messageOf(error) })
        await wait(AGAIN_MS, { signal })
      }
    }
  }

  async #command({ message, facts, addressed }: Heard, line: string): Promise<void> {
    const { host, log } = this.options
    // Discord may deliver it twice, and to each gateway.
    if (!(await host.claim(`command:${message.id}`))) return
    const place = addressed.isReplyToBot ? await this.#conversation(message, facts, addressed) : this.#placeOf(facts)
    const answer = await host.onCommand(place, message.author.username, line).catch((error: unknown) => {
      log.error('discord.command-failed', { messageId: message.id, error: messageOf(error) })
      return COMMAND_FAILED
    })
    this.#follow(this.#say(message, escapeMarkdown(answer), 'answer'))
  }

  /** Now and then: who writes a lot need not read it each time. */
  #refuse(message: APIMessage, speaker: Speaker): void {
    const { now, log } = this.options
    const key = `${speaker.userId}:${message.channel_id}`
    const last = this.#refusedAt.get(key)
    if (last !== undefined && now() - last < REFUSE_AGAIN_MS) return
    // Strangers must not fill the memory.
    if (this.#refusedAt.size >= MAX_REFUSED) this.#refusedAt.clear()
    this.#refusedAt.set(key, now())
    log.info('discord.refused', { userId: speaker.userId, channelId: message.channel_id })
    this.#follow(this.#say(message, howToOpen(speaker, this.options.access), 'refusal'))
  }

  /** Answers a message outside of its conversation. */
  async #say({ id, channel_id }: APIMessage, text: string, about: string): Promise<void> {
    for (const [index, content] of chunkMarkdown(text, MESSAGE_CHARACTERS).entries()) {
      const nonce = nonceOf(`${id}:${about}:${index}`)
      const message = { content, nonce, enforce_nonce: true, ...referenceTo(id) }
      await untilAnswered(() => this.options.api.post(channel_id, message), this.options)
    }
  }

  #mayTalk(speaker: Speaker): boolean {
    return mayTalk(speaker, this.options.access, this.options.ownerIds)
  }

  /** Messages that were asked for come without the roles of their author. */
  async #speaker(message: APIMessage & { member?: { roles: string[] } }, facts: PlaceFacts): Promise<Speaker> {
    const { author, member } = message
    const { guildId } = facts
    const isAsked = member === undefined && guildId !== undefined && this.options.access.roles.length > 0
    return speakerOf(author.id, isAsked ? await this.#rolesOf(guildId, author.id) : (member?.roles ?? []), facts)
  }

  async #rolesOf(guildId: string, userId: string): Promise<string[]> {
    const member = await untilAnswered(() => this.options.api.member(guildId, userId), this.options)
    return member?.roles ?? []
  }

  #placeOf(facts: PlaceFacts): Place {
    return placeOf(facts, this.options.projectOf)
  }
}

function speakerOf(userId: string, roleIds: string[], { id, parentId, guildId }: PlaceFacts): Speaker {
  return {
    userId,
    roleIds,
    ...(guildId !== undefined && { guildId }),
    channelIds: [...(parentId === undefined ? [] : [parentId]), id],
  }
}
