import { ChannelType, PermissionFlagsBits } from 'discord.js'
import { describe, expect, it, type TestContext } from 'vitest'
import { discordReport } from '../../../src/cli/doctor/discord-report.js'
import { type ChannelFacts, type DiscordFacts, discordFindings } from '../../../src/cli/doctor/discord-findings.js'
import { describeProblem } from '../../../src/channels/discord/identity.js'
import { inviteLink } from '../../../src/cli/discord-needs.js'
import { type GatewayConfig, loadConfig } from '../../../src/config.js'
import { FakeDiscord } from '../../channels/discord/fake-discord.js'

const ROLES_ADVICE = "    Give them to the bot's role: in Server Settings, Roles, or in the channel's permissions"
const SIGHT_ADVICE = '    Give the bot\'s role "View Channels" there, add the bot to that server, or check the id'
const OWNER_ONLY = '✓ Discord: only the owner (owner) may talk to it; to let others in, see docs/discord.md'

describe.concurrent('discordReport', () => {
  it('has one line when Discord is not configured', async () => {
    expect(await discordReport(loadConfig({ HOME: '/home/ada' }))).toEqual({
      text: '- Discord: not configured; run "aetheel init" or see docs/discord.md',
      isHealthy: true,
    })
  })

  it('finds nothing against a bot that is well, and leaves', async (test) => {
    const discord = await start(test)
    const guild = discord.addGuild({ name: 'Team' })
    discord.addChannel(guild, { name: 'general' })
    const output = discord.addChannel(guild, { name: 'output' })
    const report = await discordReport(configOf(discord, { OUTPUT_CHANNEL_ID: output.id }))
    await discord.waitFor(() => !discord.isConnected)
    expect(report).toEqual({
      text: [
        `✓ Discord: the token works; the bot is aetheel (${discord.bot.id})`,
        '✓ Discord: the bot can read messages',
        `✓ Discord: server Team (${guild.id}): 2 channels, with all permissions`,
        '✓ Discord: outputChannelId: #output can be reached',
        OWNER_ONLY,
      ].join('\n'),
      isHealthy: true,
    })
  })

  it('says how the bot comes into a server, and how it may read', async (test) => {
    const discord = await start(test)
    discord.applicationFlags = 0
    expect(await discordReport(configOf(discord))).toEqual({
      text: [
        `✓ Discord: the token works; the bot is aetheel (${discord.bot.id})`,
        '✗ Discord: the bot cannot read messages, so the gateway does not serve Discord',
        `    Turn on "Message Content Intent" and save: https://discord.com/developers/applications/${discord.bot.id}/bot`,
        '✗ Discord: the bot is not in any server',
        `    Add it with this link: ${await inviteLink(discord.bot.id)}`,
        OWNER_ONLY,
      ].join('\n'),
      isHealthy: false,
    })
  })

  it('names the permissions that are missing, where, and what breaks', async (test) => {
    const discord = await start(test)
    const guild = discord.addGuild({ name: 'Team' })
    const rules = discord.addChannel(guild, { name: 'rules' })
    const general = discord.addChannel(guild, { name: 'general' })
    const secret = discord.addChannel(guild, { name: 'secret' })
    discord.deny(rules.id, PermissionFlagsBits.AddReactions | PermissionFlagsBits.SendMessages)
    discord.deny(general.id, PermissionFlagsBits.AddReactions)
    discord.deny(secret.id, PermissionFlagsBits.ViewChannel)
    const { text, isHealthy } = await discordReport(configOf(discord))
    expect([isHealthy, text.split('\n').slice(2)]).toEqual([
      true,
      [
        `! Discord: server Team (${guild.id}): 2 channels, permissions missing`,
        '    "Send Messages" in #rules: without it, the bot cannot answer there',
        '    "Add Reactions" everywhere: without it, the bot cannot mark a message as seen',
        ROLES_ADVICE,
        OWNER_ONLY,
      ],
    ])
  })

  it('fails when a channel that is named cannot be served', async (test) => {
    const discord = await start(test)
    const guild = discord.addGuild({ name: 'Team' })
    const dev = discord.addChannel(guild, { name: 'dev' })
    const hidden = discord.addChannel(guild, { name: 'hidden' })
    discord.addChannel(guild, { name: 'general' })
    discord.deny(dev.id, PermissionFlagsBits.CreatePublicThreads)
    discord.deny(hidden.id, PermissionFlagsBits.ViewChannel)
    const project = { id: 'web', directory: '/srv', discordChannels: [dev.id, hidden.id, '100000000000000001'] }
    const { text, isHealthy } = await discordReport({ ...configOf(discord), projects: [project] })
    expect([isHealthy, text.split('\n').slice(2)]).toEqual([
      false,
      [
        `✗ Discord: server Team (${guild.id}): 2 channels, permissions missing`,
        '    "Create Public Threads" in #dev: without it, the bot cannot open a thread for a mention',
        ROLES_ADVICE,
        `✗ Discord: projects.web.discordChannels: the bot cannot see #hidden (${hidden.id})`,
        SIGHT_ADVICE,
        '✗ Discord: projects.web.discordChannels: the bot cannot see the channel 100000000000000001',
        SIGHT_ADVICE,
        OWNER_ONLY,
      ],
    ])
  })

  it('finds ids in the lists that are nothing, or something else', async (test) => {
    const discord = await start(test)
    const guild = discord.addGuild({ name: 'Team' })
    const general = discord.addChannel(guild, { name: 'general' })
    const category = discord.addChannel(guild, { name: 'Texts', type: ChannelType.GuildCategory })
    const voice = discord.addChannel(guild, { name: 'talk', type: ChannelType.GuildVoice })
    discord.deny(voice.id, PermissionFlagsBits.SendMessages)
    const ada = discord.addUser('ada')
    const role = discord.addRole(guild, 'devs', { users: [ada] })
    const none = '100000000000000001'
    const { text, isHealthy } = await discordReport(
      configOf(discord, {
        DISCORD_OWNER_ID: none,
        DISCORD_GUILDS: `${guild.id},${none}`,
        DISCORD_CHANNELS: [general, category, guild, voice].map(({ id }) => id).join(','),
        DISCORD_USERS: `${ada.id},${none}`,
        DISCORD_ROLES: `${role.id},${guild.id},${none}`,
        OUTPUT_CHANNEL_ID: none,
      }),
    )
    expect([isHealthy, text.split('\n').slice(2)]).toEqual([
      false,
      [
        `✓ Discord: server Team (${guild.id}): 1 channel, with all permissions`,
        `✗ Discord: discordGuilds: the bot is not in the server ${none}`,
        `    Add it with ${await inviteLink(discord.bot.id)}, or remove the id`,
        `✗ Discord: discordChannels: #Texts (${category.id}) is not a text channel`,
        '    Use a text channel',
        `✗ Discord: discordChannels: ${guild.id} is the server Team`,
        '    Use the id of one of its channels',
        '✗ Discord: discordChannels: "Send Messages" is missing in #talk',
        "    Give it to the bot's role there",
        `! Discord: discordOwnerId: ${none} is in none of the bot's servers`,
        '    Check the id, have them join, or remove the id',
        `! Discord: discordUsers: ${none} is in none of the bot's servers`,
        '    Check the id, have them join, or remove the id',
        `✗ Discord: discordRoles: ${guild.id} is @everyone of Team, which lets nobody in`,
        '    Put it in discordGuilds instead',
        `! Discord: discordRoles: none of the bot's servers has the role ${none}`,
        '    Check the id, or remove it',
        `✗ Discord: outputChannelId: the bot cannot see the channel ${none}`,
        SIGHT_ADVICE,
        `✓ Discord: these may talk to it: the owner (${none}); everyone in discordUsers and discordRoles, within discordGuilds and discordChannels`,
      ],
    ])
  })

  it('refuses a wrong token', async (test) => {
    const discord = await start(test)
    expect(await discordReport(configOf(discord, { DISCORD_BOT_TOKEN: 'wrong' }))).toEqual({
      text: '✗ Discord rejected the token: get a new one on the Bot page of your application (https://discord.com/developers/applications)',
      isHealthy: false,
    })
  })

  it('says so when Discord cannot be reached', async (test) => {
    const discord = await start(test)
    await discord.stop()
    expect(await discordReport(configOf(discord))).toEqual({
      text: `✗ ${new URL(discord.apiUrl).host} cannot be reached (ECONNREFUSED): check the network, any firewall and discordApiUrl`,
      isHealthy: false,
    })
  })

  it('does not wait for ever, and leaves then, too', async (test) => {
    const discord = await start(test)
    discord.addGuild()
    discord.pauseDelivery()
    const report = await discordReport(configOf(discord), [], 500)
    discord.resumeDelivery()
    await discord.waitFor(() => !discord.isConnected)
    expect(report).toEqual({
      text: '✗ Discord did not answer within 0.5 s. Check the network, any firewall that blocks WebSockets, and https://discordstatus.com',
      isHealthy: false,
    })
  })
})

