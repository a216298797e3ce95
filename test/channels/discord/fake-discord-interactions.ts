// Slash commands, autocompletion and buttons: from the person's click to the visible answer.

import { randomBytes } from 'node:crypto'
import {
  ApplicationCommandOptionType,
  ApplicationCommandType,
  ComponentType,
  InteractionContextType,
  InteractionResponseType,
  InteractionType,
  Locale,
  MessageFlags,
  MessageType,
} from 'discord.js'
import type { APIApplicationCommand, APIApplicationCommandOptionChoice, APIMessage, APIUser } from 'discord.js'
import { invalidForm, refusals } from './fake-discord-errors.js'
import {
  checkBody,
  isEmpty,
  readContent,
  storeUploads,
  type MessageBody,
  type Upload,
} from './fake-discord-message-body.js'
import { isoTime, type FakeChannel, type FakeMessage } from './fake-discord-records.js'
import type { Settings } from './fake-discord-settings.js'
import type { World, WorldEvent } from './fake-discord-world.js'

export type OptionValue = string | number | boolean
export type Choice = APIApplicationCommandOptionChoice

export interface FakeInteraction {
  id: string
  token: string
  type: InteractionType
  name: string
  user: APIUser
  channel: FakeChannel
  createdAt: number
  /** The message with the button. */
  source?: FakeMessage
  callback?: InteractionResponseType
  /** What `@original` is. */
  response?: FakeMessage | undefined
  followUps: FakeMessage[]
  choices?: Choice[]
}

interface CallbackBody {
  type?: InteractionResponseType
  data?: MessageBody & { choices?: Choice[] }
}

const MOST_CHOICES = 25
const LONGEST_CHOICE = 100
const ATTACHMENT_LIMIT = 10_485_760

export class Interactions {
  commands: APIApplicationCommand[] = []
  readonly #byId = new Map<string, FakeInteraction>()
  readonly #byToken = new Map<string, FakeInteraction>()

  constructor(
    readonly world: World,
    readonly settings: Settings,
    readonly publish: (event: WorldEvent) => void,
    readonly baseUrl: () => string,
  ) {}

