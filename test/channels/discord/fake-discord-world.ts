// What exists on the fake Discord: people, guilds, channels, threads, messages. Every change is published as the
// gateway event Discord would send; the gateway decides who may see it.

import {
  ApplicationFlags,
  ChannelType,
  GatewayIntentBits,
  MessageFlags,
  MessageType,
  PermissionFlagsBits,
} from 'discord.js'
import type {
  APIApplication,
  APIAttachment,
  APIChannel,
  APIGuildMember,
  APIMessage,
  APIMessageTopLevelComponent,
  APIRole,
  APITeam,
  APIThreadChannel,
  APIUser,
  GatewayGuildCreateDispatchData,
} from 'discord.js'
import {
  conceal,
  emptyChannel,
  guildFields,
  indexAfter,
  isForum,
  isoTime,
  memberPayload,
  messageIntents,
  newRole,
  NO_FLAGS,
  referenceTo,
  type FakeChannel,
  type FakeGuild,
  type FakeMember,
  type FakeMessage,
  type FakeThread,
  type StoredFile,
} from './fake-discord-records.js'

/** Which mentions count; by default all. */
export interface AllowedMentions {
  parse?: string[]
  users?: string[]
  roles?: string[]
  replied_user?: boolean
}

export interface Draft {
  channel: FakeChannel
  author: APIUser
  content?: string
  type?: MessageType
  flags?: number
  nonce?: string | number
  repliesTo?: FakeMessage
  reference?: APIMessage['message_reference']
  allowedMentions?: AllowedMentions
  attachments?: APIAttachment[]
  components?: APIMessageTopLevelComponent[]
  embeds?: APIMessage['embeds']
  more?: Partial<APIMessage>
  isEphemeral?: boolean
  /** For a thread that starts with it. */
  id?: string
}

export interface WorldEvent {
  name: string
  data: object
  /** The intents of which one is required; 0 if it goes to everyone. */
  intents: number
  /** The payload for those without the message content intent. */
  concealed?: object
}

const DISCORD_EPOCH = 1_420_070_400_000

/** Everyone's permissions in a new guild, and those the invitation gives the bot. */
export const EVERYONE_PERMISSIONS =
  PermissionFlagsBits.ViewChannel |
  PermissionFlagsBits.SendMessages |
  PermissionFlagsBits.ReadMessageHistory |
  PermissionFlagsBits.AddReactions

export const BOT_PERMISSIONS =
  EVERYONE_PERMISSIONS |
  PermissionFlagsBits.SendMessagesInThreads |
  PermissionFlagsBits.CreatePublicThreads |
  PermissionFlagsBits.AttachFiles

const EVERY_PERMISSION = Object.values(PermissionFlagsBits).reduce((all, bit) => all | bit, 0n)

export class World {
  readonly users = new Map<string, APIUser>()
  readonly guilds = new Map<string, FakeGuild>()
  /** Includes threads and direct messages. */
  readonly channels = new Map<string, FakeChannel>()
  readonly messages = new Map<string, FakeMessage>()
  readonly files = new Map<string, StoredFile>()
  readonly bot: APIUser
  readonly owner: APIUser
  team: APITeam | null = null
  applicationFlags: number = ApplicationFlags.GatewayMessageContentLimited
  /** Added to the machine's clock. */
  clockOffsetMs = 0
  readonly #directChannels = new Map<string, FakeChannel>()
  readonly #publish: (event: WorldEvent) => void
  #lastId = 0n

  constructor(publish: (event: WorldEvent) => void) {
    this.#publish = publish
    this.bot = this.addUser('aetheel', true)
    this.owner = this.addUser('owner', false)
  }

  now(): number {
    return Date.now() + this.clockOffsetMs
  }

