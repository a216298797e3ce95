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
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it, type TestContext } from 'vitest'
import { createBackend } from '../../src/backends/registry.js'
import { BACKEND_NAMES } from '../../src/backends/types.js'
import { probeAll } from '../../src/commands/agents.js'
import { configCheck } from '../../src/commands/config.js'
import { init } from '../../src/commands/init.js'
import { backendConfig, type GatewayConfig, loadConfig } from '../../src/config.js'
import { createLog } from '../../src/log.js'
import { agentPath } from '../contract/stage.js'

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
    const file = join(machine.home, '.aetheel/aetheel.json5')
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

/** A person's machine: a home, a directory to work in, and Codex. */
class Machine {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-init-')))
  readonly home = join(this.directory, 'home')
  readonly project = join(this.directory, 'My project')
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
    return loadConfig(this.environment, join(this.home, '.aetheel/aetheel.json5'))
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
