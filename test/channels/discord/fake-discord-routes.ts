// The HTTP API, version 10: what each route does. Access, rate limits and faults are handled elsewhere.

import { ApplicationFlags, MessageFlags, MessageType, PermissionFlagsBits } from 'discord.js'
import type { APIApplicationCommand, APIMessage } from 'discord.js'
import type { BucketName } from './fake-discord-buckets.js'
import { invalidForm, refusals } from './fake-discord-errors.js'
import { routePattern } from './fake-discord-faults.js'
import type { Interactions } from './fake-discord-interactions.js'
import {
  checkBody,
  isEmpty,
  readContent,
  storeUploads,
  tooManyOldEdits,
  type MessageBody,
  type Upload,
} from './fake-discord-message-body.js'
import {
  compareIds,
  indexAfter,
  isForum,
  guildFields,
  isoTime,
  memberPayload,
  type FakeChannel,
  type FakeGuild,
  type FakeMessage,
} from './fake-discord-records.js'
import type { Settings } from './fake-discord-settings.js'
import type { World } from './fake-discord-world.js'

export interface Call {
  /** The path parameters, in order. */
  ids: string[]
  query: URLSearchParams
  body: unknown
  uploads: Upload[]
}

export interface Answer {
  status: number
  body?: unknown
}

export interface Route {
  /** Such as `POST /channels/:id/messages`. */
  name: string
  pattern: RegExp
  bucket?: BucketName
  /** The index of the id the bucket belongs to. */
  bucketOf: number
  /** The token in the path is sufficient. */
  needsNoToken: boolean
  handle(call: Call): Answer
}

export interface Typing {
  channelId: string
  at: number
}