  nextId(): string {
    const byClock = BigInt(this.now() - DISCORD_EPOCH) << 22n
    this.#lastId = byClock > this.#lastId ? byClock : this.#lastId + 1n
    return String(this.#lastId)
  }

  application(): APIApplication {
    const { id, username } = this.bot
    return {
      id,
      name: username,
      icon: null,
      description: '',
      bot_public: true,
      bot_require_code_grant: false,
      bot: this.bot,
      // An application owned by a team has a made-up user as its owner.
      owner: this.team ? { ...this.owner, id: this.team.id, username: `team${this.team.id}` } : this.owner,
      summary: '',
      verify_key: '0'.repeat(64),
      team: this.team,
      flags: this.applicationFlags,
      flags_new: String(this.applicationFlags),
    }
  }

  addUser(username: string, isBot: boolean): APIUser {
    const user: APIUser = {
      id: this.nextId(),
      username,
      discriminator: isBot ? '0001' : '0',
      global_name: isBot ? null : username,
      avatar: null,
      ...(isBot ? { bot: true } : {}),
    }
    this.users.set(user.id, user)
    return user
  }

  addGuild(name: string, everyone: bigint, botPermissions: bigint): FakeGuild {
    const id = this.nextId()
    const guild: FakeGuild = {
      id,
      name,
      ownerId: this.owner.id,
      roles: new Map(),
      members: new Map(),
      channels: new Map(),
      createdAt: this.now(),
    }
    this.guilds.set(id, guild)
    guild.roles.set(id, newRole(id, '@everyone', everyone, 0))
    const botRole = { ...newRole(this.nextId(), this.bot.username, botPermissions, 1), managed: true }
    guild.roles.set(botRole.id, { ...botRole, tags: { bot_id: this.bot.id } })
    this.join(this.owner, guild)
    this.join(this.bot, guild).roles.push(botRole.id)
    this.#publish({ name: 'GUILD_CREATE', data: this.guildPayload(guild), intents: GatewayIntentBits.Guilds })
    return guild
  }

  addRole(guild: FakeGuild, name: string, permissions: bigint): APIRole {
    const added = newRole(this.nextId(), name, permissions, guild.roles.size)
    guild.roles.set(added.id, added)
    const data = { guild_id: guild.id, role: added }
    this.#publish({ name: 'GUILD_ROLE_CREATE', data, intents: GatewayIntentBits.Guilds })
    return added
  }

  join(user: APIUser, guild: FakeGuild): FakeMember {
    const known = guild.members.get(user.id)
    if (known) return known
    const member: FakeMember = { user, roles: [], joinedAt: this.now() }
    guild.members.set(user.id, member)
    const data = { guild_id: guild.id, ...memberPayload(member) }
    this.#publish({ name: 'GUILD_MEMBER_ADD', data, intents: GatewayIntentBits.GuildMembers })
    return member
  }

  addChannel(guild: FakeGuild, name: string, type: ChannelType, more: Partial<FakeChannel> = {}): FakeChannel {
    const channel = { ...emptyChannel(this.nextId(), type, name), guild, ...more }
    this.channels.set(channel.id, channel)
    guild.channels.set(channel.id, channel)
    const data = this.channelPayload(channel)
    this.#publish({ name: 'CHANNEL_CREATE', data, intents: GatewayIntentBits.Guilds })
    return channel
  }

  updateChannel(channel: FakeChannel): void {
    const name = channel.thread ? 'THREAD_UPDATE' : 'CHANNEL_UPDATE'
    this.#publish({ name, data: this.channelPayload(channel), intents: GatewayIntentBits.Guilds })
  }

  deleteChannel(channel: FakeChannel): void {
    this.channels.delete(channel.id)
    channel.guild?.channels.delete(channel.id)
    for (const { core } of channel.messages) this.messages.delete(core.id)
    const { id, type, guild, parentId } = channel
    const data = channel.thread ? { id, type, guild_id: guild?.id, parent_id: parentId } : this.channelPayload(channel)
    const name = channel.thread ? 'THREAD_DELETE' : 'CHANNEL_DELETE'
    this.#publish({ name, data, intents: GatewayIntentBits.Guilds })
  }

  directChannel(user: APIUser): FakeChannel {
    const known = this.#directChannels.get(user.id)
    if (known) return known
    const channel = { ...emptyChannel(this.nextId(), ChannelType.DM, null), recipient: user }
    this.#directChannels.set(user.id, channel)
    this.channels.set(channel.id, channel)
    return channel
  }

  /**
   * A thread opened from a message gets its id. In a forum the first message gets the thread's id: post it with the
   * thread.
   */
  openThread(parent: FakeChannel, author: APIUser, name: string, from?: FakeMessage): FakeChannel {
    const now = this.now()
    const { guild } = parent
    const thread: FakeChannel = {
      ...emptyChannel(from?.core.id ?? this.nextId(), ChannelType.PublicThread, name),
      ...(guild ? { guild } : {}),
      parentId: parent.id,
      thread: {
        ownerId: author.id,
        isArchived: false,
        isLocked: false,
        archiveChangedAt: now,
        createdAt: now,
        messageCount: 0,
        totalMessageSent: 0,
        memberIds: new Set([author.id]),
      },
    }
    this.channels.set(thread.id, thread)
    guild?.channels.set(thread.id, thread)
    const data = { ...this.channelPayload(thread), newly_created: true }
    this.#publish({ name: 'THREAD_CREATE', data, intents: GatewayIntentBits.Guilds })
    if (author.id === this.bot.id) this.#publishMembers(thread)
    if (from) this.#startFrom(thread, author, from)
    else if (!isForum(parent)) this.#announce(thread, author, parent)
    return thread
  }

  /** The thread starts with a nameless pointer to the message, and the message says that it has a thread. */
  #startFrom(thread: FakeChannel, author: APIUser, from: FakeMessage): void {
    from.core.flags = (from.core.flags ?? 0) | MessageFlags.HasThread
    this.#publishMessage('MESSAGE_UPDATE', from)
    const reference = referenceTo(from)
    this.post({ channel: thread, author, type: MessageType.ThreadStarterMessage, repliesTo: from, reference })
  }

