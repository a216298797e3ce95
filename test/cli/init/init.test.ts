import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configCheck } from '../../../src/cli/commands/config.js'
import { loadConfig } from '../../../src/config.js'
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
  WHERE,
} from './init-stage.js'

const CTRL_D = '\u0004'

describe.concurrent('aetheel init without Discord', () => {
  it('writes a private file that passes the check, and says what comes next', async (test) => {
    const machine = new Machine(test)
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(PERMISSIONS, ENTER)
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
      said: person.screen().slice(person.screen().indexOf('Wrote ')),
    }).toEqual({
      exitCode: 0,
      mode: 0o600,
      check: { text: `${file}: no problems`, exitCode: 0 },
      text: `// Aetheel settings. Check them with "aetheel config check", list them with "aetheel config show".
{
  $schema: 'file:…',

  // The agent that answers: claude, codex, gemini, opencode, pi; or demo, the built-in one without a model.
  agentBackend: 'codex',

  // Whether it asks a person before commands and edits (ask), or never asks (allow).
  agentPermissions: 'ask',

  // Directories in which conversations can work, by id.
  projects: {
    'My-project': {
      directory: '${machine.project}',
    },
  },

  // The project of conversations that do not choose one.
  defaultProject: 'My-project',

  // Where agents work without a project.
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
    await person.answer(AGENT, DOWN + DOWN + ENTER)
    await person.answer('CLI "claude" was not found', '')
    await person.answer(PERMISSIONS, DOWN + ENTER)
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    await person.exitCode
    const offered = person
      .screen()
      .match(/● codex \(99\.1\.2\)\s+│  ○ demo \(built in[^)]*\)\s+│  ○ claude \(not installed\)/)
    const { agentBackend, agentPermissions } = machine.config()
    expect([offered !== null, agentBackend, agentPermissions]).toEqual([true, 'claude', 'allow'])
  })

  it('makes the directory of the project, and begins with the id that was typed', async (test) => {
    const machine = new Machine(test)
    const person = machine.begin()
    await person.answer(WHERE, DOWN + ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(PERMISSIONS, ENTER)
    await person.answer(DIRECTORY, `${CTRL_U}~/src/it's "new"${ENTER}`)
    await person.answer('does not exist. Create it?', 'y')
    await person.answer(ID, `${CTRL_U}-x${ENTER}`)
    await person.answer('starts with a letter or a digit', `${CTRL_U}new_1${ENTER}`)
    await person.answer(DISCORD, 'n')
    const directory = join(machine.home, `src/it's "new"`)
    expect([
      await person.exitCode,
      statSync(directory).isDirectory(),
      loadConfig(machine.environment, join(machine.project, 'aetheel.json5')).projects,
    ]).toEqual([0, true, [{ id: 'new_1', directory }]])
  })

  it('asks for another directory if a file is named, or if it shall not be created', async (test) => {
    const machine = new Machine(test)
    writeFileSync(join(machine.project, 'notes'), '')
    const person = machine.begin()
    await person.answer(WHERE, ENTER)
    await person.answer(AGENT, ENTER)
    await person.answer(PERMISSIONS, ENTER)
    await person.answer(DIRECTORY, `${CTRL_U}notes${ENTER}`)
    await person.answer('That is not a directory.', `${CTRL_U}elsewhere${ENTER}`)
    await person.answer('does not exist. Create it?', 'n')
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
    await person.answer(PERMISSIONS, ENTER)
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
    await person.answer('team.json5 already exists', ENTER)
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
    await person.answer(PERMISSIONS, ENTER)
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    await person.exitCode
    expect(person.screen()).toMatch(
      /environment, which overrides the file: AGENT_BACKEND.*In this directory, .*\/aetheel\.json5 is used instead/s,
    )
  })

  it.for([
    ['Ctrl-C', CTRL_C],
    ['Ctrl-D', CTRL_D],
    ['Escape', '\u001B'],
  ] as const)('writes nothing when it is left with %s, at any question', async ([, key], test) => {
    const questions = [WHERE, AGENT, PERMISSIONS, DIRECTORY, ID, DISCORD]
    const ends = await Promise.all(
      questions.map(async (last, index) => {
        const machine = new Machine(test)
        const person = machine.begin()
        for (const question of questions.slice(0, index)) await person.answer(question, ENTER)
        await person.answer(last, key)
        return [await person.exitCode, readdirSync(machine.home), readdirSync(machine.project)]
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
    await person.answer(PERMISSIONS, ENTER)
    await person.answer(DIRECTORY, ENTER)
    await person.answer(ID, ENTER)
    await person.answer(DISCORD, 'n')
    expect([await person.exitCode, readdirSync(machine.home)]).toEqual([1, ['.aetheel']])
    expect(person.screen()).toMatch(/Cannot write .*aetheel\.json5: .* set AETHEEL_HOME to another directory\./)
  })

  it('says what to do instead if there is no terminal', async (test) => {
    const machine = new Machine(test)
    await expect(machine.begin({ isTerminal: false }).exitCode).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(`Write ${machine.home}/.aetheel/aetheel.json5 yourself`),
    })
  })

  it('first reports what is wrong in the environment', async (test) => {
    const machine = new Machine(test)
    await expect(machine.begin({ variables: { LEASE_MS: 'x' } }).exitCode).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('LEASE_MS: must be a whole number'),
    })
  })
})
