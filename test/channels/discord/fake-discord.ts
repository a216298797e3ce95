/**
 * A Discord on loopback, to which the unmodified discord.js client logs in: the HTTP API (version 10), the gateway
 * socket and the file downloads, on one port. It keeps everything in memory, validates requests as Discord does, and
 * can fail in the ways Discord fails.
 *
 * ```ts
 * const discord = await FakeDiscord.start()
 * const guild = discord.addGuild()
 * const channel = discord.addChannel(guild)
 * const ada = discord.addUser('ada')
 * // … log in with `discord.token` at `discord.apiUrl` …
 * await discord.waitFor(() => discord.isConnected)
 * const message = discord.say(ada, channel.id, 'hello', { mentions: [discord.bot] })
 * const thread = await discord.waitFor(() => discord.threadOf(message.id))
 * await discord.waitFor(() => discord.textsIn(thread.id).includes('the answer'))
 * await discord.stop()
 * ```
 *
 * Times are in milliseconds.
 *
 * **Start and stop**: `FakeDiscord.start(): Promise<FakeDiscord>`, `stop(): Promise<void>`, `apiUrl` (ends with
 * `/api`), `token`.
 *
 * **World** (each change is also sent to the connected client):
 * - `bot`, `owner`: users. `applicationFlags`: which privileged intents are on; message content is by default.
 *   `makeTeam(users)`: the application belongs to a team.
 * - `addUser(name, { isBot? }): APIUser`; `addGuild({ name?, everyone?, botPermissions? }): FakeGuild`; `addRole(guild,
 *   name, { users?, permissions? }): APIRole`; `addChannel(guild, { name?, type?, parentId?, topic?, overwrites? }):
 *   FakeChannel`; `deleteChannel(channelId)`.
 * - `deny(channelId, permissions)`: takes permissions (`PermissionFlagsBits`) from the bot there; `0n` gives them back.
 * - `directChannel(user): FakeChannel`; `openThread(user, channelId, name, { from?, content? }): FakeChannel`: a
 *   person's thread, from a message, or in a forum with the first message; `archive(threadId, { isLocked? })`.
 *
 * **People**:
 * - `say(user, channelId, content, { mentions?, replyTo?, isReplyPinged?, attachments? }): APIMessage`. `mentions` puts
 *   `<@id>` before the content. `attachments` are `{ name, content, type? }`.
 * - `edit(message, content): APIMessage`, `delete(message)`, `react(user, message, emoji)`.
 * - `slash(user, channelId, name, options?): InteractionHandle`, `press(user, message, customId): InteractionHandle`,
 *   `autocomplete(user, channelId, name, option, typed, others?): Promise<Choice[]>`. The command must have been
 *   registered. The handle has `answer(): Promise<string>` (the final text the person sees, once it has
 *   loaded), `acknowledged()`, `callback`, `response`, `isEphemeral`, `followUps`.
 *
 * **What exists**: `messagesIn(channelId): APIMessage[]` (oldest first, without Discord's own), `textsIn(channelId):
 * string[]` (the contents of the bot's), `message(id)`, `threadOf(messageId): FakeChannel | undefined`,
 * `threadsIn(channelId)`, `reactionsOn(messageId): string[]` (the bot's), `buttonsOf(message): string[]` (custom ids),
 * `typing`, `commands`, `requests: LoggedRequest[]` and `requestsTo('POST /channels/:id/messages')`: each has `method`,
 * `route`, `path`, `query`, `body`, `files`, `at`, `status` (absent until, and unless, it was answered) and `fault`.
 *
 * **Waiting**: `waitFor(look, longestMs?)` is `until`, with the latest requests in its error.
 *
 * **Rate limits**: `limits.postMessage = { limit: 5, perMs: 5_000 }` and so on. `bucketViolations`: requests beyond a
 * bucket after a response had announced that nothing remains; `overruns`: all beyond a bucket, even if the client
 * could not know. Both are lists.
 *
 * **Faults**: `fail(route, fault, times = 1)` with `{ kind: 'status' | 'rate-limit' | 'hang' | 'close' | 'reset', … }`,
 * where `hasEffect: true` means that the request was carried out and only its response is lost; `:id` in a route is one
 * path segment, `**` any number, `*` any method; files are `GET /attachments/**`. `failAtRandom({ rate, seed,
 * routes?, faults? })`, `clearFaults()`, `faultCount`.
 *
 * **Gateway**: `isConnected` (a client has READY, the guilds and all events), `identifies`, `resumes`;
 * `dropSocket(code?)`, `requestReconnect()`, `invalidateSession({ isResumable? })`, `refuseResume(times = 1)`,
 * `duplicateNextMessage(times = 1)`, `beforeReady(act)` and `beforeGuilds(act)` (run at the next IDENTIFY; what is said
 * in them arrives too early), `pauseDelivery()`, `resumeDelivery()`, `goOffline()`, `comeOnline()`.
 *
 * **Clock**: `advance(ms)` for nonces, interactions and old messages. `settings`: see fake-discord-settings.ts.
 *
 * As in reality: a thread has the id of the message it was opened from, starts with a message of type 21, and opening
 * it changes the first message (MESSAGE_UPDATE without an edit). A nonce is in MESSAGE_CREATE and in the response to
 * POST, but in no later read. Content is trimmed and at most 2,000 code points. POST and PATCH of messages have one
 * bucket name and two buckets. Too many edits of old messages are a 429 with code 30046. Without the intent the content
 * of messages not addressed to the bot is empty; a reply is addressed to the bot if it pings.
 *
 * Unlike reality: any number of IDENTIFYs at once and of payloads on a socket, no global limit (inject it as a fault),
 * no private threads, no commands of a single guild, no link embeds. People may write everywhere.
 */