describe('discordFindings', () => {
  const general = channel('100000000000000011', '#general')
  const guild = { id: '100000000000000010', name: 'Team', isAvailable: true, roles: [], channels: [general] }
  const facts: DiscordFacts = {
    bot: { id: '1', name: 'bot' },
    applicationId: '1',
    inviteLink: 'https://invite.example',
    canReadMessages: true,
    owners: [{ id: '2', name: 'ada' }],
    guilds: [guild],
    admitted: [],
    members: new Map(),
    channels: new Map([[general.id, general]]),
  }
  const findingsOf = (config: Partial<GatewayConfig>, changes: Partial<DiscordFacts> = {}) =>
    discordFindings({ ...loadConfig({ HOME: '/home/ada' }), ...config }, { ...facts, ...changes }).slice(2)
  const audience = (config: Partial<GatewayConfig>, admitted: string[] = []) =>
    findingsOf(config, { members: new Map([['3', 'x']]), admitted }).at(-1)?.text

  it('names those who were let in by a command', () => {
    const people = ['ben', 'cat']
    const configs = [{}, { discordUsers: ['3'] }, { discordGuilds: [guild.id] }]
    expect(configs.map((config) => audience(config, people))).toEqual([
      'these may talk to it: the owner (ada); ben, cat (let in with /allow)',
      'these may talk to it: the owner (ada); everyone in discordUsers; ben, cat (let in with /allow)',
      'these may talk to it: the owner (ada); everyone, within discordGuilds; ben, cat (let in with /allow)',
    ])
  })

  it.each([
    [{}, 'only the owner (ada) may talk to it; to let others in, see docs/discord.md'],
    [{ discordUsers: ['3'] }, 'these may talk to it: the owner (ada); everyone in discordUsers'],
    [{ discordGuilds: [guild.id] }, 'these may talk to it: the owner (ada); everyone, within discordGuilds'],
    [
      { discordChannels: [general.id], discordUsers: ['3'] },
      'these may talk to it: the owner (ada); everyone in discordUsers, within discordChannels',
    ],
  ])('says who may talk with %j', (config, text) => {
    expect(audience(config)).toBe(text)
  })

  it('passes over a server that Discord has trouble with', () => {
    expect(findingsOf({}, { guilds: [{ ...guild, isAvailable: false, channels: [] }] })[0]).toEqual({
      mark: '!',
      text: `server Team (${guild.id}): unavailable now`,
      details: ['Discord may have an outage: see https://discordstatus.com'],
    })
  })

  it('reports a server in which the bot sees nothing', () => {
    const unseen = { ...general, missing: ['ViewChannel' as const] }
    expect(findingsOf({}, { guilds: [{ ...guild, channels: [unseen] }] })[0]).toEqual({
      mark: '!',
      text: `server Team (${guild.id}): the bot sees no channel`,
      details: ['Give the bot\'s role "View Channels" there'],
    })
  })

  it('does not require threads if none are opened', () => {
    const closed = { ...general, missing: ['CreatePublicThreads' as const] }
    const guilds = [{ ...guild, channels: [closed] }]
    expect([true, false].map((discordThreads) => findingsOf({ discordThreads }, { guilds })[0]?.mark)).toEqual([
      '✗',
      '✓',
    ])
  })

  it('names five channels and counts the others', () => {
    const closed = Array.from({ length: 8 }, (_, index) => ({
      ...channel(String(index), `#c${index}`),
      missing: ['AttachFiles' as const],
    }))
    expect(findingsOf({}, { guilds: [{ ...guild, channels: [general, ...closed] }] })[0]?.details[0]).toBe(
      '"Attach Files" in #c0, #c1, #c2, #c3, #c4 and 3 more: without it, the bot cannot send files',
    )
  })

  it("reports a project's channel in which only the owner may talk", () => {
    const projects = [{ id: 'web', directory: '/srv', discordChannels: [general.id] }]
    const others = { discordGuilds: ['100000000000000099'], projects }
    expect([
      findingsOf({ discordChannels: ['100000000000000012'], projects }).at(-2)?.text,
      findingsOf(others).at(-2)?.text,
    ]).toEqual([
      'projects.web.discordChannels: only the owner may talk in #general',
      `projects.web.discordChannels: ${general.id} is in Team, where only the owner may talk`,
    ])
  })

  it('takes a direct message for the output', () => {
    const direct: ChannelFacts = { id: '5', name: 'a direct message', kind: 'direct', missing: [] }
    expect(findingsOf({ outputChannelId: '5' }, { channels: new Map([['5', direct]]) })[1]).toEqual({
      mark: '✓',
      text: 'outputChannelId: a direct message can be reached',
      details: [],
    })
  })
})

