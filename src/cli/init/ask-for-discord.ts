import { wait } from '../../core/async.js'
import type { APITextChannel, ChannelType, REST, RESTAPIPartialCurrentUserGuild } from 'discord.js'
import type { GatewayConfig } from '../../config.js'
import { problemOf } from '../../config/problems.js'
import { discordTokenSchema, snowflake } from '../../config/schema.js'
import {
  describeProblem,
  DEVELOPER_PORTAL,
  identify,
  type Identity,
  isRefusal,
  ownersOf,
  readsMessages,
} from '../../channels/discord/identity.js'
import { botPage, inviteLink, nameOf } from '../discord-needs.js'
import { oneLine, printable } from '../../core/one-line.js'
import type { Choice, Prompts } from '../prompts.js'

export interface DiscordAnswers {
  /** Absent if the environment has it. */
  token: string | undefined
  /** Absent, the application's owners. */
  owner: { id: string; name?: string } | undefined
  channel?: { id: string; name: string } | undefined
  /** Absent if Discord could not be reached. */
  botName?: string
}

type TextChannel = Pick<APITextChannel, 'id' | 'name' | 'position'> & { type: ChannelType }
type Guild = Pick<RESTAPIPartialCurrentUserGuild, 'id' | 'name'>

const REQUEST_TIMEOUT_MS = 10_000
const POLL_MS = 3_000

const SKIP = { value: 'skip', label: 'Continue without Discord', hint: '"aetheel init" adds it later' } as const

/** Asks for the Discord settings, and checks each answer with Discord. Undefined if the person continues without it. */
export async function askForDiscord(
  prompts: Prompts,
  config: GatewayConfig,
  pollMs: number = POLL_MS,
): Promise<DiscordAnswers | undefined> {
  const { REST } = await import('discord.js')
  const rest = new REST({ api: config.discordApiUrl, timeout: REQUEST_TIMEOUT_MS, retries: 1 })
  const given = await askForToken(prompts, config, rest)
  if (!given) return undefined
  const { identity } = given
  const token = config.discordBotToken === undefined ? given.token : undefined
  if (!identity) {
    const question = 'Id of the user who may always talk to it. Empty: the owner of the application'
    return { token, owner: await askForOwnerId(prompts, question) }
  }
  prompts.success(`The bot is ${nameOf(identity.user)}.`)
  if (!(await checkIntent(prompts, config, rest, identity))) return undefined
  prompts.say(`To add the bot to a server, open this link:\n${await inviteLink(identity.application.id)}`)
  const owner = await askForOwner(prompts, identity)
  if (owner === SKIP.value) return undefined
  const channel = await askForChannel(prompts, config, rest, pollMs)
  return { token, owner, channel, botName: printable(identity.user.username) }
}

/** Undefined to continue without Discord; no identity if the person continues although Discord could not be reached. */
async function askForToken(
  prompts: Prompts,
  config: GatewayConfig,
  rest: REST,
): Promise<{ token: string; identity?: Identity } | undefined> {
  const given = config.discordBotToken
  if (given === undefined) {
    prompts.say(
      [
        `A bot needs an application at ${DEVELOPER_PORTAL}`,
        'Create one there ("New Application"). On its page "Bot":',
        '- turn on "Message Content Intent": without it, the bot cannot read messages',
        '- turn off "Public Bot", or others can add it to their servers',
        '- "Reset Token" shows the token',
      ].join('\n'),
    )
  } else {
    prompts.say('Using the token in DISCORD_BOT_TOKEN, which is not written to the file.')
  }
  for (;;) {
    const token =
      given ??
      (await prompts.secret({
        message: 'Bot token. Empty: continue without Discord',
        problemOf: (value) => (value === '' ? undefined : problemOf(discordTokenSchema, value)),
      }))
    if (token === '') return undefined
    const outcome = await checkToken(prompts, config, rest.setToken(token))
    if (outcome === 'skip') return undefined
    if (outcome !== 'ask again') return { token, ...outcome }
  }
}

async function checkToken(
  prompts: Prompts,
  config: GatewayConfig,
  rest: REST,
): Promise<'ask again' | 'skip' | { identity?: Identity }> {
  const isGiven = config.discordBotToken !== undefined
  for (;;) {
    try {
      return { identity: await identify(rest) }
    } catch (error) {
      prompts.warn(describeProblem(error, config.discordApiUrl))
      if (isRefusal(error) && !isGiven) return 'ask again'
      const choice = await prompts.select('The token could not be checked. What now?', [
        { value: 'again', label: 'Try again' },
        ...(isGiven ? [] : [{ value: 'other' as const, label: 'Enter another token' }]),
        { value: 'on', label: 'Continue without the check' },
        SKIP,
      ])
      if (choice === 'on') return {}
      if (choice === 'skip') return choice
      if (choice === 'other') return 'ask again'
    }
  }
}