  command(user: APIUser, channel: FakeChannel, name: string, options: Record<string, OptionValue>): FakeInteraction {
    const command = this.#command(name)
    const given = Object.entries(options).map(([option, value]) => ({ ...this.#option(command, option), value }))
    return this.#start(user, channel, name, InteractionType.ApplicationCommand, this.#commandData(command, given))
  }

  autocomplete(
    user: APIUser,
    channel: FakeChannel,
    name: string,
    option: string,
    typed: string,
    others: Record<string, OptionValue>,
  ): FakeInteraction {
    const command = this.#command(name)
    const given = [
      ...Object.entries(others).map(([other, value]) => ({ ...this.#option(command, other), value })),
      { ...this.#option(command, option), value: typed, focused: true },
    ]
    const type = InteractionType.ApplicationCommandAutocomplete
    return this.#start(user, channel, name, type, this.#commandData(command, given))
  }

  press(user: APIUser, source: FakeMessage, customId: string): FakeInteraction {
    if (!customIds(source.core).includes(customId)) {
      throw new Error(
        `Message ${source.core.id} has no button ${customId}; it has: ${customIds(source.core).join(', ')}`,
      )
    }
    const data = { custom_id: customId, component_type: ComponentType.Button, id: 2 }
    return this.#start(user, source.channel, customId, InteractionType.MessageComponent, data, source)
  }

  /** The first response. Returns what `with_response` asks for. */
  callback(id: string, token: string, body: CallbackBody, uploads: Upload[]): object {
    const interaction = this.#byId.get(id)
    if (interaction?.token !== token) throw refusals.unknownInteraction()
    if (interaction.callback !== undefined) throw refusals.alreadyAcknowledged()
    const ageMs = this.world.now() - interaction.createdAt
    if (ageMs > this.settings.interactionDeadlineMs) throw refusals.unknownInteraction()
    const { type } = body
    if (type === undefined || !fits(interaction.type, type)) {
      throw invalidForm('type', 'BASE_TYPE_CHOICES', 'This interaction cannot be answered so.')
    }
    this.#answer(interaction, type, body.data ?? {}, uploads)
    interaction.callback = type
    return this.#callbackResponse(interaction, type)
  }

  /** The message meant by `@original` or an id. */
  find(token: string, id: string): FakeMessage {
    const interaction = this.#valid(token)
    const found = id === '@original' ? interaction.response : interaction.followUps.find(({ core }) => core.id === id)
    if (!found) throw refusals.unknownMessage()
    return found
  }

  edit(token: string, id: string, body: MessageBody, uploads: Upload[]): FakeMessage {
    const record = this.find(token, id)
    this.#change(record, body, uploads)
    return record
  }

  delete(token: string, id: string): void {
    const interaction = this.#valid(token)
    const record = this.find(token, id)
    if (!record.isEphemeral) this.world.delete(record)
    if (interaction.response === record) interaction.response = undefined
    interaction.followUps = interaction.followUps.filter((other) => other !== record)
  }

  followUp(token: string, body: MessageBody, uploads: Upload[]): FakeMessage {
    const interaction = this.#valid(token)
    const { response } = interaction
    // As documented: the first one replaces a deferred response.
    if (response && isLoading(response.core)) {
      this.#change(response, body, uploads)
      return response
    }
    const record = this.#post(interaction, body, uploads, response ?? interaction.source)
    interaction.followUps.push(record)
    return record
  }

  payload(record: FakeMessage): APIMessage {
    return this.world.payload(record, true)
  }

  #valid(token: string): FakeInteraction {
    const interaction = this.#byToken.get(token)
    if (interaction?.callback === undefined) throw refusals.unknownWebhook()
    const ageMs = this.world.now() - interaction.createdAt
    if (ageMs > this.settings.interactionTokenMs) throw refusals.invalidWebhookToken()
    return interaction
  }

  #start(
    user: APIUser,
    channel: FakeChannel,
    name: string,
    type: InteractionType,
    data: object,
    source?: FakeMessage,
  ): FakeInteraction {
    const { world } = this
    const interaction: FakeInteraction = {
      id: world.nextId(),
      token: randomBytes(48).toString('base64url'),
      type,
      name,
      user,
      channel,
      createdAt: world.now(),
      followUps: [],
      ...(source ? { source } : {}),
    }
    this.#byId.set(interaction.id, interaction)
    this.#byToken.set(interaction.token, interaction)
    this.publish({ name: 'INTERACTION_CREATE', data: this.#payload(interaction, data), intents: 0 })
    return interaction
  }

  #payload(interaction: FakeInteraction, data: object): object {
    const { world } = this
    const { id, token, type, user, channel, source } = interaction
    const { guild } = channel
    const member = guild && world.memberOf(guild, user)
    const permissions = String(world.permissionsIn(user, channel))
    return {
      id,
      application_id: world.bot.id,
      type,
      data,
      token,
      version: 1,
      channel_id: channel.id,
      channel: { ...world.channelPayload(channel), permissions },
      ...(guild
        ? {
            guild_id: guild.id,
            guild: { id: guild.id, locale: Locale.EnglishUS, features: [] },
            guild_locale: Locale.EnglishUS,
            member: { ...member, permissions },
          }
        : { user }),
      ...(source ? { message: world.payload(source, true) } : {}),
      app_permissions: String(world.permissionsIn(world.bot, channel)),
      locale: Locale.EnglishUS,
      entitlements: [],
      authorizing_integration_owners: { 0: guild?.id ?? '0' },
      context: guild ? InteractionContextType.Guild : InteractionContextType.BotDM,
      attachment_size_limit: ATTACHMENT_LIMIT,
    }
  }

  #command(name: string): APIApplicationCommand {
    const command = this.commands.find((known) => known.name === name)
    if (command) return command
    throw new Error(`/${name} is not registered; known: ${this.commands.map((known) => known.name).join(', ')}`)
  }

  #option(command: APIApplicationCommand, name: string): { name: string; type: ApplicationCommandOptionType } {
    const option = command.options?.find((known) => known.name === name)
    if (!option) throw new Error(`/${command.name} has no option ${name}`)
    return { name, type: option.type }
  }

  #commandData(
    command: APIApplicationCommand,
    options: { type: ApplicationCommandOptionType; value?: unknown }[],
  ): object {
    const chosen = options.filter(({ type }) => type === ApplicationCommandOptionType.User)
    const users = chosen.flatMap(({ value }) => this.world.users.get(String(value)) ?? [])
    return {
      id: command.id,
      name: command.name,
      type: ApplicationCommandType.ChatInput,
      options,
      ...(users.length > 0 && { resolved: { users: Object.fromEntries(users.map((user) => [user.id, user])) } }),
    }
  }

  #answer(
    interaction: FakeInteraction,
    type: InteractionResponseType,
    data: NonNullable<CallbackBody['data']>,
    uploads: Upload[],
  ): void {
    switch (type) {
      case InteractionResponseType.ChannelMessageWithSource: {
        interaction.response = this.#post(interaction, data, uploads, interaction.source)
        return
      }
      case InteractionResponseType.DeferredChannelMessageWithSource: {
        const flags = ((data.flags ?? 0) & MessageFlags.Ephemeral) | MessageFlags.Loading
        interaction.response = this.#create(interaction, { flags }, [], interaction.source)
        return
      }
      case InteractionResponseType.DeferredMessageUpdate: {
        interaction.response = interaction.source
        return
      }
      case InteractionResponseType.UpdateMessage: {
        interaction.response = interaction.source
        if (interaction.source) this.#change(interaction.source, data, uploads)
        return
      }
      case InteractionResponseType.ApplicationCommandAutocompleteResult: {
        interaction.choices = checkChoices(data.choices ?? [])
        return
      }
      default:
    }
  }

  #callbackResponse(interaction: FakeInteraction, type: InteractionResponseType): object {
    const { id, response } = interaction
    const hasMessage =
      type === InteractionResponseType.ChannelMessageWithSource || type === InteractionResponseType.UpdateMessage
    return {
      interaction: {
        id,
        type: interaction.type,
        ...(response
          ? {
              response_message_id: response.core.id,
              response_message_loading: isLoading(response.core),
              response_message_ephemeral: response.isEphemeral,
            }
          : {}),
      },
      resource: { type, ...(response && hasMessage ? { message: this.payload(response) } : {}) },
    }
  }

  #post(interaction: FakeInteraction, body: MessageBody, uploads: Upload[], answers?: FakeMessage): FakeMessage {
    checkBody(body)
    const isBare = !body.content?.trim() && !body.embeds?.length && !body.components?.length && uploads.length === 0
    if (isBare) throw refusals.emptyMessage()
    return this.#create(interaction, body, uploads, answers)
  }

