import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { ChannelType } from 'discord.js'
import fc from 'fast-check'
import { describe, expect, it, type TestContext } from 'vitest'
import { createBackend } from '../../../src/backends/registry.js'
import { BACKEND_NAMES } from '../../../src/backends/types.js'
import { probeAll } from '../../../src/cli/probed-agents.js'
import { configCheck } from '../../../src/cli/commands/config.js'
import { inviteLink } from '../../../src/cli/discord-needs.js'
import { init } from '../../../src/cli/init/init.js'
import { backendConfig, type GatewayConfig, loadConfig } from '../../../src/config.js'
import { configText } from '../../../src/config/text.js'
import { createLog } from '../../../src/log.js'
import { agentPath } from '../../contract/stage.js'
import { FakeDiscord } from '../../channels/discord/fake-discord.js'

const ENTER = '\r'
const DOWN = '\u001B[B'
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CTRL_U = '\u0015'

const WHERE = 'Where shall the settings be kept?'
const AGENT = 'Which agent shall answer?'
const DIRECTORY = 'In which directory shall it work?'
const ID = 'What shall this project be called?'
const DISCORD = 'Shall people reach it on Discord?'
const TOKEN = 'The token of the bot'
const UNCHECKED = 'The token could not be checked. What now?'
const OWNER = 'Who may always talk to it?'
const WAITING = 'The bot is in no server yet.'
const CHANNEL = 'In which channel shall people talk about this project?'

