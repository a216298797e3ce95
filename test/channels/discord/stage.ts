// A whole gateway with the real Discord client, in this process, and a Discord on loopback.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { APIMessage, APIUser } from 'discord.js'
import type { TestContext } from 'vitest'
import { type GatewayConfig, loadConfig } from '../../../src/config.js'
import { openDiscord } from '../../../src/channels/configured-channels.js'
import { databaseFile, type Gateway, type GatewayDependencies, makeHome, startGateway } from '../../../src/gateway.js'
import { createLog, type Log } from '../../../src/log.js'
import { endLivingProcesses, livingProcesses } from '../../kit/living-processes.js'
import { putDatabase } from '../../kit/put-database.js'
import { journalIn, until } from '../../kit/waiting.js'
import { FakeDiscord } from './fake-discord.js'
import type { FakeChannel, FakeGuild } from './fake-discord-records.js'

export const AGENT = fileURLToPath(new URL('../../fixtures/bin/steps-agent.mjs', import.meta.url))

export interface Journaled {
  prompt: string
  sessionId: string
  isResumed: boolean
  model: string
}

export class DiscordStage {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-discord-')))
  readonly workingDir = this.makeDirectory('work')
  readonly logged: string[] = []
  readonly log: Log = createLog({
    level: 'debug',
    destination: { write: (line) => this.logged.push(String(line)) > 0 },
  })
  readonly #running = new Set<Gateway>()

  private constructor(readonly discord: FakeDiscord) {}

  /** Everything is stopped and removed when the test is over. */
  static async open(onTestFinished: TestContext['onTestFinished']): Promise<DiscordStage> {
    const stage = new DiscordStage(await FakeDiscord.start())
    // Discord waits three seconds, a test as long as it takes.
    stage.discord.settings.interactionDeadlineMs = 60_000
    onTestFinished(async () => {
      for (const gateway of [...stage.#running]) await stage.stop(gateway)
      await stage.discord.stop()
      endLivingProcesses(stage.directory)
      rmSync(stage.directory, { recursive: true, force: true })
    })
    return stage
  }

  config(settings: object = {}): GatewayConfig {
    const file = join(this.directory, 'aetheel.json5')
    const defaults = {
      backendCliPath: AGENT,
      agentMode: 'oneshot',
      workingDir: this.workingDir,
      discordBotToken: this.discord.token,
      discordApiUrl: this.discord.apiUrl,
      drainTimeoutMs: 0,
    }
    writeFileSync(file, JSON.stringify({ ...defaults, ...settings }))
    const home = join(this.directory, 'home')
    return loadConfig({ PATH: process.env['PATH'], HOME: home, AETHEEL_HOME: join(this.directory, 'data') }, file)
  }

  /** `settings` go into the configuration file, besides what every test needs; `now` is the channel's clock. */
  async start(
    settings: object = {},
    { now = Date.now, ...more }: Pick<GatewayDependencies, 'onStep'> & { now?: () => number } = {},
  ): Promise<Gateway> {
    const config = this.config(settings)
    makeHome(config)
    putDatabase({ file: databaseFile(config), databaseUrl: config.databaseUrl })
    const discord = await openDiscord(config, this.log, now)
    if (!discord) throw new Error('There is no token')
    const environment = { PATH: process.env['PATH'], HOME: join(this.directory, 'home') }
    const gateway = await startGateway(config, { environment, log: this.log, channels: [discord], ...more })
    this.#running.add(gateway)
    return gateway
  }

  async stop(gateway: Gateway): Promise<void> {
    if (this.#running.delete(gateway)) await gateway.stop()
  }

  /** Releases an agent that waits at `{"hold": name}`. */
  release(name: string): void {
    writeFileSync(join(this.workingDir, `go-${name}`), '')
  }

  makeDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path)
    return path
  }

  /** The prompts the agents got, in order. */
  journal(directory = this.workingDir): Journaled[] {
    return journalIn(directory)
  }

  /** The agents' running processes. */
  alive(): string[] {
    return livingProcesses(this.directory).map(({ command }) => command)
  }

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

/** Steps for the agent, as a message. */
export function steps(...list: object[]): string {
  return JSON.stringify(list)
}