import {
  ChannelType,
  InteractionResponseType,
  MessageType,
  OverwriteType,
  TeamMemberMembershipState,
  TeamMemberRole,
} from 'discord.js'
import type { APIApplicationCommand, APIMessage, APIOverwrite, APIRole, APIUser } from 'discord.js'
import { Buckets, type BucketName, type Limit, type Overrun } from './fake-discord-buckets.js'
import { Faults, routePattern, type Fault, type RandomFaults } from './fake-discord-faults.js'
import { Gateway } from './fake-discord-gateway.js'
import { HttpServer, type LoggedRequest } from './fake-discord-http.js'
import {
  customIds,
  Interactions,
  isLoading,
  type Choice,
  type FakeInteraction,
  type OptionValue,
} from './fake-discord-interactions.js'
import { fileType } from './fake-discord-message-body.js'
import { isoTime, type FakeChannel, type FakeGuild, type FakeMessage } from './fake-discord-records.js'
import { Routes, type Typing } from './fake-discord-routes.js'
import { defaultSettings, type Settings } from './fake-discord-settings.js'
import { BOT_PERMISSIONS, EVERYONE_PERMISSIONS, World, type WorldEvent } from './fake-discord-world.js'
import { until } from '../../kit/waiting.js'

export interface GivenFile {
  name: string
  content: string | Uint8Array
  type?: string
}

const ORDINARY = new Set([MessageType.Default, MessageType.Reply, MessageType.ChatInputCommand])

export class FakeDiscord {
  readonly token = 'MTIzNDU2Nzg5MDEyMzQ1Njc4.Gfake.0123456789abcdefghijklmnopqrstuvwxyz'
  readonly settings: Settings = defaultSettings()
  readonly #buckets = new Buckets()
  readonly #faults = new Faults()
  readonly #gateway: Gateway
  readonly #world: World
  readonly #interactions: Interactions
  readonly #routes: Routes
  readonly #http: HttpServer

  static async start(): Promise<FakeDiscord> {
    const discord = new FakeDiscord()
    await discord.#http.listen()
    return discord
  }