describe.concurrent('aetheel init without Discord', () => {
  it('writes a file that passes the check, for the person alone, and says what comes next', async (test) => {
    const machine = new Machine(test)
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    const exitCode = await person.exitCode
    const { file } = machine
    const text = readFileSync(file, 'utf8')
    expect({
      exitCode,
      mode: statSync(file).mode & 0o777,
      check: configCheck({ environment: machine.environment, cwd: machine.project }),
      text: text.replace(/file:.*aetheel\.schema\.json/, 'file:…'),
      hasSchema: existsSync(new URL(/'(file:.*)'/.exec(text)?.[1] ?? 'file:///')),
      said: person.screen().slice(person.screen().indexOf('Written:')),
    }).toEqual({
      exitCode: 0,
      mode: 0o600,
      check: { text: `${file}: no problems`, exitCode: 0 },
      text: `// Settings of Aetheel. "aetheel config check" says what is wrong, "aetheel config show" what holds.
{
  $schema: 'file:…',

  // The agent that answers: claude, codex, gemini, opencode, pi.
  agentBackend: 'codex',

  // Directories that conversations can work in, by their ids.
  projects: {
    'My-project': {
      directory: '${machine.project}',
    },
  },

  // Where agents work in conversations that have no project.
  workingDir: '${machine.project}',
}
`,
      hasSchema: true,
      said: expect.stringMatching(/aetheel doctor .*aetheel start .*aetheel chat /s),
    })
  })

  it('offers the installed agents first, and takes any', async (test) => {
    const machine = new Machine(test)
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, DOWN + ENTER)
    await person.answer('CLI "claude" was not found', '')
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    await person.exitCode
    const offered = person.screen().match(/● codex \(99\.1\.2\)\s+│  ○ claude \(not installed\)/)
    expect([offered !== null, machine.config().agentBackend]).toEqual([true, 'claude'])
  })

  it('makes the directory of the project, and begins with the id that was typed', async (test) => {
    const machine = new Machine(test)
    const person = machine.begin()
    await person.answer(WHERE, DOWN + ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(DIRECTORY, `${CTRL_U}~/src/it's "new"${ENTER}`)
    await person.answer('is not there. Make it?', 'y')
    await person.answer(ID, `${CTRL_U}-x${ENTER}`)
    await person.answer('begins with a letter or a digit', `${CTRL_U}new_1${ENTER}`)
    await person.answer(DISCORD, 'n')
    const directory = join(machine.home, `src/it's "new"`)
    expect([
      await person.exitCode,
      statSync(directory).isDirectory(),
      loadConfig(machine.environment, join(machine.project, 'aetheel.json5')).projects,
    ]).toEqual([0, true, [{ id: 'new_1', directory }]])
  })

  it('asks for another directory when a file is named, or when it shall not be made', async (test) => {
    const machine = new Machine(test)
    writeFileSync(join(machine.project, 'notes'), '')
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(DIRECTORY, `${CTRL_U}notes${ENTER}`)
    await person.answer('That is no directory.', `${CTRL_U}elsewhere${ENTER}`)
    await person.answer('is not there. Make it?', 'n')
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    await person.exitCode
    expect([machine.config().workingDir, readdirSync(machine.project)]).toEqual([machine.project, ['notes']])
  })

  it('keeps the file that was there, and the one that was kept before', async (test) => {
    const machine = new Machine(test)
    const data = join(machine.home, '.aetheel')
    mkdirSync(data)
    writeFileSync(join(data, 'aetheel.json5'), '{ agentBackend: "pi" } // second')
    writeFileSync(join(data, 'aetheel.json5.bak'), '// first')
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer('keep it as aetheel.json5.bak2?', 'y')
    await person.answer(AGENT, ENTER)
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    const exitCode = await person.exitCode
    const kept = ['aetheel.json5.bak', 'aetheel.json5.bak2'].map((name) => readFileSync(join(data, name), 'utf8'))
    expect([exitCode, machine.config().agentBackend, readdirSync(data), kept]).toEqual([
      0,
      'codex',
      ['aetheel.json5', 'aetheel.json5.bak', 'aetheel.json5.bak2'],
      ['// first', '{ agentBackend: "pi" } // second'],
    ])
  })

  it('leaves the file that was there when asked to', async (test) => {
    const machine = new Machine(test)
    const file = join(machine.project, 'team.json5')
    writeFileSync(file, '// ours')
    const person = machine.begin({ explicit: 'team.json5' })
    await person.answer('team.json5 is there already', ENTER)
    expect([await person.exitCode, readFileSync(file, 'utf8'), readdirSync(machine.project)]).toEqual([
      1,
      '// ours',
      ['team.json5'],
    ])
  })

  it('says what wins over the file it has written', async (test) => {
    const machine = new Machine(test)
    writeFileSync(join(machine.project, 'aetheel.json5'), '{}')
    const person = machine.begin({ variables: { AGENT_BACKEND: 'pi' } })
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    await person.exitCode
    expect(person.screen()).toMatch(
      /environment, which wins over the file: AGENT_BACKEND.*In this directory .*\/aetheel\.json5 is read instead/s,
    )
  })

  it.each([
    ['Ctrl-C', CTRL_C],
    ['Ctrl-D', CTRL_D],
    ['Escape', '\u001B'],
  ])('writes nothing when it is left with %s, at any question', async (_, key) => {
    const questions = [WHERE, AGENT, DIRECTORY, ID, DISCORD]
    const ends = await Promise.all(
      questions.map(async (last, index) => {
        const machine = new Machine()
        const person = machine.begin()
        for (const question of questions.slice(0, index)) await person.answer(question, ENTER)
        await person.answer(last, key)
        const end = [await person.exitCode, readdirSync(machine.home), readdirSync(machine.project)]
        machine.remove()
        return end
      }),
    )
    expect(ends).toEqual(questions.map(() => [1, [], []]))
  })

  it('writes nothing when the terminal is closed', async (test) => {
    const machine = new Machine(test)
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, '')
    person.leave()
    expect([await person.exitCode, readdirSync(machine.home)]).toEqual([1, []])
  })

  it('says so when the place cannot be written to, and leaves nothing there', async (test) => {
    const machine = new Machine(test)
    writeFileSync(join(machine.home, '.aetheel'), 'a file')
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    expect([await person.exitCode, readdirSync(machine.home)]).toEqual([1, ['.aetheel']])
    expect(person.screen()).toContain('aetheel.json5 cannot be written: ')
  })

  it('says what to do instead when there is no terminal', async (test) => {
    const machine = new Machine(test)
    await expect(machine.begin({ isTerminal: false }).exitCode).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(`Write ${machine.home}/.aetheel/aetheel.json5 yourself`),
    })
  })

  it('tells first what is wrong in the environment', async (test) => {
    const machine = new Machine(test)
    await expect(machine.begin({ variables: { LEASE_MS: 'x' } }).exitCode).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('LEASE_MS: must be a whole number'),
    })
  })
})