  #create(interaction: FakeInteraction, body: MessageBody, uploads: Upload[], answers?: FakeMessage): FakeMessage {
    const { world } = this
    const { id, type, name, user, channel } = interaction
    const owners = { 0: channel.guild?.id ?? '0' }
    const isCommand = type === InteractionType.ApplicationCommand && !answers
    return world.post({
      channel,
      author: world.bot,
      ...readContent(body),
      flags: body.flags ?? 0,
      attachments: storeUploads(world, channel, body, uploads, this.settings, this.baseUrl()),
      components: body.components ?? [],
      embeds: body.embeds ?? [],
      allowedMentions: body.allowed_mentions ?? { parse: ['users', 'roles', 'everyone'] },
      isEphemeral: ((body.flags ?? 0) & MessageFlags.Ephemeral) !== 0,
      ...(answers ? { repliesTo: answers } : {}),
      ...(isCommand ? { type: MessageType.ChatInputCommand } : {}),
      more: {
        webhook_id: world.bot.id,
        application_id: world.bot.id,
        ...(isCommand
          ? {
              interaction_metadata: { id, type, user, authorizing_integration_owners: owners },
              interaction: { id, type, name, user },
            }
          : {}),
      },
    })
  }

  #change(record: FakeMessage, body: MessageBody, uploads: Upload[]): void {
    checkBody(body)
    const { core, channel } = record
    const added = storeUploads(this.world, channel, body, uploads, this.settings, this.baseUrl())
    const kept = core.attachments.filter(({ id }) => !body.attachments || body.attachments.some((one) => one.id === id))
    const changed = {
      ...readContent(body),
      ...(body.embeds === undefined ? {} : { embeds: body.embeds }),
      ...(body.components === undefined ? {} : { components: body.components ?? [] }),
      attachments: [...kept, ...added],
    }
    if (isEmpty({ ...core, ...changed })) throw refusals.emptyMessage()
    const flags = (core.flags ?? 0) & ~MessageFlags.Loading
    const edited_timestamp = isLoading(core) ? null : isoTime(this.world.now())
    this.world.edit(record, { ...changed, flags, edited_timestamp }, body.allowed_mentions)
  }
}

export function isLoading({ flags }: APIMessage): boolean {
  return ((flags ?? 0) & MessageFlags.Loading) !== 0
}

export function customIds(message: APIMessage): string[] {
  return (message.components ?? [])
    .flatMap((row) => ('components' in row ? (row.components as { custom_id?: string }[]) : []))
    .flatMap(({ custom_id: id }) => (id === undefined ? [] : [id]))
}

function fits(interaction: InteractionType, callback: InteractionResponseType): boolean {
  switch (callback) {
    case InteractionResponseType.ApplicationCommandAutocompleteResult: {
      return interaction === InteractionType.ApplicationCommandAutocomplete
    }
    case InteractionResponseType.DeferredMessageUpdate:
    case InteractionResponseType.UpdateMessage: {
      return interaction === InteractionType.MessageComponent
    }
    case InteractionResponseType.ChannelMessageWithSource:
    case InteractionResponseType.DeferredChannelMessageWithSource:
    case InteractionResponseType.Modal: {
      return interaction !== InteractionType.ApplicationCommandAutocomplete
    }
    default: {
      return false
    }
  }
}

function checkChoices(choices: Choice[]): Choice[] {
  if (choices.length > MOST_CHOICES) {
    throw invalidForm('data.choices', 'BASE_TYPE_MAX_LENGTH', `Must be ${MOST_CHOICES} or fewer in length.`)
  }
  for (const [index, { name, value }] of choices.entries()) {
    const isWrong = name.length === 0 || name.length > LONGEST_CHOICE || String(value).length > LONGEST_CHOICE
    if (isWrong) {
      const message = `Must be between 1 and ${LONGEST_CHOICE} in length.`
      throw invalidForm(`data.choices.${index}.name`, 'BASE_TYPE_BAD_LENGTH', message)
    }
  }
  return choices
}
