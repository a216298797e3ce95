// The Discord channel. docs/discord.md describes how it looks to people.
//
// Invariants:
// - A message is stored before anything is said about it, and people without access leave nothing in the store.
// - Messages of one channel are handled in order; missed ones come before new ones.
// - Whatever we post can be found again in Discord itself after a restart: the parts of an answer by their nonce and
//   text, a progress message or a question by its buttons.

import { Lanes, within } from '../../core/async.js'
import { GatewayDispatchEvents, type GatewayDispatchPayload } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type {
  ButtonAction,
  Channel,
  ChannelHost,
  EndedQuestion,
  Forgotten,
  LiveEvent,
  NextAttempt,
  OutgoingReply,
} from '../types.js'
import type { AccessLists } from './access.js'
import { codeOf, DiscordApi } from './api.js'
import { hasButton } from './buttons.js'
import { CatchUp } from './catch-up.js'
import { DiscordConnection } from './connection.js'
import { Cursor } from './cursor.js'
import { ChannelCache, Destinations } from './destinations.js'
import { type Identity, ownersOf } from './identity.js'
import { Intake } from './intake.js'
import { Interactions, slashCommands } from './interactions.js'
import { ProgressMessage, type Posted, removeMessage } from './progress-message.js'
import { Marks } from './marks.js'
import { PostedParts, postReply } from './outgoing.js'
import { renderForDiscord } from './render.js'

export interface DiscordOptions {
  token: string
  apiUrl: string
  /** Defaults to the owner of the application. */
  ownerId: string | undefined
  access: AccessLists
  /** Whether a mention in a channel opens a thread. */
  opensThreads: boolean
  /** Whether a small line below an answer shows its model, time and cost. */
  hasFooter: boolean
  projectOf(channelId: string): string | undefined
  log: Log
  now: () => number
}

/** Everything that exists once Discord has told us who we are. */
interface ChannelState {
  host: ChannelHost
  identity: Identity
  cursor: Cursor
  catchUp: CatchUp
  intake: Intake
  interactions: Interactions
}

/** Without a network the gateway starts anyway. */
const START_WITHIN_MS = 20_000
/** A progress message whose answer another gateway sent is removed after this long, if that gateway did not see it. */
const REMOVE_PROGRESS_MS = 60_000
const MAX_ACCEPTED = 10_000
/** Discord frowns on bots that open conversations with many people. */
const MAX_DIRECT_USERS = 10
const CLOSE_WITHIN_MS = 2_000

export class DiscordChannel implements Channel {
  readonly name = 'discord'
  readonly takesFiles = true
  readonly offersAnswers = true
  readonly takesEdits = true
  readonly showsOutcomes = true
  readonly #api: DiscordApi
  readonly #channels: ChannelCache
  readonly #destinations: Destinations
  readonly #marks: Marks
  readonly #connection: DiscordConnection
  readonly #lanes = new Lanes()
  readonly #stopped = new AbortController()
  /** Messages this gateway accepted: their progress messages are our own. */
  readonly #accepted = new Set<string>()
  readonly #progress = new Map<string, ProgressMessage>()
  readonly #removalTimers = new Map<string, NodeJS.Timeout>()
  /** The final edits of progress messages, still under way. */
  readonly #finalEdits = new Set<Promise<void>>()
  readonly #posted = new PostedParts()
  readonly #ownRoleIds = new Set<string>()
  #state: ChannelState | undefined