/** False to continue without Discord. */
async function checkIntent(prompts: Prompts, config: GatewayConfig, rest: REST, identity: Identity): Promise<boolean> {
  let { application } = identity
  while (!readsMessages(application)) {
    const advice = `Turn on "Message Content Intent" and save:\n${botPage(application.id)}`
    prompts.warn(`The bot cannot read messages yet. ${advice}`)
    const choice = await prompts.select('Is it on?', [
      { value: 'yes', label: 'Yes, check again' },
      { value: 'later', label: 'Later', hint: 'the gateway does not serve Discord without it' },
      SKIP,
    ])
    if (choice !== 'yes') return choice === 'later'
    application = (await attempt(prompts, config, () => identify(rest)))?.application ?? application
  }
  prompts.success('It can read messages.')
  return true
}

async function askForOwner(
  prompts: Prompts,
  { application }: Identity,
): Promise<DiscordAnswers['owner'] | typeof SKIP.value> {
  const owners = ownersOf(application)
  const choices: Choice<string>[] = [
    ...owners.map((user) => ({ value: user.id, label: nameOf(user), hint: printable(user.username) })),
    ...(owners.length > 1 ? [{ value: 'team', label: 'Everyone in the team that owns the application' }] : []),
    { value: 'other', label: 'Someone else' },
    SKIP,
  ]
  const choice = await prompts.select('Who may always talk to it?', choices)
  if (choice === SKIP.value) return SKIP.value
  if (choice === 'team') return undefined
  if (choice !== 'other') return { id: choice, name: choices.find(({ value }) => value === choice)?.label ?? choice }
  return askForOwnerId(prompts, 'Id of that user. Empty: the owner of the application')
}

async function askForOwnerId(prompts: Prompts, message: string): Promise<DiscordAnswers['owner']> {
  const id = await prompts.text({
    message,
    problemOf: (value) => (value === '' ? undefined : problemOf(snowflake(), value)),
  })
  return id === '' ? undefined : { id }
}

async function askForChannel(
  prompts: Prompts,
  config: GatewayConfig,
  rest: REST,
  pollMs: number,
): Promise<DiscordAnswers['channel']> {
  for (;;) {
    const guilds = await findGuilds(prompts, config, rest, pollMs)
    const guild = guilds && (await askForGuild(prompts, guilds))
    if (!guild) return undefined
    const channels = await attempt(prompts, config, () => textChannels(rest, guild.id))
    if (!channels) return undefined
    const choice = await prompts.select('In which channel should people talk about this project?', [
      ...channels.map(({ id, name }) => ({ value: id, label: `#${oneLine(name, 80)}` })),
      { value: 'none', label: 'None', hint: 'choose the project with /project in a conversation' },
      { value: 'again', label: 'Check again', hint: 'for a new channel or another server' },
    ])
    if (choice === 'none') return undefined
    const channel = channels.find(({ id }) => id === choice)
    if (channel) return { id: channel.id, name: `#${printable(channel.name)}` }
  }
}

/** Waits until the bot is in a server; undefined if the person skips this. */
async function findGuilds(
  prompts: Prompts,
  config: GatewayConfig,
  rest: REST,
  pollMs: number,
): Promise<Guild[] | undefined> {
  const guilds = await attempt(prompts, config, () => guildsOf(rest))
  if (!guilds || guilds.length > 0) return guilds
  const outcome = await prompts.selectUnless(
    'The bot is not in any server yet. Open the link above; waiting for it to join …',
    [{ value: 'skip', label: 'Continue without a server' }],
    (signal) => untilInGuild(rest, pollMs, signal),
  )
  return 'chosen' in outcome ? undefined : outcome.happened
}

async function askForGuild(prompts: Prompts, guilds: Guild[]): Promise<Guild | undefined> {
  const [only, ...others] = guilds
  if (others.length === 0) {
    prompts.say(`The bot is in the server ${printable(only?.name ?? '')}.`)
    return only
  }
  const choices = guilds.map(({ id, name }) => ({ value: id, label: oneLine(name, 80) }))
  const chosen = await prompts.select('In which server should people talk about this project?', choices)
  return guilds.find(({ id }) => id === chosen)
}

async function untilInGuild(rest: REST, pollMs: number, signal: AbortSignal): Promise<Guild[]> {
  for (;;) {
    await wait(pollMs, { signal })
    // A failure may be temporary; the person can skip this.
    const guilds = await guildsOf(rest).catch(() => [])
    if (guilds.length > 0) return guilds
  }
}

async function guildsOf(rest: REST): Promise<Guild[]> {
  return (await rest.get('/users/@me/guilds')) as Guild[]
}

async function textChannels(rest: REST, guildId: string): Promise<TextChannel[]> {
  const { ChannelType: types } = await import('discord.js')
  const channels = (await rest.get(`/guilds/${guildId}/channels`)) as TextChannel[]
  return channels
    .filter(({ type }) => type === types.GuildText || type === types.GuildAnnouncement)
    .toSorted((a, b) => a.position - b.position)
}

/** Warns and returns undefined on failure. */
async function attempt<Value>(
  prompts: Prompts,
  config: GatewayConfig,
  get: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await get()
  } catch (error) {
    prompts.warn(describeProblem(error, config.discordApiUrl))
    return undefined
  }
}
