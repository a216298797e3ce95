// A gateway in this process with the real Discord client, and a Discord on loopback.

import type { APIMessage, APIUser } from 'discord.js'
import type { TestContext } from 'vitest'
import { openDiscord } from '../../../src/channels/configured-channels.js'
import type { GatewayConfig } from '../../../src/config.js'
import type { Gateway, GatewayDependencies } from '../../../src/gateway.js'
import { GatewayStage } from '../../kit/gateway-stage.js'
import { STEPS_AGENT } from '../../kit/steps-agent.js'
import { until } from '../../kit/waiting.js'
import { FakeDiscord } from './fake-discord.js'
import type { FakeChannel, FakeGuild } from './fake-discord-records.js'

export class DiscordStage extends GatewayStage {
  private constructor(
    readonly discord: FakeDiscord,
    onTestFinished: TestContext['onTestFinished'],
  ) {
    super(onTestFinished)
  }

  static async open(onTestFinished: TestContext['onTestFinished']): Promise<DiscordStage> {
    const discord = await FakeDiscord.start()
    onTestFinished(() => discord.stop())
    // Discord waits three seconds, a test as long as it takes.
    discord.settings.interactionDeadlineMs = 60_000
    return new DiscordStage(discord, onTestFinished)
  }

  /** `settings` go into the configuration file, in addition to what every test needs. */
  config(settings: object = {}): GatewayConfig {
    return this.load({
      backendCliPath: STEPS_AGENT,
      agentMode: 'oneshot',
      workingDir: this.workingDir,
      discordBotToken: this.discord.token,
      discordApiUrl: this.discord.apiUrl,
      drainTimeoutMs: 0,
      // Most tests look at the answers themselves.
      discordFooter: false,
      ...settings,
    })
  }

  /** `now` is the channel's clock. */
  async start(
    settings: object = {},
    { now = Date.now, ...more }: Pick<GatewayDependencies, 'onStep'> & { now?: () => number } = {},
  ): Promise<Gateway> {
    const config = this.config(settings)
    const discord = await openDiscord(config, this.log, now)
    if (!discord) throw new Error('There is no token')
    return this.launch(config, { channels: [discord], ...more })
  }

  /** Warnings and errors. */
  problems(): string[] {
    return this.logged.filter((line) => (JSON.parse(line) as { level: number }).level >= 40)
  }
}

export interface Scene {
  stage: DiscordStage
  discord: FakeDiscord
  guild: FakeGuild
  channel: FakeChannel
  /** Two people who own nothing. */
  ada: APIUser
  ben: APIUser
  gateway: Gateway
}

/** A running gateway, and a server with one channel; the settings may refer to what exists. */
export async function openScene(
  onTestFinished: TestContext['onTestFinished'],
  settings: object | ((world: Omit<Scene, 'gateway'>) => object) = {},
): Promise<Scene> {
  const stage = await DiscordStage.open(onTestFinished)
  const { discord } = stage
  const guild = discord.addGuild()
  const channel = discord.addChannel(guild)
  const world = { stage, discord, guild, channel, ada: discord.addUser('ada'), ben: discord.addUser('ben') }
  const gateway = await stage.start(typeof settings === 'function' ? settings(world) : settings)
  return { ...world, gateway }
}

/** Starts a conversation of the owner in the channel, and waits for the answer. */
export async function beginThread({ discord, channel }: Pick<Scene, 'discord' | 'channel'>): Promise<FakeChannel> {
  const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
  await answered(discord, id)
  // On a slow machine it has a progress message, removed only after its answer, which must not be mistaken for
  // another's.
  await until(() => !progressIn(discord, id), 'the end of the progress message')
  return discord.threadOf(id) as FakeChannel
}

/** Waits for that many final messages of the bot in a channel or thread, which need not exist yet. */
export async function answered(discord: FakeDiscord, channelId: string, count = 1): Promise<string[]> {
  return until(() => {
    const answers = answersIn(discord, channelId)
    return answers.length >= count && answers
  }, `${count} answers in ${channelId}`)
}

/** The bot's final messages: all except progress messages. */
export function answersIn(discord: FakeDiscord, channelId: string): string[] {
  return ownMessagesIn(discord, channelId)
    .filter((message) => !isProgress(discord, message))
    .map(({ content }) => content)
}

/** The progress message. */
export function progressIn(discord: FakeDiscord, channelId: string): APIMessage | undefined {
  return ownMessagesIn(discord, channelId).find((message) => isProgress(discord, message))
}

function ownMessagesIn(discord: FakeDiscord, channelId: string): APIMessage[] {
  if (!discord.threadOf(channelId)) return []
  return discord.messagesIn(channelId).filter(({ author }) => author.id === discord.bot.id)
}

function isProgress(discord: FakeDiscord, message: APIMessage): boolean {
  return discord.buttonsOf(message).some((id) => id.startsWith('stop:'))
}