describe.concurrent('aetheel init with Discord', () => {
  it('checks the token, and writes it with the owner and the channel of the project', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    const guild = discord.addGuild({ name: 'Team' })
    discord.addChannel(guild, { name: 'general' })
    const dev = discord.addChannel(guild, { name: 'dev' })
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer('The bot is aetheel.', '')
    await person.answer('It may read messages.', '')
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
      text: `  // Directories that conversations can work in, by their ids.
  projects: {
    'My-project': {
      directory: '${machine.project}',
      // In this channel of Discord, and in its threads: #dev
      discordChannels: ['${dev.id}'],
    },
  },

  // Where agents work in conversations that have no project.
  workingDir: '${machine.project}',

  // The token of the Discord bot. Whoever has it is the bot: keep this file to yourself.
  discordBotToken: '${discord.token}',

  // May always talk to the bot: owner
  discordOwnerId: '${discord.owner.id}',

  // Others may talk to it when one of these names them, or the place where they write.
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

  it('leaves a token of the environment where it is', async (test) => {
    const { machine, discord, person } = await atDiscord(test, { isTokenSet: true })
    discord.addChannel(discord.addGuild())
    await person.answer('taken from DISCORD_BOT_TOKEN', '')
    await person.answer(OWNER, ENTER)
    await person.answer(CHANNEL, ENTER)
    await person.exitCode
    const text = readFileSync(machine.file, 'utf8')
    expect([text.includes(discord.token), text.includes('is in the variable DISCORD_BOT_TOKEN')]).toEqual([false, true])
  })

  it('asks again for a token that is wrong, by its looks or to Discord', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    await person.answer(TOKEN, ENTER)
    await person.answer('must not be empty', `Bot x${ENTER}`)
    await person.answer('without "Bot " before it', `wrong${ENTER}`)
    await person.answer('Discord refuses the token', '')
    await person.answer(TOKEN, ` ${discord.token} ${ENTER}`)
    await person.answer(OWNER, ENTER)
    await person.answer(WAITING, ENTER)
    await person.exitCode
    expect(machine.config().discordBotToken).toBe(discord.token)
  })

  it('goes on without the check when Discord cannot be reached', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    discord.goOffline()
    await person.answer(TOKEN, `some.token${ENTER}`)
    await person.answer('cannot be reached', '')
    await person.answer(UNCHECKED, ENTER)
    await person.answer(UNCHECKED, DOWN + ENTER)
    await person.answer(TOKEN, `other.token${ENTER}`)
    await person.answer(UNCHECKED, DOWN + DOWN + ENTER)
    await person.answer('Which user may always talk to it?', `ada${ENTER}`)
    await person.answer('is no id of Discord', `${CTRL_U}100000000000000001${ENTER}`)
    const exitCode = await person.exitCode
    const { discordBotToken, discordOwnerId } = machine.config()
    expect([exitCode, discordBotToken, discordOwnerId]).toEqual([0, 'other.token', '100000000000000001'])
  })

  it('says where the bot is let read, and looks again', async (test) => {
    const { discord, person } = await atDiscord(test)
    const flags = discord.applicationFlags
    discord.applicationFlags = 0
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(`https://discord.com/developers/applications/${discord.bot.id}/bot`, '')
    await person.answer('Is it on?', ENTER)
    await person.answer('The bot may not read messages yet.', '')
    discord.applicationFlags = flags
    await person.answer('Is it on?', ENTER)
    await person.answer('It may read messages.', '')
    await person.answer(OWNER, CTRL_C)
    expect(await person.exitCode).toBe(1)
  })

  it('goes on when the bot shall be let read later', async (test) => {
    const { discord, person } = await atDiscord(test)
    discord.applicationFlags = 0
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer('Is it on?', DOWN + ENTER)
    await person.answer(OWNER, ENTER)
    await person.answer(WAITING, ENTER)
    expect(await person.exitCode).toBe(0)
  })

  it.each([
    ['its owner first', '', 1],
    ['another member', DOWN, 0],
    ['everybody in it', DOWN + DOWN, undefined],
  ])('lets one choose from a team: %s', async (_, keys, index) => {
    const discord = await FakeDiscord.start()
    const machine = new Machine()
    const people = [discord.addUser('ada'), discord.addUser('bob')]
    discord.makeTeam(people.toReversed())
    const person = machine.begin({ variables: { DISCORD_API_URL: discord.apiUrl } })
    await toDiscord(person)
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(OWNER, keys + ENTER)
    await person.answer(WAITING, ENTER)
    await person.exitCode
    const { discordOwnerId } = machine.config()
    machine.remove()
    await discord.stop()
    expect(discordOwnerId).toBe(index === undefined ? undefined : people[index]?.id)
  })

  it('takes somebody else for the owner', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(OWNER, DOWN + ENTER)
    await person.answer('The id of that user.', `100000000000000001${ENTER}`)
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

  it('goes on without a channel when its list cannot be had', async (test) => {
    const { machine, discord, person } = await atDiscord(test)
    discord.addGuild()
    discord.fail('GET /guilds/:id/channels', { kind: 'status', status: 500 }, 9)
    await person.answer(TOKEN, discord.token + ENTER)
    await person.answer(OWNER, ENTER)
    await person.answer('Discord has trouble of its own (HTTP 500)', '')
    expect([await person.exitCode, machine.config().projects[0]?.discordChannels]).toEqual([0, undefined])
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
        const machine = new Machine()
        const person = machine.begin({ variables: { DISCORD_API_URL: discord.apiUrl } })
        await toDiscord(person)
        for (const [question, keys] of answers.slice(0, index)) await person.answer(question, keys)
        await person.answer(last, CTRL_C)
        const end = [await person.exitCode, readdirSync(machine.home), readdirSync(machine.project)]
        machine.remove()
        return end
      }),
    )
    expect(ends).toEqual(answers.map(() => [1, [], []]))
  })
})

