import {
  type APIApplicationCommandAutocompleteInteraction,
  type APIApplicationCommandInteraction,
  type APIApplicationCommandOption,
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageComponentInteraction,
  type APIUser,
  ApplicationCommandOptionType,
  ApplicationCommandType,
  escapeMarkdown,
  InteractionContextType,
  InteractionResponseType,
  InteractionType,
  MessageFlags,
  type RESTPostAPIApplicationCommandsJSONBody,
} from 'discord.js'
import { wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { chunkMarkdown } from '../chunk.js'
import { COMMAND_FAILED } from '../command-failed.js'
import { type AdmissionAction, readAdmission } from '../admission.js'
import type { ChannelHost, CommandDescription, Person, Place } from '../types.js'
import { type Named, personChosenIn } from './admission.js'
import { ALREADY_ACKNOWLEDGED, codeOf, type DiscordApi } from './api.js'
import { readButton } from './buttons.js'
import { MESSAGE_CHARACTERS } from './outgoing.js'

const MAX_SUGGESTIONS = 25
const LABEL_CHARACTERS = 100
/** Discord waits for three seconds. */
const DECLINE_AFTER_MS = 1_000
const STOPPING = 'The gateway is stopping. Try again when it is back.'

export interface AskCommand {
  interaction: APIChatInputApplicationCommandInteraction
  author: string
  text: string
  /** Answers in place instead of opening a thread. */
  isHere?: boolean
}

interface InteractionOptions {
  api: DiscordApi
  host: ChannelHost
  /** Why the person has no access; undefined if they have access. */
  refusalOf(interaction: APIInteraction): Promise<string | undefined>
  placeOf(interaction: APIInteraction): Promise<Place>
  /** Carries out `/allow` or `/disallow`; returns the answer for the person. */
  admit(action: AdmissionAction, person: Named, by: Person): Promise<string>
  /** Handles `/ask`. Contract: called once the interaction is acknowledged; its answer replaces the acknowledgement. */
  ask(command: AskCommand): Promise<string>
  log: Log
}

/** Slash commands, their completions, and buttons. */
export class Interactions {
  constructor(private readonly options: InteractionOptions) {}

  /** Contract: never rejects. */
  async handle(interaction: APIInteraction): Promise<void> {
    const { refusalOf, log, api } = this.options
    try {
      const problem = interaction.type === InteractionType.Ping ? undefined : await refusalOf(interaction)
      if (interaction.type === InteractionType.ApplicationCommandAutocomplete) {
        await this.#suggest(interaction, problem !== undefined)
      } else if (problem !== undefined) {
        await api.respond(interaction, {
          type: InteractionResponseType.ChannelMessageWithSource,
          data: { content: problem, flags: MessageFlags.Ephemeral },
        })
      } else if (interaction.type === InteractionType.ApplicationCommand) {
        await this.#command(interaction)
      } else if (interaction.type === InteractionType.MessageComponent) await this.#press(interaction)
    } catch (error) {
      // Another gateway answered first.
      if (codeOf(error) === ALREADY_ACKNOWLEDGED) return
      log.warn('discord.interaction-failed', { interactionId: interaction.id, error: messageOf(error) })
    }
  }

  /** While the gateway stops. Contract: never rejects. */
  async decline(interaction: APIInteraction): Promise<void> {
    const { host, api, log } = this.options
    const { ApplicationCommand, MessageComponent } = InteractionType
    if (interaction.type !== ApplicationCommand && interaction.type !== MessageComponent) return
    try {
      // A gateway that keeps running claims it first.
      await wait(DECLINE_AFTER_MS)
      if (!(await host.claim(`interaction:${interaction.id}`))) return
      await api.respond(interaction, {
        type: InteractionResponseType.ChannelMessageWithSource,
        data: { content: STOPPING, flags: MessageFlags.Ephemeral },
      })
    } catch (error) {
      log.warn('discord.interaction-failed', { interactionId: interaction.id, error: messageOf(error) })
    }
  }

  async #command(interaction: APIApplicationCommandInteraction): Promise<void> {
    if (!isChatInput(interaction)) return
    const { host, placeOf, ask, admit } = this.options
    const { name } = interaction.data
    const argument = firstOption(interaction)
    const author = nameOf(interaction)
    const isPrivate = host.commands().find((command) => command.name === name)?.isQuestion ?? false
    await this.#answer(interaction, isPrivate, async () => {
      if (name === 'ask') return ask({ interaction, author, text: argument })
      // The agent answers it, in its session.
      const line = `/${name} ${argument}`.trim()
      if (!host.isCommand(line)) return ask({ interaction, author, text: line, isHere: true })
      const admission = readAdmission(`/${name}`)
      if (admission) {
        const by = { id: userOf(interaction)?.id ?? '', name: author }
        return escapeMarkdown(await admit(admission.action, personChosenIn(interaction, argument), by))
      }
      return escapeMarkdown(await host.onCommand(await placeOf(interaction), author, line))
    })
  }

  async #press(interaction: APIMessageComponentInteraction): Promise<void> {
    const { host, api, log } = this.options
    const pressed = readButton(interaction.data.custom_id)
    if (!pressed) return
    await this.#answer(interaction, true, async () => {
      const { text, isDone } = await host.onButton(pressed.action, pressed.id, nameOf(interaction))
      // A progress message removes itself, and the gateway closes questions; these buttons would stay.
      if (isDone && (pressed.action === 'retry' || pressed.action === 'continue')) {
        const { channel_id, id } = interaction.message
        await api.edit(channel_id, id, { components: [] }).catch((error: unknown) => {
          log.warn('discord.button-stays', { error: messageOf(error) })
        })
      }
      return escapeMarkdown(text)
    })
  }

  /** Discord waits three seconds for a first response, so one that defers the answer is sent at once. */
  async #answer(
    interaction: APIApplicationCommandInteraction | APIMessageComponentInteraction,
    isPrivate: boolean,
    work: () => Promise<string>,
  ): Promise<void> {
    const { host, log, api } = this.options
    // Discord sends it to every gateway.
    if (!(await host.claim(`interaction:${interaction.id}`))) return
    const flags = isPrivate ? { flags: MessageFlags.Ephemeral as const } : {}
    await this.#defer(interaction, flags)
    const answer = await work().catch((error: unknown) => {
      log.error('discord.command-failed', { interactionId: interaction.id, error: messageOf(error) })
      return COMMAND_FAILED
    })
    const [first = '✓', ...rest] = chunkMarkdown(answer, MESSAGE_CHARACTERS)
    await api.editResponse(interaction, first)
    for (const part of rest) await api.followUp(interaction, part, flags)
  }

  async #defer(interaction: APIInteraction, data: { flags?: MessageFlags.Ephemeral }): Promise<void> {
    const { api } = this.options
    const response = { type: InteractionResponseType.DeferredChannelMessageWithSource as const, data }
    try {
      await api.respond(interaction, response)
    } catch (error) {
      const code = codeOf(error)
      // The response to the first attempt was lost, and perhaps the attempt itself.
      if (code === undefined) await api.respond(interaction, response).catch(ignoreAcknowledged)
      else ignoreAcknowledged(error)
    }
  }

  async #suggest(interaction: APIApplicationCommandAutocompleteInteraction, isRefused: boolean): Promise<void> {
    const { api, host, placeOf } = this.options
    const typed = firstOption(interaction)
    const found = isRefused ? [] : await host.suggest(await placeOf(interaction), interaction.data.name, typed)
    const choices = found.slice(0, MAX_SUGGESTIONS).map(({ label, value }) => ({
      name: label.slice(0, LABEL_CHARACTERS),
      value: value.slice(0, LABEL_CHARACTERS),
    }))
    await api.respond(interaction, {
      type: InteractionResponseType.ApplicationCommandAutocompleteResult,
      data: { choices },
    })
  }
}