  constructor(private readonly options: DiscordOptions) {
    const { apiUrl, token, log, now } = options
    this.#api = new DiscordApi(apiUrl, token)
    this.#channels = new ChannelCache(this.#api)
    this.#destinations = new Destinations(this.#api, log)
    this.#marks = new Marks(this.#api, log, now)
    const onDispatch = (payload: GatewayDispatchPayload): void => {
      try {
        this.#dispatch(payload)
      } catch (error) {
        log.error('discord.event-failed', { event: payload.t, error: messageOf(error) })
      }
    }
    this.#connection = new DiscordConnection({ api: this.#api, apiUrl, token, onDispatch, log })
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
    const { now, hasFooter } = this.options
    const { messageId = '', address } = reply
    const state = this.#state
    if (!state) throw new Error('Discord has not been reached yet')
    const progress = this.#progress.get(messageId)
    progress?.stop()
    const { footer: _, ...bare } = reply
    await postReply(hasFooter ? reply : bare, {
      api: this.#api,
      destinations: this.#destinations,
      host: state.host,
      posted: this.#posted,
      botId: state.identity.user.id,
      signal,
      now,
    })
    await progress?.remove()
    const leftovers = progress && !progress.isUnsure ? [] : await this.#leftovers(address, messageId)
    for (const leftover of leftovers) await removeMessage(this.#api, leftover)
    this.#forget(messageId)
    this.#accepted.delete(messageId)
    this.#mark(reply)
  }

  /** A question or a wait for a limit does not end the message. */
  #mark({
    address,
    messageId,
    platformId,
    alsoAnswers = [],
    wasRetried,
    isError,
    question,
    waitsUntil,
  }: OutgoingReply): void {
    if (messageId === undefined || question || waitsUntil !== undefined) return
    this.#marks.ended(address, [platformId, ...alsoAnswers], isError ? 'failed' : 'answered', wasRetried)
  }

  show({ address, messageId, runId, event }: LiveEvent): void {
    const progress = this.#progress.get(messageId) ?? this.#startProgress(address, messageId)
    clearTimeout(this.#removalTimers.get(messageId))
    progress.show(runId, event)
    if (event.type !== 'complete') return
    const isCancelled = event.result.failure?.reason === 'cancelled'
    if (isCancelled && this.#stopped.signal.aborted) {
      this.#finish(messageId, progress.pause('⏸ resumes when the gateway is back'))
      return
    }
    // If it was stopped, `forget` is called; otherwise another gateway takes it over, along with its progress message.
    if (isCancelled) progress.stop()
    const discard = isCancelled
      ? (): void => this.#forget(messageId)
      : (): void => this.#finish(messageId, progress.remove())
    this.#removalTimers.set(messageId, setTimeout(discard, REMOVE_PROGRESS_MS).unref())
  }

  retry(next: NextAttempt): void {
    this.#progress.get(next.messageId)?.retry(next)
  }

  forget({ address, messageId, platformIds }: Forgotten): void {
    this.#marks.ended(address, platformIds, 'stopped')
    const progress = this.#progress.get(messageId) ?? this.#startProgress(address, messageId)
    this.#finish(messageId, progress.end('⏹ stopped'))
  }

  async endQuestion({ id, address, text }: EndedQuestion): Promise<void> {
    const content = renderForDiscord(text).text
    for (const posted of await this.#findByButton(address, 'deny', id)) {
      await this.#api.edit(posted.channel_id, posted.id, { content, components: [] }).catch(ignoreRefusal)
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    // Whatever is unfinished by then is fetched at the next start.
    await within(CLOSE_WITHIN_MS, Promise.all([this.#lanes.idle(), this.#state?.intake.idle()]))
    await this.#state?.cursor.close()
  }

  async close(): Promise<void> {
    await within(CLOSE_WITHIN_MS, Promise.all([...this.#finalEdits, this.#marks.idle()]))
    await this.#connection.close()
    for (const progress of this.#progress.values()) progress.stop()
  }

  async #connect(host: ChannelHost): Promise<void> {
    const identity = await this.#connection.identify(this.#stopped.signal)
    this.#state = await this.#open(host, identity)
    await this.#connection.open()
    if (this.#stopped.signal.aborted) return
    await this.#api.setCommands(identity.application.id, slashCommands(host.commands())).catch((error: unknown) => {
      this.options.log.warn('discord.commands-not-set', { error: messageOf(error) })
    })
  }

  async #open(host: ChannelHost, identity: Identity): Promise<ChannelState> {
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
      channels: this.#channels,
      destinations: this.#destinations,
      marks: this.#marks,
      bot: { id: identity.user.id, roleIds: this.#ownRoleIds },
      ownerIds,
      onAccepted: (messageId) => this.#markAccepted(messageId),
      signal,
    })
    const catchUp = new CatchUp({
      api,
      host,
      cursor,
      inLane: (channelId, work) => this.#inLane(channelId, work),
      directUserIds: async () => {
        const admitted = (await host.admissions.list()).map(({ personId }) => personId)
        return [...new Set([...ownerIds, ...access.users, ...admitted])].slice(0, MAX_DIRECT_USERS)
      },
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
      ask: (command) => intake.ask(command),
      admit: (action, person, by) => intake.admit(action, person, by),
      log,
    })
    return { host, identity, cursor, catchUp, intake, interactions }
  }

  /** Handles what happens in one channel in order. Contract: never rejects. */
  async #inLane(channelId: string, work: () => Promise<void>): Promise<void> {
    await this.#lanes.run(channelId, work).catch((error: unknown) => {
      if (this.#stopped.signal.aborted) return
      this.options.log.error('discord.message-failed', { error: messageOf(error) })
    })
  }

  #dispatch(payload: GatewayDispatchPayload): void {
    const state = this.#state
    if (!state) return
    if (this.#stopped.signal.aborted) {
      if (payload.t === GatewayDispatchEvents.InteractionCreate) void state.interactions.decline(payload.d)
      return
    }
    const { catchUp, intake, interactions, cursor, host } = state
    switch (payload.t) {
      case GatewayDispatchEvents.Ready:
        catchUp.begin(payload.d.guilds.map(({ id }) => id))
        break
      case GatewayDispatchEvents.GuildCreate: {
        if (payload.d.unavailable) break
        const { id, channels, threads, roles } = payload.d
        for (const channel of [...channels, ...threads]) this.#channels.learn(channel, id)
        for (const role of roles) if (role.tags?.bot_id === state.identity.user.id) this.#ownRoleIds.add(role.id)
        catchUp.server(payload.d)
        break
      }
      case GatewayDispatchEvents.ThreadCreate:
      case GatewayDispatchEvents.ChannelCreate:
        this.#channels.learn(payload.d)
        break
      case GatewayDispatchEvents.ThreadDelete:
      case GatewayDispatchEvents.ChannelDelete:
        this.#channels.forget(payload.d.id)
        break
      case GatewayDispatchEvents.MessageCreate: {
        const message = payload.d
        cursor.begin(message.id)
        void this.#inLane(message.channel_id, () => intake.onMessage(message, message.guild_id)).finally(() => {
          // A message that could not be stored is fetched at the next start.
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

  #markAccepted(messageId: string): void {
    this.#accepted.add(messageId)
    // Some are never heard of again: another gateway answers them, or they are dropped.
    const [oldest] = this.#accepted
    if (this.#accepted.size > MAX_ACCEPTED && oldest !== undefined) this.#accepted.delete(oldest)
  }

  #startProgress(address: string, messageId: string): ProgressMessage {
    const progress = new ProgressMessage({
      api: this.#api,
      destinations: this.#destinations,
      address,
      messageId,
      leftover: async () => (this.#accepted.has(messageId) ? [] : await this.#leftovers(address, messageId)).at(-1),
      log: this.options.log,
      now: this.options.now,
    })
    this.#progress.set(messageId, progress)
    return progress
  }

  #finish(messageId: string, ended: Promise<void>): void {
    this.#forget(messageId)
    this.#accepted.delete(messageId)
    const settled = ended.catch((error: unknown) => {
      this.options.log.warn('discord.live-failed', { messageId, error: messageOf(error) })
    })
    this.#finalEdits.add(settled)
    void settled.finally(() => this.#finalEdits.delete(settled))
  }

  #forget(messageId: string): void {
    clearTimeout(this.#removalTimers.get(messageId))
    this.#removalTimers.delete(messageId)
    this.#progress.get(messageId)?.stop()
    this.#progress.delete(messageId)
  }

  /** Progress messages for a message that another gateway, or we before a restart, had begun to answer. */
  #leftovers(address: string, messageId: string): Promise<Posted[]> {
    return this.#findByButton(address, 'stop', messageId)
  }

  async #findByButton(address: string, action: ButtonAction, id: string): Promise<Posted[]> {
    try {
      const messages = await this.#api.latestMessages(await this.#destinations.channelId(address))
      return messages.filter((message) => hasButton(message, action, id))
    } catch (error) {
      // Gone, or no longer accessible.
      if (codeOf(error) !== undefined) return []
      throw error
    }
  }
}

/** A message Discord will not let us edit, because it or its channel is gone or closed, stays as it is. */
function ignoreRefusal(error: unknown): void {
  if (codeOf(error) === undefined) throw error
}