describe('configText', () => {
  it('keeps every text where it belongs, whatever it is', (test) => {
    const machine = new Machine(test)
    const file = join(machine.directory, 'aetheel.json5')
    const defaults = loadConfig(machine.environment)
    const text = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
      fc.constantFrom(
        "'",
        '"',
        '\\',
        '*/ // \n',
        "',\nagentBackend: 'pi', //",
        '\u2028x: 1',
        '${x}',
        '\r',
        '__proto__',
      ),
    )
    const words = text.filter((value) => Buffer.from(value).toString() === value && value.trim() !== '')
    fc.assert(
      fc.property(words, words, words, words, (directory, token, name, owner) => {
        const path = join('/', directory)
        const discordBotToken = token.replaceAll(/\s/g, '_')
        writeFileSync(
          file,
          configText({
            schemaUrl: directory,
            agentBackend: 'gemini',
            project: { id: 'a-b', directory: path, discordChannel: { id: '100000000000000001', name } },
            discord: { token: discordBotToken, owner: { id: '100000000000000002', name: owner } },
          }),
        )
        expect(loadConfig(machine.environment, file)).toEqual({
          ...defaults,
          configFile: file,
          isAgentChosen: true,
          agentBackend: 'gemini',
          codeAgentDefault: 'gemini',
          backendCliPath: 'gemini',
          workingDir: resolve(path),
          projects: [{ id: 'a-b', directory: resolve(path), discordChannels: ['100000000000000001'] }],
          discordBotToken,
          discordOwnerId: '100000000000000002',
        })
      }),
      { numRuns: 100 },
    )
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
  for (const question of [WHERE, AGENT, DIRECTORY, ID, DISCORD]) await person.answer(question, ENTER)
}

/** A person's machine: a home, a directory to work in, and Codex. */
class Machine {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-init-')))
  readonly home = join(this.directory, 'home')
  readonly project = join(this.directory, 'My project')
  readonly file = join(this.home, '.aetheel/aetheel.json5')
  readonly environment = { HOME: this.home, PATH: `${this.directory}/bin:/usr/bin:/bin` }

  constructor(test?: TestContext) {
    for (const path of [this.home, this.project, join(this.directory, 'bin')]) mkdirSync(path)
    symlinkSync(agentPath('fake-agent.sh'), join(this.directory, 'bin/codex'))
    test?.onTestFinished(() => this.remove())
  }

  remove(): void {
    rmSync(this.directory, { recursive: true })
  }

  begin(options: { variables?: NodeJS.ProcessEnv; explicit?: string; isTerminal?: boolean } = {}): Person {
    const environment = { ...this.environment, ...options.variables }
    const log = createLog({ level: 'silent' })
    const probe = (config: GatewayConfig) =>
      probeAll(
        BACKEND_NAMES.map((name) =>
          createBackend(name, backendConfig(config, name), { environment, passVariables: [], log }),
        ),
      )
    return new Person(options.isTerminal ?? true, (input, output) =>
      init({
        environment,
        cwd: this.project,
        probe,
        input,
        output,
        pollMs: 20,
        ...(options.explicit !== undefined && { explicit: options.explicit }),
      }),
    )
  }

  /** What was written into the data directory. */
  config(): GatewayConfig {
    return loadConfig(this.environment, this.file)
  }
}

/** Reads a screen and presses keys. */
class Person {
  readonly exitCode: Promise<number>
  readonly #input: PassThrough & { isTTY?: boolean; setRawMode?: () => void } = new PassThrough()
  #screen = ''
  #seen = 0

  constructor(isTerminal: boolean, begin: (input: PassThrough, output: Writable) => Promise<number>) {
    if (isTerminal) Object.assign(this.#input, { isTTY: true, setRawMode: () => {} })
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.#screen += stripVTControlCharacters(String(chunk))
        done()
      },
    })
    this.exitCode = begin(this.#input, Object.assign(output, { columns: 200, rows: 50 }))
    // A test may look at it later.
    this.exitCode.catch(() => {})
  }

  screen(): string {
    return this.#screen
  }

  /** Waits for a question that was not answered yet, and presses these keys. */
  async answer(question: string, keys: string): Promise<void> {
    const deadline = Date.now() + 10_000
    while (!this.#screen.includes(question, this.#seen)) {
      if (Date.now() > deadline) throw new Error(`"${question}" was not asked, but: ${this.#screen}`)
      await new Promise((resolve) => {
        setTimeout(resolve, 5)
      })
    }
    this.#seen = this.#screen.indexOf(question, this.#seen) + question.length
    if (keys !== '') this.#input.write(keys)
  }

  leave(): void {
    this.#input.end()
  }
}
