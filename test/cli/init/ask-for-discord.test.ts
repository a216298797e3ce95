import { readdirSync, readFileSync } from 'node:fs'
import { ChannelType } from 'discord.js'
import { describe, expect, it, type TestContext } from 'vitest'
import { configCheck } from '../../../src/cli/commands/config.js'
import { inviteLink } from '../../../src/cli/discord-needs.js'
import { FakeDiscord } from '../../channels/discord/fake-discord.js'
import {
  AGENT,
  CTRL_C,
  CTRL_U,
  DIRECTORY,
  DISCORD,
  DOWN,
  ENTER,
  ID,
  Machine,
  PERMISSIONS,
  type Person,
  WHERE,
} from './init-stage.js'

const UP = '\u001B[A'
const TOKEN = 'Bot token.'
const UNCHECKED = 'The token could not be checked. What now?'
const OWNER = 'Who may always talk to it?'
const WAITING = 'The bot is not in any server yet.'
const CHANNEL = 'In which channel should people talk about this project?'

describe.concurrent('aetheel init with Discord', () => {
  it('checks the token, and writes it with the owner and the channel of the project', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    const guild = discord.addGuild({ name: 'Team' })
    discord.addChannel(guild, { name: 'general' })
    const dev = discord.addChannel(guild, { name: 'dev' })
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer('The bot is aetheel.', '')
    await person.answer('It can read messages.', '')
    await person.answer(await inviteLink(discord.bot.id), '')
    await person.answer(OWNER, ENTER)
    await person.answer('The bot is in the server Team.', '')
    await person.answer(CHANNEL, DOWN + ENTER)
    const exitCode = await person.exitCode
    const text = readFileSync(machine.file, 'utf8')
    expect({
      exitCode,
      text: text.slice(text.indexOf('  // Directories')),
      check: configCheck({ environment: machine.environment, cwd: machine.project }).exitCode,
      isTokenShown: person.screen().includes(discord.token.slice(0, 10)),
      said: /Then say hello: (.*)/.exec(person.screen())?.[1],
    }).toEqual({
      exitCode: 0,
      text: `  // Directories in which conversations can work, by id.
  projects: {
    'My-project': {
      directory: '${machine.project}',
      // For this Discord channel and its threads: #dev
      discordChannels: ['${dev.id}'],
    },
  },

  // The project of conversations that do not choose one.
  defaultProject: 'My-project',

  // Where agents work without a project.
  workingDir: '${machine.project}',

  // The Discord bot token. Anyone who has it can act as the bot: keep this file private.
  discordBotToken: '${discord.token}',

  // May always talk to the bot: owner
  discordOwnerId: '${discord.owner.id}',

  // Others may talk to the bot if one of these lists contains them or the place where they write.
  discordUsers: [],
  discordRoles: [],
  discordGuilds: [],
  discordChannels: [],
}
`,
      check: 0,
      isTokenShown: false,
      said: 'write "@aetheel hello" in #dev',
    })
  })

  it('leaves a token in the environment', async (test) => {
    const { machine, discord, person } = await atDiscord(test, { isTokenSet: true })
    discord.addChannel(discord.addGuild())
    await person.answer('Using the token in DISCORD_BOT_TOKEN', '')
    await person.answer(OWNER, ENTER)
    await person.answer(CHANNEL, ENTER)
    await person.exitCode
    const text = readFileSync(machine.file, 'utf8')
    expect([text.includes(discord.token), text.includes('is in the environment variable DISCORD_BOT_TOKEN')]).toEqual([
      false,
      true,
    ])
  })

  it('asks again for a token that is wrong, by its looks or to Discord', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    await person.answer(TOKEN, `Bot x${ENTER}`)
    await person.answer('without "Bot " before it', `wrong${ENTER}`)
    await person.answer('Discord rejected the token', '')
    await person.answer(TOKEN, ` ${discord.token} ${ENTER}`)
    await person.answer(OWNER, ENTER)
    await person.answer(WAITING, ENTER)
    await person.exitCode
    expect(machine.config().discordBotToken).toBe(discord.token)
  })

  it('continues without the check if Discord cannot be reached', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    discord.goOffline()
    await person.answer(TOKEN, `some.token${ENTER}`)
    await person.answer('cannot be reached', '')
    await person.answer(UNCHECKED, ENTER)
    await person.answer(UNCHECKED, DOWN + ENTER)
    await person.answer(TOKEN, `other.token${ENTER}`)
    await person.answer(UNCHECKED, DOWN + DOWN + ENTER)
    await person.answer('Id of the user who may always talk to it.', `ada${ENTER}`)
    await person.answer('is not a Discord id', `${CTRL_U}100000000000000001${ENTER}`)
    const exitCode = await person.exitCode
    const { discordBotToken, discordOwnerId } = machine.config()
    expect([exitCode, discordBotToken, discordOwnerId]).toEqual([0, 'other.token', '100000000000000001'])
  })

  it('says where to allow the bot to read, and checks again', async (test) => {
    const { discord, person } = await atDiscord(test)
    const flags = discord.applicationFlags
    discord.applicationFlags = 0
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(`https://discord.com/developers/applications/${discord.bot.id}/bot`, '')
    await person.answer('Is it on?', ENTER)
    await person.answer('The bot cannot read messages yet.', '')
    discord.applicationFlags = flags
    await person.answer('Is it on?', ENTER)
    await person.answer('It can read messages.', '')
    await person.answer(OWNER, CTRL_C)
    expect(await person.exitCode).toBe(1)
  })

  it('continues if the bot shall be allowed to read later', async (test) => {
    const { discord, person } = await atDiscord(test)
    discord.applicationFlags = 0
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer('Is it on?', DOWN + ENTER)
    await person.answer(OWNER, ENTER)
    await person.answer(WAITING, ENTER)
    expect(await person.exitCode).toBe(0)
  })

  it.for<[string, string, number | undefined]>([
    ['its owner first', '', 1],
    ['another member', DOWN, 0],
    ['everybody in it', DOWN + DOWN, undefined],
  ])('lets one choose from a team: %s', async ([, keys, index], test) => {
    const discord = await FakeDiscord.start()
    test.onTestFinished(() => discord.stop())
    const machine = new Machine(test)
    const people = [discord.addUser('ada'), discord.addUser('bob')]
    discord.makeTeam(people.toReversed())
    const person = machine.begin({ variables: { DISCORD_API_URL: discord.apiUrl } })
    await toDiscord(person)
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(OWNER, keys + ENTER)
    await person.answer(WAITING, ENTER)
    await person.exitCode
    expect(machine.config().discordOwnerId).toBe(index === undefined ? undefined : people[index]?.id)
  })

  it('takes somebody else for the owner', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(OWNER, DOWN + ENTER)
    await person.answer('Id of that user.', `100000000000000001${ENTER}`)
    await person.answer(WAITING, ENTER)
    await person.exitCode
    expect(machine.config().discordOwnerId).toBe('100000000000000001')
  })

  it('waits until the bot is in a server, and asks again for a server and a channel', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(OWNER, ENTER)
    await person.answer(WAITING, '')
    const first = discord.addGuild({ name: 'First' })
    discord.addChannel(first, { name: 'voice', type: ChannelType.GuildVoice })
    await person.answer('The bot is in the server First.', '')
    const second = discord.addGuild({ name: 'Second\u001B[31m' })
    const dev = discord.addChannel(second, { name: 'dev' })
    await person.answer(CHANNEL, DOWN + ENTER)
    await person.answer('In which server', DOWN + ENTER)
    await person.answer(CHANNEL, ENTER)
    await person.exitCode
    expect(machine.config().projects.map(({ discordChannels }) => discordChannels)).toEqual([[dev.id]])
  })

  it('continues without a channel if the list cannot be fetched', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    discord.addGuild()
    discord.fail('GET /guilds/:id/channels', { kind: 'status', status: 500 }, 9)
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(OWNER, ENTER)
    await person.answer('Discord is having problems (HTTP 500)', '')
    expect([await person.exitCode, machine.config().projects[0]?.discordChannels]).toEqual([0, undefined])
  })

  it('says before the token which switches the bot needs', async (test) => {
    const { person } = await atDiscord(test)
    await person.answer('turn on "Message Content Intent"', '')
    await person.answer('turn off "Public Bot"', '')
    await person.answer(TOKEN, CTRL_C)
    expect(await person.exitCode).toBe(1)
  })

  it.for<[string, (person: Person, discord: FakeDiscord) => Promise<void>]>([
    ['at the token', (person) => person.answer(TOKEN, ENTER)],
    [
      'when the token cannot be checked',
      async (person, discord) => {
        discord.goOffline()
        await person.answer(TOKEN, `some.token${ENTER}`)
        await person.answer(UNCHECKED, UP + ENTER)
      },
    ],
    [
      'while the bot may not read',
      async (person, discord) => {
        discord.applicationFlags = 0
        await person.answer(TOKEN, discord.token + ENTER)
        await person.answer('Is it on?', UP + ENTER)
      },
    ],
    [
      'at the owner',
      async (person, discord) => {
        await person.answer(TOKEN, discord.token + ENTER)
        await person.answer(OWNER, UP + ENTER)
      },
    ],
  ])('lets one go on without Discord %s', async ([, leave], test) => {
    const { machine, discord, person } = await atDiscord(test)
    await leave(person, discord)
    const exitCode = await person.exitCode
    expect([exitCode, machine.config().discordBotToken]).toEqual([0, undefined])
  })

  it('writes nothing when it is left at a question about Discord', async (test) => {
    const discord = await FakeDiscord.start()
    test.onTestFinished(() => discord.stop())
    const answers = [
      [TOKEN, discord.token + ENTER],
      [OWNER, ENTER],
      [WAITING, ENTER],
    ] as const
    const ends = await Promise.all(
      answers.map(async ([last], index) => {
        const machine = new Machine(test)
        const person = machine.begin({ variables: { DISCORD_API_URL: discord.apiUrl } })
        await toDiscord(person)
        for (const [question, keys] of answers.slice(0, index)) await person.answer(question, keys)
        await person.answer(last, CTRL_C)
        return [await person.exitCode, readdirSync(machine.home), readdirSync(machine.project)]
      }),
    )
    expect(ends).toEqual(answers.map(() => [1, [], []]))
  })
})

async function atDiscord(test: TestContext, { isTokenSet = false } = {}) {
  const discord = await FakeDiscord.start()
  test.onTestFinished(() => discord.stop())
  const machine = new Machine(test)
  const variables = { DISCORD_API_URL: discord.apiUrl, ...(isTokenSet && { DISCORD_BOT_TOKEN: discord.token }) }
  const person = machine.begin({ variables })
  await toDiscord(person)
  return { machine, discord, person }
}

async function toDiscord(person: Person): Promise<void> {
  for (const question of [WHERE, AGENT, PERMISSIONS, DIRECTORY, ID]) await person.answer(question, ENTER)
  await person.answer(DISCORD, 'y')
}
