// The Discord channel: docs/discord.md tells how it looks to people.
//
// What must stay true:
// - A message is stored before anything is said about it, and who may not talk to us leaves nothing in the store.
// - What comes in of one place is dealt with in order; what was missed comes before what is new.
// - What we say can be found again in Discord itself after a restart: the parts of an answer by their nonce and text, a
//   live message and a question by their buttons.

import { Lanes, within } from '../../core/async.js'
import { GatewayDispatchEvents, type GatewayDispatchPayload } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { ButtonAction, Channel, ChannelHost, EndedQuestion, LiveEvent, OutgoingReply } from '../types.js'
import type { AccessLists } from './access.js'
import { codeOf, DiscordApi } from './api.js'
import { hasButton } from './buttons.js'
import { CatchUp } from './catch-up.js'
import { Connection } from './connection.js'
import { Cursor } from './cursor.js'
import { Destinations } from './destinations.js'
import { type Identity, ownersOf } from './identity.js'
import { Intake } from './intake.js'
import { Interactions, slashCommands } from './interactions.js'
import { LiveMessage, type Posted, removeMessage } from './live-message.js'
import { PostedParts, postReply } from './outgoing.js'
import { Places } from './places.js'
import { renderForDiscord } from './render.js'

export interface DiscordOptions {
  token: string
  apiUrl: string
  /** Left out, the owner of the application. */
  ownerId?: string
  access: AccessLists
  /** Whether a mention in a channel opens a thread. */
  opensThreads: boolean
  /** The project of a channel. */
  projectOf(channelId: string): string | undefined
  log: Log
  now: () => number
}

/** What there is once Discord has told who we are. */
interface Session {
  host: ChannelHost
  identity: Identity
  cursor: Cursor
  catchUp: CatchUp
  intake: Intake
  interactions: Interactions
}

/** Without a network the gateway starts all the same. */
const START_WITHIN_MS = 20_000
/** A live message whose answer another gateway has sent goes after so long, if that one did not see it. */
const REMOVE_LIVE_MS = 60_000
const MAX_TAKEN = 10_000
/** Discord does not like bots that write to many people first. */
const MAX_DIRECT_USERS = 10
const CLOSE_WITHIN_MS = 2_000

export class DiscordChannel implements Channel {
  readonly name = 'discord'
  readonly takesFiles = true
  readonly #api: DiscordApi
  readonly #places: Places
  readonly #destinations: Destinations
  readonly #connection: Connection
  readonly #lanes = new Lanes()
  readonly #stopped = new AbortController()
  /** Messages that this gateway has taken: what is live about them is our own. */
  readonly #taken = new Set<string>()
  readonly #live = new Map<string, LiveMessage>()
  readonly #forgetting = new Map<string, NodeJS.Timeout>()
  /** The last words of live messages, on their way. */
  readonly #ending = new Set<Promise<void>>()
  readonly #posted = new PostedParts()
  readonly #ownRoleIds = new Set<string>()
  #session: Session | undefined

  constructor(private readonly options: DiscordOptions) {
    const { apiUrl, token, log } = options
    this.#api = new DiscordApi(apiUrl, token)
    this.#places = new Places(this.#api)
    this.#destinations = new Destinations(this.#api, log)
    const onDispatch = (payload: GatewayDispatchPayload): void => {
      try {
        this.#dispatch(payload)
      } catch (error) {
        log.error('discord.event-failed', { event: payload.t, error: messageOf(error) })
      }
    }
    this.#connection = new Connection({ api: this.#api, apiUrl, token, onDispatch, log })
  }