/** The commands in Discord's format. */
export function slashCommands(commands: CommandDescription[]): RESTPostAPIApplicationCommandsJSONBody[] {
  return commands.map(({ name, meaning, argument }) => ({
    type: ApplicationCommandType.ChatInput,
    name,
    description: meaning.slice(0, LABEL_CHARACTERS),
    contexts: [InteractionContextType.Guild, InteractionContextType.BotDM],
    ...(argument && { options: [optionOf(argument)] }),
  }))
}

function optionOf(argument: NonNullable<CommandDescription['argument']>): APIApplicationCommandOption {
  const { name, meaning, isRequired: required, hasSuggestions, isPerson } = argument
  const described = { name, description: meaning.slice(0, LABEL_CHARACTERS), required }
  if (isPerson) return { ...described, type: ApplicationCommandOptionType.User }
  return { ...described, type: ApplicationCommandOptionType.String, ...(hasSuggestions && { autocomplete: true }) }
}

function ignoreAcknowledged(error: unknown): void {
  if (codeOf(error) !== ALREADY_ACKNOWLEDGED) throw error
}

function isChatInput(
  interaction: APIApplicationCommandInteraction,
): interaction is APIChatInputApplicationCommandInteraction {
  return interaction.data.type === ApplicationCommandType.ChatInput
}

/** The text that was typed: each of our commands takes at most one option. */
function firstOption({
  data,
}: APIChatInputApplicationCommandInteraction | APIApplicationCommandAutocompleteInteraction): string {
  const [option] = data.options ?? []
  return option && 'value' in option ? String(option.value) : ''
}

function nameOf(interaction: APIInteraction): string {
  return userOf(interaction)?.username ?? 'someone'
}

function userOf({ member, user }: APIInteraction): APIUser | undefined {
  return member?.user ?? user
}