describe('inviteLink', () => {
  it('asks for the permissions that are needed and no others', async () => {
    const names = [
      ...(['ViewChannel', 'SendMessages', 'SendMessagesInThreads', 'CreatePublicThreads'] as const),
      ...(['ReadMessageHistory', 'AddReactions', 'AttachFiles'] as const),
    ]
    const permissions = names.reduce((sum, name) => sum + PermissionFlagsBits[name], 0n)
    expect(await inviteLink('42')).toBe(
      `https://discord.com/oauth2/authorize?client_id=42&scope=bot+applications.commands&permissions=${permissions}`,
    )
  })
})

describe('describeProblem', () => {
  it.each([
    [Object.assign(new Error('x'), { status: 503 }), 'Discord is having problems (HTTP 503)'],
    [Object.assign(new Error('You are limited'), { status: 403 }), 'Discord says: You are limited (HTTP 403)'],
    [Object.assign(new Error('x'), { name: 'AbortError' }), 'discord.com cannot be reached (no answer in time)'],
    [new Error('fetch failed', { cause: Object.assign(new Error(), { code: 'ENOTFOUND' }) }), '(ENOTFOUND)'],
    [Object.assign(new Error('Not enough sessions'), { code: 'Sessions' }), 'Not enough sessions: try again'],
    ['nothing', 'nothing: try again'],
  ])('puts %s into words', (error, words) => {
    expect(describeProblem(error, 'https://discord.com/api')).toContain(words)
  })
})

function channel(id: string, name: string): ChannelFacts {
  return { id, name, guildId: '100000000000000010', kind: 'text', missing: [] }
}

async function start(test: TestContext): Promise<FakeDiscord> {
  const discord = await FakeDiscord.start()
  test.onTestFinished(() => discord.stop())
  return discord
}

function configOf(discord: FakeDiscord, variables: NodeJS.ProcessEnv = {}): GatewayConfig {
  return loadConfig({
    HOME: '/home/ada',
    DISCORD_BOT_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl,
    ...variables,
  })
}