const SYSTEM_TYPES = new Set([MessageType.ThreadCreated, MessageType.ThreadStarterMessage])
const COMMAND_NAME = /^[-_\p{L}\p{N}]{1,32}$/u
const EMOJI = /\p{Extended_Pictographic}|\p{Regional_Indicator}|[\d#*]\u{FE0F}?\u{20E3}|^\w+:\d+$/u
const DEFAULT_PAGE = 50
const LARGEST_PAGE = 100
/** The flags a bot may set: SUPPRESS_EMBEDS, SUPPRESS_NOTIFICATIONS, IS_VOICE_MESSAGE, IS_COMPONENTS_V2. */
const SETTABLE_FLAGS =
  MessageFlags.SuppressEmbeds |
  MessageFlags.SuppressNotifications |
  MessageFlags.IsVoiceMessage |
  MessageFlags.IsComponentsV2

export class Routes {
  readonly typing: Typing[] = []
  readonly #routes: Route[] = []
  /** By author and nonce. */
  readonly #nonces = new Map<string, { record: FakeMessage; at: number }>()
  readonly #oldEdits = new Map<string, number[]>()

  constructor(
    readonly world: World,
    readonly interactions: Interactions,
    readonly settings: Settings,
    readonly baseUrl: () => string,
    readonly gatewayUrl: () => string,
  ) {
    this.#addGeneral()
    this.#addGuilds()
    this.#addChannels()
    this.#addMessages()
    this.#addInteractions()
  }

  find(method: string, path: string): { route: Route; ids: string[] } | undefined {
    const line = `${method} ${path}`
    for (const route of this.#routes) {
      const match = route.pattern.exec(line)
      if (match) return { route, ids: match.slice(1).map((id) => decodeURIComponent(id)) }
    }
    return undefined
  }

  #add(name: string, handle: Route['handle'], more: Partial<Route> = {}): void {
    const pattern = new RegExp(routePattern(name).source.replaceAll('[^/]+', '([^/]+)'))
    this.#routes.push({ name, pattern, handle, bucketOf: 0, needsNoToken: false, ...more })
  }

  #addGeneral(): void {
    const { world } = this
    const limits = { total: 1000, remaining: 1000, reset_after: 86_400_000, max_concurrency: 1 }
    const gateway = () => ({ url: this.gatewayUrl(), shards: 1, session_start_limit: limits })
    this.#add('GET /gateway/bot', () => found(gateway()))
    this.#add('GET /gateway', () => found({ url: this.gatewayUrl() }), { needsNoToken: true })
    this.#add('GET /users/@me', () => found({ ...world.bot, verified: true, mfa_enabled: true, email: null, flags: 0 }))
    this.#add('GET /applications/@me', () => found(world.application()))
    this.#add('GET /oauth2/applications/@me', () => found(world.application()))
    this.#add('GET /users/@me/guilds', () => found([...world.guilds.values()].map((guild) => this.#ownGuild(guild))))
    this.#add('GET /users/:id', ({ ids: [id = ''] }) => found(this.#user(id)))
    this.#add('POST /users/@me/channels', ({ body }) => {
      const { recipient_id: id = '' } = (body ?? {}) as { recipient_id?: string }
      return found(world.channelPayload(world.directChannel(this.#user(id))))
    })
    this.#add('GET /applications/:id/commands', ({ ids: [id] }) => {
      this.#checkApplication(id)
      return found(this.interactions.commands)
    })
    this.#add('PUT /applications/:id/commands', ({ ids: [id], body }) => {
      this.#checkApplication(id)
      this.interactions.commands = this.#commands(body)
      return found(this.interactions.commands)
    })
  }

  #addGuilds(): void {
    const { world } = this
    const add = (name: string, handle: (guild: FakeGuild, call: Call) => unknown) => {
      this.#add(name, (call) => found(handle(this.#guild(call.ids[0]), call)))
    }
    add('GET /guilds/:id', guildFields)
    add('GET /guilds/:id/roles', ({ roles }) => [...roles.values()])
    add('GET /guilds/:id/channels', ({ channels }) =>
      [...channels.values()].filter(({ thread }) => !thread).map((channel) => world.channelPayload(channel)),
    )
    add('GET /guilds/:id/members/:id', ({ members }, { ids: [, id = ''] }) => {
      const member = members.get(id)
      if (!member) throw refusals.unknownMember()
      return memberPayload(member)
    })
    add('GET /guilds/:id/threads/active', ({ channels }) => {
      const active = [...channels.values()].filter(({ thread }) => thread && !thread.isArchived)
      const joined = active.filter(({ thread }) => thread?.memberIds.has(world.bot.id))
      return {
        threads: active.map((channel) => world.channelPayload(channel)),
        members: joined.map((channel) => world.threadMember(channel, world.bot.id)),
      }
    })
  }

  #addChannels(): void {
    const { world } = this
    this.#add('GET /channels/:id', ({ ids: [id] }) => found(world.channelPayload(this.#channel(id))))
    this.#add(
      'POST /channels/:id/typing',
      ({ ids: [id] }) => {
        const channel = this.#channel(id, sendPermission)
        this.typing.push({ channelId: channel.id, at: world.now() })
        world.type(channel, world.bot)
        return { status: 204 }
      },
      { bucket: 'typing' },
    )
    const thread = { bucket: 'thread' } as const
    this.#add(
      'POST /channels/:id/messages/:id/threads',
      ({ ids: [id, messageId], body }) => {
        const parent = this.#channel(id, () => PermissionFlagsBits.CreatePublicThreads)
        if (parent.thread || !parent.guild) throw refusals.wrongChannelType()
        const record = this.#message(parent, messageId)
        if (SYSTEM_TYPES.has(record.core.type)) throw refusals.systemMessage()
        if (world.channels.has(record.core.id)) throw refusals.threadExists()
        return { status: 201, body: world.channelPayload(world.openThread(parent, world.bot, nameOf(body), record)) }
      },
      thread,
    )
    this.#add('POST /channels/:id/threads', (call) => this.#openThread(call), thread)
  }

  #openThread({ ids: [id], body, uploads }: Call): Answer {
    const { world } = this
    const parent = this.#channel(id, (channel) =>
      isForum(channel) ? PermissionFlagsBits.SendMessages : PermissionFlagsBits.CreatePublicThreads,
    )
    if (parent.thread || !parent.guild) throw refusals.wrongChannelType()
    const name = nameOf(body)
    const { message } = body as { message?: MessageBody }
    if (!isForum(parent)) return { status: 201, body: world.channelPayload(world.openThread(parent, world.bot, name)) }
    if (!message) throw invalidForm('message', 'BASE_TYPE_REQUIRED', 'This field is required')
    const thread = world.openThread(parent, world.bot, name)
    const record = this.#post(thread, message, uploads, thread.id)
    return { status: 201, body: { ...world.channelPayload(thread), message: world.payload(record, true) } }
  }

  #addMessages(): void {
    const { world } = this
    const canRead = () => this.#canReadAll()
    this.#add('GET /channels/:id/messages', (call) => this.#list(call), { bucket: 'readMessages' })
    this.#add('GET /channels/:id/messages/:id', ({ ids: [id, messageId] }) => {
      const channel = this.#channel(id, () => PermissionFlagsBits.ReadMessageHistory)
      return found(world.payload(this.#message(channel, messageId), canRead()))
    })
    this.#add(
      'POST /channels/:id/messages',
      ({ ids: [id], body, uploads }) => {
        const channel = this.#channel(id, sendPermission)
        const record = this.#post(channel, body as MessageBody, uploads)
        const { nonce } = body as MessageBody
        return found({ ...world.payload(record, true), ...(nonce === undefined ? {} : { nonce }) })
      },
      { bucket: 'postMessage' },
    )
    this.#add('PATCH /channels/:id/messages/:id', (call) => this.#edit(call), { bucket: 'editMessage' })
    this.#add(
      'DELETE /channels/:id/messages/:id',
      ({ ids: [id, messageId] }) => {
        const channel = this.#channel(id)
        const record = this.#message(channel, messageId)
        if (channel.thread?.isLocked && channel.thread.isArchived) throw refusals.threadArchived()
        if (record.core.author.id !== world.bot.id) this.#need(channel, PermissionFlagsBits.ManageMessages)
        world.delete(record)
        return { status: 204 }
      },
      { bucket: 'deleteMessage' },
    )
    for (const method of ['PUT', 'DELETE']) {
      this.#add(
        `${method} /channels/:id/messages/:id/reactions/:emoji/@me`,
        ({ ids: [id, messageId, emoji = ''] }) => this.#react(id, messageId, emoji, method === 'PUT'),
        { bucket: 'reaction' },
      )
    }
  }

  #addInteractions(): void {
    const { interactions } = this
    const open = { needsNoToken: true }
    this.#add(
      'POST /interactions/:id/:token/callback',
      ({ ids: [id = '', token = ''], query, body, uploads }) => {
        const response = interactions.callback(id, token, body as object, uploads)
        return query.get('with_response') === 'true' ? found(response) : { status: 204 }
      },
      open,
    )
    const webhook = { needsNoToken: true, bucket: 'webhook', bucketOf: 1 } as const
    this.#add(
      'POST /webhooks/:application/:token',
      ({ ids: [id, token = ''], body, uploads }) => {
        this.#checkApplication(id)
        return found(interactions.payload(interactions.followUp(token, body as MessageBody, uploads)))
      },
      webhook,
    )
    this.#add(
      'GET /webhooks/:application/:token/messages/:id',
      ({ ids: [, token = '', id = ''] }) => found(interactions.payload(interactions.find(token, id))),
      webhook,
    )
    this.#add(
      'PATCH /webhooks/:application/:token/messages/:id',
      ({ ids: [, token = '', id = ''], body, uploads }) =>
        found(interactions.payload(interactions.edit(token, id, body as MessageBody, uploads))),
      webhook,
    )
    this.#add(
      'DELETE /webhooks/:application/:token/messages/:id',
      ({ ids: [, token = '', id = ''] }) => {
        interactions.delete(token, id)
        return { status: 204 }
      },
      webhook,
    )
  }

  #list({ ids: [id], query }: Call): Answer {
    const { world } = this
    const channel = this.#channel(id)
    const limit = Number(query.get('limit') ?? DEFAULT_PAGE)
    if (!Number.isInteger(limit) || limit < 1 || limit > LARGEST_PAGE) {
      throw invalidForm('limit', 'NUMBER_TYPE_MAX', `int value should be between 1 and ${LARGEST_PAGE}.`)
    }
    const needed = PermissionFlagsBits.ReadMessageHistory
    if ((world.permissionsIn(world.bot, channel) & needed) === 0n) return found([])
    const { messages } = channel
    const after = query.get('after')
    const before = query.get('before')
    // The page is adjacent to the named message; always newest first.
    const start = after === null ? undefined : indexAfter(messages, after)
    const end = before === null ? messages.length : indexBefore(messages, before)
    const page =
      start === undefined ? messages.slice(Math.max(0, end - limit), end) : messages.slice(start, start + limit)
    return found(page.toReversed().map((record) => world.payload(record, this.#canReadAll())))
  }

  #post(channel: FakeChannel, body: MessageBody, uploads: Upload[], id?: string): FakeMessage {
    const { world } = this
    if (isForum(channel)) throw refusals.notText()
    checkBody(body)
    this.#checkWritable(channel)
    const known = this.#sameNonce(body)
    if (known) return known
    if (uploads.length > 0) this.#need(channel, PermissionFlagsBits.AttachFiles)
    const repliesTo = this.#referenced(channel, body)
    const content = readContent(body)
    const isBare = !content.content && !body.embeds?.length && !body.components?.length && uploads.length === 0
    if (isBare) throw refusals.emptyMessage()
    const record = world.post({
      channel,
      author: world.bot,
      ...content,
      flags: (body.flags ?? 0) & SETTABLE_FLAGS,
      components: body.components ?? [],
      embeds: body.embeds ?? [],
      attachments: storeUploads(world, channel, body, uploads, this.settings, this.baseUrl()),
      allowedMentions: body.allowed_mentions ?? { parse: ['users', 'roles', 'everyone'], replied_user: true },
      ...(repliesTo ? { repliesTo } : {}),
      ...(body.nonce === undefined ? {} : { nonce: body.nonce }),
      ...(id === undefined ? {} : { id }),
    })
    if (body.nonce !== undefined) this.#nonces.set(String(body.nonce), { record, at: world.now() })
    return record
  }

  #sameNonce(body: MessageBody): FakeMessage | undefined {
    if (!body.enforce_nonce || body.nonce === undefined) return undefined
    const known = this.#nonces.get(String(body.nonce))
    if (!known || this.world.now() - known.at > this.settings.nonceWindowMs) return undefined
    return this.world.messages.has(known.record.core.id) ? known.record : undefined
  }

  #referenced(channel: FakeChannel, body: MessageBody): FakeMessage | undefined {
    const { message_id: id, fail_if_not_exists: mustExist = true } = body.message_reference ?? {}
    if (id === undefined) return undefined
    const record = this.world.messages.get(id)
    if (record?.channel === channel && !SYSTEM_TYPES.has(record.core.type)) {
      const permissions = this.world.permissionsIn(this.world.bot, channel)
      if ((permissions & PermissionFlagsBits.ReadMessageHistory) === 0n) throw refusals.cannotReply()
      return record
    }
    if (mustExist) throw invalidForm('message_reference', 'MESSAGE_REFERENCE_UNKNOWN_MESSAGE', 'Unknown message')
    return undefined
  }

  #edit({ ids: [id, messageId], body: raw, uploads }: Call): Answer {
    const { world } = this
    const body = raw as MessageBody
    const channel = this.#channel(id)
    const record = this.#message(channel, messageId)
    if (record.core.author.id !== world.bot.id) throw refusals.notTheAuthor()
    checkBody(body)
    if (channel.thread?.isArchived) throw refusals.threadArchived()
    this.#checkWritable(channel)
    const added = storeUploads(world, channel, body, uploads, this.settings, this.baseUrl())
    const isKept = (id: string) => !body.attachments || body.attachments.some((kept) => String(kept.id) === id)
    const changed = {
      ...readContent(body),
      ...(body.embeds === undefined ? {} : { embeds: body.embeds }),
      ...(body.components === undefined ? {} : { components: body.components ?? [] }),
      attachments: [...record.core.attachments.filter((file) => isKept(file.id)), ...added],
    }
    if (isEmpty({ ...record.core, ...changed })) throw refusals.emptyMessage()
    this.#countOldEdit(record)
    const isContentSame = changed.content === undefined || changed.content === record.core.content
    const edited: Partial<APIMessage> = isContentSame ? {} : { edited_timestamp: isoTime(world.now()) }
    world.edit(record, { ...changed, ...edited }, body.allowed_mentions)
    return found(world.payload(record, true))
  }

  #countOldEdit({ core, channel }: FakeMessage): void {
    const now = this.world.now()
    const { oldMessageMs, oldMessageEdits } = this.settings
    if (now - Date.parse(core.timestamp) < oldMessageMs) return
    const recent = (this.#oldEdits.get(channel.id) ?? []).filter((at) => now - at < oldMessageEdits.perMs)
    const [oldest = now] = recent
    if (recent.length >= oldMessageEdits.limit) throw tooManyOldEdits(oldest + oldMessageEdits.perMs - now)
    this.#oldEdits.set(channel.id, [...recent, now])
  }

  #react(id: string | undefined, messageId: string | undefined, emoji: string, isSet: boolean): Answer {
    const { world } = this
    const channel = this.#channel(id, () => PermissionFlagsBits.ReadMessageHistory)
    const record = this.#message(channel, messageId)
    if (!EMOJI.test(emoji)) throw refusals.unknownEmoji()
    if (channel.thread?.isArchived) throw refusals.threadArchived()
    if (isSet && !record.reactions.has(emoji)) this.#need(channel, PermissionFlagsBits.AddReactions)
    world.setReaction(record, world.bot, emoji, isSet)
    return { status: 204 }
  }

  #commands(body: unknown): APIApplicationCommand[] {
    if (!Array.isArray(body)) throw invalidForm('_', 'BASE_TYPE_BAD_TYPE', 'Must be a list')
    const names = new Set<string>()
    return (body as APIApplicationCommand[]).map((command, index) => {
      checkCommand(command, index, names)
      const known = this.interactions.commands.find(({ name }) => name === command.name)
      const { world } = this
      return {
        ...command,
        id: known?.id ?? world.nextId(),
        application_id: world.bot.id,
        version: world.nextId(),
        type: command.type ?? 1,
      }
    })
  }

  #checkApplication(id: string | undefined): void {
    if (id !== this.world.bot.id) throw refusals.wrongApplication()
  }

  #user(id: string) {
    const user = this.world.users.get(id)
    if (!user) throw refusals.unknownUser()
    return user
  }

  #guild(id = ''): FakeGuild {
    const guild = this.world.guilds.get(id)
    if (!guild) throw refusals.unknownGuild()
    return guild
  }

  #ownGuild(guild: FakeGuild) {
    const { bot } = this.world
    const roles = [guild.id, ...(guild.members.get(bot.id)?.roles ?? [])]
    const permissions = roles.reduce((all, id) => all | BigInt(guild.roles.get(id)?.permissions ?? 0), 0n)
    const { id, name } = guild
    return { id, name, icon: null, banner: null, owner: false, permissions: String(permissions), features: [] }
  }

  /** The channel, if the bot can see it and has the permission. */
  #channel(id = '', permission?: (channel: FakeChannel) => bigint): FakeChannel {
    const channel = this.world.channels.get(id)
    if (!channel) throw refusals.unknownChannel()
    if (!this.world.canView(channel)) throw refusals.missingAccess()
    if (permission) this.#need(channel, permission(channel))
    return channel
  }

  #need(channel: FakeChannel, permission: bigint): void {
    const { world } = this
    if ((world.permissionsIn(world.bot, channel) & permission) === 0n) throw refusals.missingPermissions()
  }

  /** Without the permission to manage threads, locked ones are read-only. */
  #checkWritable(channel: FakeChannel): void {
    const { world } = this
    if (!channel.thread?.isLocked) return
    const mayManage = (world.permissionsIn(world.bot, channel) & PermissionFlagsBits.ManageThreads) !== 0n
    if (!mayManage) throw refusals.threadArchived()
  }

  #message(channel: FakeChannel, id = ''): FakeMessage {
    const record = this.world.messages.get(id)
    if (record?.channel !== channel) throw refusals.unknownMessage()
    return record
  }

  /** Over HTTP the application's setting counts, not the intents of a session. */
  #canReadAll(): boolean {
    const flags = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited
    return (this.world.applicationFlags & flags) !== 0
  }
}