  async start(host: ChannelHost): Promise<void> {
    const { log } = this.options
    const connected = this.#connect(host)
    connected.catch((error: unknown) => {
      if (!this.#stopped.signal.aborted) log.error('discord.not-started', { error: messageOf(error) })
    })
    await within(START_WITHIN_MS, connected)
  }

  async send(reply: OutgoingReply, signal: AbortSignal): Promise<void> {
    const { now } = this.options
    const { messageId = '', address } = reply
    const session = this.#session
    if (!session) throw new Error('Discord has not been reached yet')
    const live = this.#live.get(messageId)
    live?.stop()
    await postReply(reply, {
      api: this.#api,
      destinations: this.#destinations,
      host: session.host,
      posted: this.#posted,
      botId: session.identity.user.id,
      signal,
      now,
    })
    await live?.remove()
    const leftovers = live && !live.isUnsure ? [] : await this.#leftovers(address, messageId)
    for (const leftover of leftovers) await removeMessage(this.#api, leftover)
    this.#forget(messageId)
    this.#taken.delete(messageId)
  }

  show({ address, messageId, runId, event }: LiveEvent): void {
    const live = this.#live.get(messageId) ?? this.#begin(address, messageId)
    clearTimeout(this.#forgetting.get(messageId))
    live.show(runId, event)
    if (event.type !== 'complete') return
    const isCancelled = event.result.failure?.reason === 'cancelled'
    if (isCancelled && this.#stopped.signal.aborted) {
      this.#end(messageId, live.pause('⏸ goes on when the gateway is back'))
      return
    }
    // Of one that was stopped `forget` tells; else another gateway goes on with it, and with its live message.
    if (isCancelled) live.stop()
    const letGo = isCancelled ? (): void => this.#forget(messageId) : (): void => this.#end(messageId, live.remove())
    this.#forgetting.set(messageId, setTimeout(letGo, REMOVE_LIVE_MS).unref())
  }

  forget(address: string, messageId: string): void {
    const live = this.#live.get(messageId) ?? this.#begin(address, messageId)
    this.#end(messageId, live.end('⏹ stopped'))
  }

  async endQuestion({ id, address, text }: EndedQuestion): Promise<void> {
    const content = renderForDiscord(text).text
    for (const posted of await this.#withButton(address, 'deny', id)) {
      await this.#api.edit(posted.channel_id, posted.id, { content, components: [] }).catch(unlessRefused)
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    // What is not done by then is asked for at the next start.
    await within(CLOSE_WITHIN_MS, Promise.all([this.#lanes.idle(), this.#session?.intake.idle()]))
    await this.#session?.cursor.close()
  }

  async close(): Promise<void> {
    await within(CLOSE_WITHIN_MS, Promise.all(this.#ending))
    await this.#connection.close()
    for (const live of this.#live.values()) live.stop()
  }

  async #connect(host: ChannelHost): Promise<void> {
    const identity = await this.#connection.identify(this.#stopped.signal)
    this.#session = await this.#open(host, identity)
    await this.#connection.open()
    if (this.#stopped.signal.aborted) return
    await this.#api.setCommands(identity.application.id, slashCommands(host.commands())).catch((error: unknown) => {
      this.options.log.warn('discord.commands-not-set', { error: messageOf(error) })
    })
  }

  async #open(host: ChannelHost, identity: Identity): Promise<Session> {
    const { ownerId, access, log, now } = this.options
    const api = this.#api
    const { signal } = this.#stopped
    const ownerIds = ownerId === undefined ? ownersOf(identity.application).map(({ id }) => id) : [ownerId]
    const cursor = new Cursor(host, now, (error) => log.warn('discord.cursor-not-saved', { error: messageOf(error) }))
    await cursor.load()
    const intake = new Intake({
      ...this.options,
      api,
      host,
      places: this.#places,
      destinations: this.#destinations,
      bot: { id: identity.user.id, roleIds: this.#ownRoleIds },
      ownerIds,
      onTaken: (messageId) => this.#take(messageId),
      signal,
    })
    const catchUp = new CatchUp({
      api,
      host,
      cursor,
      inLane: (channelId, work) => this.#inLane(channelId, work),
      directUserIds: [...new Set([...ownerIds, ...access.users])].slice(0, MAX_DIRECT_USERS),
      onMissed: (message, guildId) => intake.onMessage(message, guildId, true),
      signal,
      log,
      now,
    })
    const interactions = new Interactions({
      api,
      host,
      refusalOf: (interaction) => intake.refusalOf(interaction),
      placeOf: (interaction) => intake.placeOfInteraction(interaction),
      ask: (asked) => intake.ask(asked),
      log,
    })
    return { host, identity, cursor, catchUp, intake, interactions }
  }

  /** What happens in one place is dealt with in order. Contract: never rejects. */
  async #inLane(channelId: string, work: () => Promise<void>): Promise<void> {
    await this.#lanes.run(channelId, work).catch((error: unknown) => {
      if (this.#stopped.signal.aborted) return
      this.options.log.error('discord.message-failed', { error: messageOf(error) })
    })
  }

  #dispatch(payload: GatewayDispatchPayload): void {
    const session = this.#session
    if (!session || this.#stopped.signal.aborted) return
    const { catchUp, intake, interactions, cursor, host } = session
    switch (payload.t) {
      case GatewayDispatchEvents.Ready:
        catchUp.begin(payload.d.guilds.map(({ id }) => id))
        break
      case GatewayDispatchEvents.GuildCreate: {
        if (payload.d.unavailable) break
        const { id, channels, threads, roles } = payload.d
        for (const channel of [...channels, ...threads]) this.#places.learn(channel, id)
        for (const role of roles) if (role.tags?.bot_id === session.identity.user.id) this.#ownRoleIds.add(role.id)
        catchUp.server(payload.d)
        break
      }
      case GatewayDispatchEvents.ThreadCreate:
      case GatewayDispatchEvents.ChannelCreate:
        this.#places.learn(payload.d)
        break
      case GatewayDispatchEvents.ThreadDelete:
      case GatewayDispatchEvents.ChannelDelete:
        this.#places.forget(payload.d.id)
        break
      case GatewayDispatchEvents.MessageCreate: {
        const message = payload.d
        cursor.begin(message.id)
        void this.#inLane(message.channel_id, () => intake.onMessage(message, message.guild_id)).finally(() => {
          // One that could not be stored is asked for at the next start.
          if (!this.#stopped.signal.aborted) cursor.end(message.id)
        })
        break
      }
      case GatewayDispatchEvents.MessageUpdate: {
        const message = payload.d
        void this.#inLane(message.channel_id, () => intake.onEdit(message, message.guild_id))
        break
      }
      case GatewayDispatchEvents.MessageDelete:
      case GatewayDispatchEvents.MessageDeleteBulk: {
        const { channel_id } = payload.d
        const ids = 'ids' in payload.d ? payload.d.ids : [payload.d.id]
        for (const id of ids) void this.#inLane(channel_id, () => host.onDelete(id))
        break
      }
      case GatewayDispatchEvents.InteractionCreate:
        void interactions.handle(payload.d)
        break
      default:
    }
  }

  #take(messageId: string): void {
    this.#taken.add(messageId)
    // Those of which we do not hear again: another gateway answers them, or they are dropped.
    const [oldest] = this.#taken
    if (this.#taken.size > MAX_TAKEN && oldest !== undefined) this.#taken.delete(oldest)
  }

  #begin(address: string, messageId: string): LiveMessage {
    const live = new LiveMessage({
      api: this.#api,
      destinations: this.#destinations,
      address,
      messageId,
      leftover: async () => (this.#taken.has(messageId) ? [] : await this.#leftovers(address, messageId)).at(-1),
      log: this.options.log,
      now: this.options.now,
    })
    this.#live.set(messageId, live)
    return live
  }

  #end(messageId: string, ended: Promise<void>): void {
    this.#forget(messageId)
    this.#taken.delete(messageId)
    const told = ended.catch((error: unknown) => {
      this.options.log.warn('discord.live-failed', { messageId, error: messageOf(error) })
    })
    this.#ending.add(told)
    void told.finally(() => this.#ending.delete(told))
  }

  #forget(messageId: string): void {
    clearTimeout(this.#forgetting.get(messageId))
    this.#forgetting.delete(messageId)
    this.#live.get(messageId)?.stop()
    this.#live.delete(messageId)
  }

  /** The live messages of a message that another gateway, or we before a restart, had begun to answer. */
  #leftovers(address: string, messageId: string): Promise<Posted[]> {
    return this.#withButton(address, 'stop', messageId)
  }

  async #withButton(address: string, action: ButtonAction, id: string): Promise<Posted[]> {
    try {
      const messages = await this.#api.latestMessages(await this.#destinations.channelId(address))
      return messages.filter((message) => hasButton(message, action, id))
    } catch (error) {
      // Gone, or closed to us.
      if (codeOf(error) !== undefined) return []
      throw error
    }
  }
}

/** What Discord does not let us change, because it is gone or closed, stays as it is. */
function unlessRefused(error: unknown): void {
  if (codeOf(error) === undefined) throw error
}