  private constructor() {
    const gatewayUrl = () => `ws://${this.#http.host}`
    const baseUrl = () => `http://${this.#http.host}`
    const publish = (event: WorldEvent) => this.#gateway.publish(event)
    const forget = () => this.#buckets.forgetTold()
    this.#gateway = new Gateway(() => this.#world, this.settings, this.token, gatewayUrl, forget)
    this.#world = new World(publish)
    this.#interactions = new Interactions(this.#world, this.settings, publish, baseUrl)
    this.#routes = new Routes(this.#world, this.#interactions, this.settings, baseUrl, gatewayUrl)
    this.#http = new HttpServer({
      routes: this.#routes,
      buckets: this.#buckets,
      faults: this.#faults,
      files: this.#world.files,
      token: this.token,
      onSocket: (socket, request) => this.#gateway.connect(socket, request),
    })
  }

  async stop(): Promise<void> {
    await this.#http.close()
  }

  get apiUrl(): string {
    return `http://${this.#http.host}/api`
  }

  // World

  get bot(): APIUser {
    return this.#world.bot
  }

  get owner(): APIUser {
    return this.#world.owner
  }

  get applicationFlags(): number {
    return this.#world.applicationFlags
  }

  set applicationFlags(flags: number) {
    this.#world.applicationFlags = flags
  }

  makeTeam(users: APIUser[]): void {
    const id = this.#world.nextId()
    this.#world.team = {
      id,
      icon: null,
      name: 'team',
      owner_user_id: users[0]?.id ?? this.owner.id,
      members: users.map((user) => ({
        user,
        team_id: id,
        membership_state: TeamMemberMembershipState.Accepted,
        role: TeamMemberRole.Admin,
        permissions: ['*'],
      })),
    }
  }

  addUser(name: string, { isBot = false }: { isBot?: boolean } = {}): APIUser {
    return this.#world.addUser(name, isBot)
  }

  addGuild(options: { name?: string; everyone?: bigint; botPermissions?: bigint } = {}): FakeGuild {
    const { name = 'guild', everyone = EVERYONE_PERMISSIONS, botPermissions = BOT_PERMISSIONS } = options
    return this.#world.addGuild(name, everyone, botPermissions)
  }

  addRole(guild: FakeGuild, name: string, options: { users?: APIUser[]; permissions?: bigint } = {}): APIRole {
    const { users = [], permissions = 0n } = options
    const role = this.#world.addRole(guild, name, permissions)
    for (const user of users) this.#world.join(user, guild).roles.push(role.id)
    return role
  }

  addChannel(
    guild: FakeGuild,
    options: { name?: string; type?: ChannelType; parentId?: string; topic?: string; overwrites?: APIOverwrite[] } = {},
  ): FakeChannel {
    const { name = 'general', type = ChannelType.GuildText, ...more } = options
    return this.#world.addChannel(guild, name, type, more)
  }

  deleteChannel(channelId: string): void {
    this.#world.deleteChannel(this.#channel(channelId))
  }

  deny(channelId: string, permissions: bigint): void {
    const channel = this.#channel(channelId)
    const others = channel.overwrites.filter(({ id }) => id !== this.bot.id)
    const own = { id: this.bot.id, type: OverwriteType.Member, allow: '0', deny: String(permissions) }
    channel.overwrites = permissions === 0n ? others : [...others, own]
    this.#world.updateChannel(channel)
  }

  directChannel(user: APIUser): FakeChannel {
    return this.#world.directChannel(user)
  }

  openThread(
    user: APIUser,
    channelId: string,
    name: string,
    { from, content }: { from?: APIMessage; content?: string } = {},
  ): FakeChannel {
    const parent = this.#channel(channelId)
    const thread = this.#world.openThread(parent, user, name, from ? this.#record(from.id) : undefined)
    if (content !== undefined) this.#world.post({ channel: thread, author: user, content, id: thread.id })
    return thread
  }

  archive(threadId: string, { isLocked = false }: { isLocked?: boolean } = {}): void {
    this.#world.setArchived(this.#channel(threadId), true, isLocked)
  }

  // People

  say(
    user: APIUser,
    channelId: string,
    content: string,
    options: { mentions?: APIUser[]; replyTo?: APIMessage; isReplyPinged?: boolean; attachments?: GivenFile[] } = {},
  ): APIMessage {
    const { mentions = [], replyTo, isReplyPinged = true, attachments = [] } = options
    const channel = this.#channel(channelId)
    const record = this.#world.post({
      channel,
      author: user,
      content: [...mentions.map(({ id }) => `<@${id}>`), content].join(' ').trim(),
      attachments: attachments.map(({ name, type = '', content: data }) => {
        const bytes = typeof data === 'string' ? Buffer.from(data) : data
        return this.#world.store(channel, name, fileType(name, type), bytes, `http://${this.#http.host}`)
      }),
      ...(replyTo ? { repliesTo: this.#record(replyTo.id) } : {}),
      allowedMentions: { parse: ['users', 'roles', 'everyone'], replied_user: isReplyPinged },
    })
    return this.#seen(record)
  }

  edit(message: APIMessage, content: string): APIMessage {
    const record = this.#record(message.id)
    this.#world.edit(record, { content, edited_timestamp: isoTime(this.#world.now()) })
    return this.#seen(record)
  }

  delete(message: APIMessage): void {
    this.#world.delete(this.#record(message.id))
  }

  react(user: APIUser, message: APIMessage, emoji: string): void {
    this.#world.setReaction(this.#record(message.id), user, emoji, true)
  }

  slash(user: APIUser, channelId: string, name: string, options: Record<string, OptionValue> = {}): InteractionHandle {
    return this.#handle(this.#interactions.command(user, this.#channel(channelId), name, options))
  }

  press(user: APIUser, message: APIMessage, customId: string): InteractionHandle {
    return this.#handle(this.#interactions.press(user, this.#record(message.id), customId))
  }

  async autocomplete(
    user: APIUser,
    channelId: string,
    name: string,
    option: string,
    typed: string,
    others: Record<string, OptionValue> = {},
  ): Promise<Choice[]> {
    const channel = this.#channel(channelId)
    const interaction = this.#interactions.autocomplete(user, channel, name, option, typed, others)
    return this.waitFor(() => interaction.choices)
  }

  // What exists

  messagesIn(channelId: string): APIMessage[] {
    return this.#ordinary(channelId).map((record) => this.#seen(record))
  }

  textsIn(channelId: string): string[] {
    const own = this.#ordinary(channelId).filter(({ core }) => core.author.id === this.bot.id)
    return own.map(({ core }) => core.content)
  }

  message(id: string): APIMessage | undefined {
    const record = this.#world.messages.get(id)
    return record && this.#seen(record)
  }

  threadOf(messageId: string): FakeChannel | undefined {
    return this.#world.channels.get(messageId)
  }

  threadsIn(channelId: string): FakeChannel[] {
    const { guild } = this.#channel(channelId)
    return [...(guild?.channels.values() ?? [])].filter(({ thread, parentId }) => thread && parentId === channelId)
  }

  reactionsOn(messageId: string): string[] {
    const { reactions } = this.#record(messageId)
    return [...reactions].filter(([, users]) => users.has(this.bot.id)).map(([emoji]) => emoji)
  }

  buttonsOf(message: APIMessage): string[] {
    return customIds(this.#record(message.id).core)
  }

  get typing(): Typing[] {
    return this.#routes.typing
  }

  get commands(): APIApplicationCommand[] {
    return this.#interactions.commands
  }

  get requests(): LoggedRequest[] {
    return this.#http.requests
  }

  requestsTo(route: string): LoggedRequest[] {
    const pattern = routePattern(route)
    return this.requests.filter(({ method, path }) => pattern.test(`${method} ${path}`))
  }

  waitFor<T>(look: () => T | undefined | null | false, longestMs?: number): Promise<T> {
    return until(look, () => `${String(look)}\n${this.#recent()}`, longestMs)
  }

  // Rate limits and faults

  get limits(): Record<BucketName, Limit> {
    return this.#buckets.limits
  }

  get overruns(): Overrun[] {
    return this.#buckets.overruns
  }

  get bucketViolations(): Overrun[] {
    return this.#buckets.overruns.filter(({ wasTold }) => wasTold)
  }

  fail(route: string, fault: Fault, times = 1): void {
    this.#faults.order(route, fault, times)
  }

  failAtRandom(faults: RandomFaults): void {
    this.#faults.random(faults)
  }

  clearFaults(): void {
    this.#faults.clear()
  }

  get faultCount(): number {
    return this.#faults.count
  }

  // Gateway and clock

  get isConnected(): boolean {
    return this.#gateway.isConnected
  }

  get identifies(): number {
    return this.#gateway.identifies
  }

  get resumes(): number {
    return this.#gateway.resumes
  }

  dropSocket(code?: number): void {
    this.#gateway.dropSockets(code)
  }

  requestReconnect(): void {
    this.#gateway.requestReconnect()
  }

  invalidateSession({ isResumable = false }: { isResumable?: boolean } = {}): void {
    this.#gateway.invalidateSessions(isResumable)
  }

  refuseResume(times = 1): void {
    this.#gateway.refuseResumes(times)
  }

  duplicateNextMessage(times = 1): void {
    this.#gateway.duplicateMessages(times)
  }

  beforeReady(act: () => void | Promise<void>): void {
    this.#gateway.at('before-ready', act)
  }

  beforeGuilds(act: () => void | Promise<void>): void {
    this.#gateway.at('before-guilds', act)
  }

  pauseDelivery(): void {
    this.#gateway.setPaused(true)
  }

  resumeDelivery(): void {
    this.#gateway.setPaused(false)
  }

  /** Breaks every connection and refuses new ones. The sessions can be resumed. */
  goOffline(): void {
    this.#gateway.dropSockets()
    this.#http.setOffline(true)
  }

  comeOnline(): void {
    this.#http.setOffline(false)
  }

  advance(ms: number): void {
    this.#world.clockOffsetMs += ms
  }

  #channel(id: string): FakeChannel {
    const channel = this.#world.channels.get(id)
    if (!channel) throw new Error(`There is no channel ${id}`)
    return channel
  }

  #record(id: string): FakeMessage {
    const record = this.#world.messages.get(id)
    if (!record) throw new Error(`There is no message ${id}`)
    return record
  }

  #ordinary(channelId: string): FakeMessage[] {
    return this.#channel(channelId).messages.filter(({ core }) => ORDINARY.has(core.type))
  }

  #seen(record: FakeMessage): APIMessage {
    return structuredClone(this.#world.payload(record, true))
  }

  #handle(interaction: FakeInteraction): InteractionHandle {
    return new InteractionHandle(
      interaction,
      (record) => this.#seen(record),
      (look) => this.waitFor(look),
    )
  }

  /** For whoever investigates a failed test. */
  #recent(): string {
    const lines = this.requests
      .slice(-15)
      .map(({ method, path, status, fault }) => `${method} ${path} ${status ?? 'no answer'} ${fault ?? ''}`.trim())
    return ['The latest requests:', ...lines].join('\n  ')
  }
}