function found(body: unknown): Answer {
  return { status: 200, body }
}

function sendPermission({ thread }: FakeChannel): bigint {
  return thread ? PermissionFlagsBits.SendMessagesInThreads : PermissionFlagsBits.SendMessages
}

function nameOf(body: unknown): string {
  const { name } = (body ?? {}) as { name?: unknown }
  if (typeof name !== 'string' || name.trim().length === 0 || Array.from(name).length > 100) {
    throw invalidForm('name', 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 100 in length.')
  }
  return name
}

function indexBefore(messages: FakeMessage[], id: string): number {
  const index = indexAfter(messages, id)
  const last = messages[index - 1]
  return last && compareIds(last.core.id, id) === 0 ? index - 1 : index
}

function checkCommand(command: APIApplicationCommand, index: number, names: Set<string>): void {
  const { name, description, options = [] } = command
  const fail = (path: string, code: string, message: string) => invalidForm(`${index}.${path}`, code, message)
  if (!COMMAND_NAME.test(name) || name !== name.toLowerCase()) {
    throw fail('name', 'APPLICATION_COMMAND_INVALID_NAME', 'Command name is invalid')
  }
  if (names.has(name)) {
    throw fail('name', 'APPLICATION_COMMANDS_DUPLICATE_NAME', 'Application command names must be unique')
  }
  names.add(name)
  if (description.length === 0 || description.length > 100) {
    throw fail('description', 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 100 in length.')
  }
  let isOptional = false
  for (const [at, option] of options.entries()) {
    const path = `options.${at}`
    if (!COMMAND_NAME.test(option.name)) {
      throw fail(`${path}.name`, 'APPLICATION_COMMAND_INVALID_NAME', 'Command name is invalid')
    }
    if (option.description.length === 0 || option.description.length > 100) {
      throw fail(`${path}.description`, 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 100 in length.')
    }
    if (option.required && isOptional) {
      const message = 'Required options must be placed before non-required options'
      throw fail(path, 'APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID', message)
    }
    isOptional ||= !option.required
  }
}