  #announce(thread: FakeChannel, author: APIUser, parent: FakeChannel): void {
    const reference = { channel_id: thread.id, ...(parent.guild ? { guild_id: parent.guild.id } : {}) }
    const content = thread.name ?? ''
    this.post({ channel: parent, author, type: MessageType.ThreadCreated, content, reference })
  }

  #publishMembers(thread: FakeChannel): void {
    const data = {
      id: thread.id,
      guild_id: thread.guild?.id,
      member_count: thread.thread?.memberIds.size,
      added_members: [this.threadMember(thread, this.bot.id)],
      removed_member_ids: [],
    }
    this.#publish({ name: 'THREAD_MEMBERS_UPDATE', data, intents: GatewayIntentBits.Guilds })
  }

  setArchived(channel: FakeChannel, isArchived: boolean, isLocked: boolean): void {
    const { thread } = channel
    if (!thread) throw new Error(`${channel.id} is no thread`)
    Object.assign(thread, { isArchived, isLocked, archiveChangedAt: this.now() })
    this.updateChannel(channel)
  }

  post(draft: Draft): FakeMessage {
    const { channel, author, content = '', isEphemeral = false } = draft
    if (channel.thread?.isArchived && !isEphemeral) this.setArchived(channel, false, channel.thread.isLocked)
    const record: FakeMessage = {
      core: {
        id: draft.id ?? this.nextId(),
        channel_id: channel.id,
        author,
        content,
        timestamp: isoTime(this.now()),
        edited_timestamp: null,
        tts: false,
        ...this.#mentions(draft),
        attachments: draft.attachments ?? [],
        embeds: draft.embeds ?? [],
        components: draft.components ?? [],
        pinned: false,
        type: draft.type ?? (draft.repliesTo ? MessageType.Reply : MessageType.Default),
        flags: draft.flags ?? 0,
        ...(draft.repliesTo ? { message_reference: referenceTo(draft.repliesTo) } : {}),
        ...(draft.reference ? { message_reference: draft.reference } : {}),
        ...draft.more,
      },
      channel,
      repliesTo: draft.repliesTo,
      reactions: new Map(),
      isEphemeral,
    }
    if (isEphemeral) return record
    this.messages.set(record.core.id, record)
    channel.messages.push(record)
    channel.lastMessageId = record.core.id
    if (channel.thread) {
      channel.thread.messageCount += 1
      channel.thread.totalMessageSent += 1
      channel.thread.memberIds.add(author.id)
    }
    this.#publishMessage('MESSAGE_CREATE', record, draft.nonce)
    return record
  }

  edit(record: FakeMessage, changes: Partial<APIMessage>, allowedMentions?: AllowedMentions): void {
    Object.assign(record.core, changes)
    const { channel, core } = record
    const mentions = this.#mentions({
      channel,
      author: core.author,
      content: core.content,
      ...(record.repliesTo ? { repliesTo: record.repliesTo } : {}),
      ...(allowedMentions ? { allowedMentions } : {}),
    })
    Object.assign(core, mentions)
    if (!record.isEphemeral) this.#publishMessage('MESSAGE_UPDATE', record)
  }

  delete(record: FakeMessage): void {
    const { channel, core } = record
    this.messages.delete(core.id)
    const index = indexAfter(channel.messages, core.id) - 1
    if (channel.messages[index] === record) channel.messages.splice(index, 1)
    if (channel.thread) channel.thread.messageCount -= 1
    const data = { id: core.id, channel_id: channel.id, ...(channel.guild ? { guild_id: channel.guild.id } : {}) }
    if (this.canView(channel)) this.#publish({ name: 'MESSAGE_DELETE', data, intents: messageIntents(channel) })
  }

  setReaction(record: FakeMessage, user: APIUser, emoji: string, isSet: boolean): void {
    const users = record.reactions.get(emoji) ?? new Set()
    if (users.has(user.id) === isSet) return
    if (isSet) users.add(user.id)
    else users.delete(user.id)
    if (users.size > 0) record.reactions.set(emoji, users)
    else record.reactions.delete(emoji)
    const { guild } = record.channel
    const data = {
      user_id: user.id,
      channel_id: record.channel.id,
      message_id: record.core.id,
      message_author_id: record.core.author.id,
      emoji: { id: null, name: emoji },
      burst: false,
      type: 0,
      ...(guild ? { guild_id: guild.id } : {}),
    }
    const intents = guild ? GatewayIntentBits.GuildMessageReactions : GatewayIntentBits.DirectMessageReactions
    this.#publish({ name: isSet ? 'MESSAGE_REACTION_ADD' : 'MESSAGE_REACTION_REMOVE', data, intents })
  }

  type(channel: FakeChannel, user: APIUser): void {
    const { guild } = channel
    const data = {
      channel_id: channel.id,
      user_id: user.id,
      timestamp: Math.floor(this.now() / 1000),
      ...(guild ? { guild_id: guild.id } : {}),
    }
    const intents = guild ? GatewayIntentBits.GuildMessageTyping : GatewayIntentBits.DirectMessageTyping
    this.#publish({ name: 'TYPING_START', data, intents })
  }

  permissionsIn(user: APIUser, channel: FakeChannel): bigint {
    const { guild } = channel
    if (!guild) return EVERY_PERMISSION
    const member = guild.members.get(user.id)
    if (!member) return 0n
    if (guild.ownerId === user.id) return EVERY_PERMISSION
    const roles = [guild.id, ...member.roles]
    const base = roles.reduce((all, id) => all | BigInt(guild.roles.get(id)?.permissions ?? 0), 0n)
    if (base & PermissionFlagsBits.Administrator) return EVERY_PERMISSION
    const { overwrites } = channel.thread ? this.#parentOf(channel) : channel
    // First everyone, then all roles together, then the member: each denies before it allows.
    const steps = [
      overwrites.filter(({ id }) => id === guild.id),
      overwrites.filter(({ id }) => member.roles.includes(id)),
      overwrites.filter(({ id }) => id === user.id),
    ]
    return steps.reduce((permissions, step) => {
      const denied = step.reduce((all, { deny }) => all | BigInt(deny), 0n)
      const allowed = step.reduce((all, { allow }) => all | BigInt(allow), 0n)
      return (permissions & ~denied) | allowed
    }, base)
  }

  #parentOf(thread: FakeChannel): FakeChannel {
    return this.channels.get(thread.parentId ?? '') ?? thread
  }

  canView(channel: FakeChannel): boolean {
    return (this.permissionsIn(this.bot, channel) & PermissionFlagsBits.ViewChannel) !== 0n
  }

  /** Makes a file available for download. */
  store(channel: FakeChannel, name: string, type: string, content: Uint8Array, baseUrl: string): APIAttachment {
    const id = this.nextId()
    // Discord keeps only these characters in the name.
    const filename = name.replaceAll(/[^\w.-]/g, '_')
    this.files.set(id, { name: filename, type, content })
    const url = `${baseUrl}/attachments/${channel.id}/${id}/${filename}`
    return { id, filename, size: content.length, url, proxy_url: url, content_type: type }
  }

  channelPayload(channel: FakeChannel): APIChannel {
    const { id, type, name, guild, thread, lastMessageId, overwrites } = channel
    if (thread) return this.#threadPayload(channel, thread)
    if (channel.recipient) {
      const recipients = [channel.recipient]
      return { id, type: ChannelType.DM, name: null, last_message_id: lastMessageId, recipients, flags: NO_FLAGS }
    }
    return {
      id,
      type,
      name,
      guild_id: guild?.id,
      position: 0,
      parent_id: channel.parentId ?? null,
      topic: channel.topic ?? null,
      nsfw: false,
      last_message_id: lastMessageId,
      rate_limit_per_user: 0,
      permission_overwrites: overwrites,
      flags: NO_FLAGS,
    } as APIChannel
  }

  #threadPayload(channel: FakeChannel, thread: FakeThread): APIThreadChannel {
    return {
      id: channel.id,
      type: ChannelType.PublicThread,
      name: channel.name ?? '',
      ...(channel.guild ? { guild_id: channel.guild.id } : {}),
      ...(channel.parentId === undefined ? {} : { parent_id: channel.parentId }),
      owner_id: thread.ownerId,
      last_message_id: channel.lastMessageId,
      message_count: thread.messageCount,
      total_message_sent: thread.totalMessageSent,
      member_count: thread.memberIds.size,
      rate_limit_per_user: 0,
      flags: NO_FLAGS,
      thread_metadata: {
        archived: thread.isArchived,
        auto_archive_duration: 4320,
        archive_timestamp: isoTime(thread.archiveChangedAt),
        locked: thread.isLocked,
        create_timestamp: isoTime(thread.createdAt),
      },
      ...(thread.memberIds.has(this.bot.id) ? { member: this.threadMember(channel, this.bot.id) } : {}),
    }
  }

  threadMember(channel: FakeChannel, userId: string) {
    const join_timestamp = isoTime(channel.thread?.createdAt ?? 0)
    return { id: channel.id, user_id: userId, join_timestamp, flags: NO_FLAGS }
  }

  memberOf(guild: FakeGuild, user: APIUser): APIGuildMember {
    return memberPayload(this.join(user, guild))
  }

  guildPayload(guild: FakeGuild): GatewayGuildCreateDispatchData {
    const channels = [...guild.channels.values()]
    const isActive = (channel: FakeChannel) => channel.thread?.isArchived === false && this.canView(channel)
    return {
      ...guildFields(guild),
      joined_at: isoTime(guild.createdAt),
      large: false,
      unavailable: false,
      member_count: guild.members.size,
      voice_states: [],
      // Without the members intent only the bot itself is listed.
      members: [this.memberOf(guild, this.bot)],
      channels: channels.filter(({ thread }) => !thread).map((channel) => this.channelPayload(channel)) as never,
      threads: channels.filter(isActive).map((channel) => this.channelPayload(channel)) as never,
      presences: [],
      stage_instances: [],
      guild_scheduled_events: [],
      soundboard_sounds: [],
    }
  }

  /** A message as the API returns it; `canRead` is whether the application may read messages not addressed to it. */
  payload(record: FakeMessage, canRead: boolean): APIMessage {
    const { core, channel, repliesTo } = record
    const thread = this.channels.get(core.id)
    const shown = canRead || this.#isForUs(record) ? core : conceal(core)
    return {
      ...shown,
      ...(record.reactions.size > 0 ? { reactions: this.#reactions(record) } : {}),
      ...(thread && channel.id !== thread.id ? { thread: this.channelPayload(thread) } : {}),
      ...(repliesTo ? { referenced_message: this.#referenced(repliesTo, canRead) } : {}),
    }
  }

  #referenced(record: FakeMessage, canRead: boolean): APIMessage | null {
    if (!this.messages.has(record.core.id)) return null
    const { referenced_message: _nested, ...message } = this.payload({ ...record, repliesTo: undefined }, canRead)
    return message
  }

  /** In a direct message, sent by the bot or to the bot. */
  #isForUs({ core, channel }: FakeMessage): boolean {
    const isOurs = core.author.id === this.bot.id
    return !channel.guild || isOurs || core.mentions.some(({ id }) => id === this.bot.id)
  }

  #reactions(record: FakeMessage): NonNullable<APIMessage['reactions']> {
    return [...record.reactions].map(([name, users]) => ({
      emoji: { id: null, name },
      count: users.size,
      count_details: { burst: 0, normal: users.size },
      me: users.has(this.bot.id),
      me_burst: false,
      burst_colors: [],
    }))
  }

  /** The nonce is in this event and in the response to the POST, but in no later read. */
  #publishMessage(name: 'MESSAGE_CREATE' | 'MESSAGE_UPDATE', record: FakeMessage, nonce?: string | number): void {
    if (!this.canView(record.channel)) return
    const intents = messageIntents(record.channel)
    const data = { ...this.#messageEvent(record, true), ...(nonce === undefined ? {} : { nonce }) }
    if (this.#isForUs(record)) this.#publish({ name, data, intents })
    else this.#publish({ name, data, intents, concealed: this.#messageEvent(record, false) })
  }

  #messageEvent(record: FakeMessage, canRead: boolean): object {
    const { guild, type } = record.channel
    const payload = this.payload(record, canRead)
    if (!guild) return { ...payload, channel_type: type }
    const withoutUser = ({ user: _user, ...member }: APIGuildMember) => member
    return {
      ...payload,
      guild_id: guild.id,
      channel_type: type,
      member: withoutUser(this.memberOf(guild, record.core.author)),
      mentions: payload.mentions.map((user) => ({ ...user, member: withoutUser(this.memberOf(guild, user)) })),
    }
  }

  #mentions({ channel, content = '', repliesTo, allowedMentions }: Draft) {
    const allows = (kind: string, id: string, listed: string[] | undefined) =>
      !allowedMentions || (allowedMentions.parse ?? []).includes(kind) || (listed ?? []).includes(id)
    const mentioned = [...content.matchAll(/<@!?(\d+)>/g)]
      .map(([, id = '']) => this.users.get(id))
      .filter((user) => user !== undefined)
      .filter(({ id }) => allows('users', id, allowedMentions?.users))
    const isReplyPinged = allowedMentions ? allowedMentions.replied_user === true : true
    if (repliesTo && isReplyPinged) mentioned.push(repliesTo.core.author)
    const roles = [...content.matchAll(/<@&(\d+)>/g)]
      .map(([, id = '']) => id)
      .filter((id) => channel.guild?.roles.has(id) && allows('roles', id, allowedMentions?.roles))
    return {
      mentions: [...new Map(mentioned.map((user) => [user.id, user])).values()],
      mention_roles: [...new Set(roles)],
      mention_everyone: /@(everyone|here)\b/.test(content) && allows('everyone', '', undefined),
    }
  }
}