/** A command or a click, and its outcome. */
export class InteractionHandle {
  readonly #interaction: FakeInteraction
  readonly #seen: (record: FakeMessage) => APIMessage
  readonly #waitFor: FakeDiscord['waitFor']

  constructor(
    interaction: FakeInteraction,
    seen: (record: FakeMessage) => APIMessage,
    waitFor: FakeDiscord['waitFor'],
  ) {
    this.#interaction = interaction
    this.#seen = seen
    this.#waitFor = waitFor
  }

  get id(): string {
    return this.#interaction.id
  }

  /** The first response. */
  get callback(): InteractionResponseType | undefined {
    return this.#interaction.callback
  }

  /** What `@original` is. */
  get response(): APIMessage | undefined {
    const { response } = this.#interaction
    return response && this.#seen(response)
  }

  get isEphemeral(): boolean {
    return this.#interaction.response?.isEphemeral ?? false
  }

  get followUps(): APIMessage[] {
    return this.#interaction.followUps.map((record) => this.#seen(record))
  }

  async acknowledged(): Promise<InteractionResponseType> {
    return this.#waitFor(() => this.callback)
  }

  async answer(): Promise<string> {
    const message = await this.#waitFor(() => this.#shown())
    return message.content
  }

  /** After a click was acknowledged silently, only follow-ups are an answer. */
  #shown(): APIMessage | undefined {
    const isSilent = this.callback === InteractionResponseType.DeferredMessageUpdate
    const shown = isSilent ? this.followUps[0] : this.response
    return this.callback !== undefined && shown && !isLoading(shown) ? shown : undefined
  }
}
