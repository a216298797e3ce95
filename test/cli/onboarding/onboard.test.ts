import { readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, type TestContext } from 'vitest'
import { agentPath } from '../../kit/agents.js'
import { readOnlyDirectory } from '../../kit/permissions.js'
import { AGENT, CTRL_C, CTRL_U, DIRECTORY, DISCORD, DOWN, ENTER, Machine, PERMISSIONS } from '../init/init-stage.js'

/** A port that nobody else uses while tests run side by side. */
const FREE = { HTTP_PORT: '0' }
const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url))

describe('the first start', () => {
  it('asks four things to which Enter agrees, and makes the directory the default project', async (test) => {
    const machine = new Machine(test)
    const person = machine.meet({ variables: FREE })
    for (const question of [AGENT, PERMISSIONS, DIRECTORY, DISCORD]) await person.answer(question, ENTER)
    const exitCode = await person.exitCode
    const { agentBackend, agentPermissions, projects, defaultProject, discordBotToken } = machine.config()
    expect({ exitCode, agentBackend, agentPermissions, projects, defaultProject, discordBotToken }).toEqual({
      exitCode: 0,
      agentBackend: 'codex',
      agentPermissions: 'ask',
      projects: [{ id: 'My-project', directory: machine.project }],
      defaultProject: 'My-project',
      discordBotToken: undefined,
    })
  })

  it('offers the built-in agent where there is no other', async (test) => {
    const machine = new Machine(test)
    rmSync(join(machine.directory, 'bin/codex'))
    const person = machine.meet({ variables: { ...FREE, PATH: join(machine.directory, 'bin') } })
    for (const question of [AGENT, PERMISSIONS, DIRECTORY, DISCORD]) await person.answer(question, ENTER)
    await person.exitCode
    const { isDemoAgent, agentBackend, backendCliPath } = machine.config()
    expect([isDemoAgent, agentBackend, backendCliPath]).toEqual([true, 'claude', join(CHECKOUT, 'demo/agent.mjs')])
  })

  it('suggests the built-in agent to one who has set it, and does not take it for the one it stands in for', async (test) => {
    const machine = new Machine(test)
    const person = machine.meet({ variables: { ...FREE, AGENT_BACKEND: 'demo' } })
    await person.answer('demo (built in', '')
    await person.answer('claude (not installed)', CTRL_C)
    await person.exitCode
    expect(person.screen()).toContain('● demo (built in')
  })

  it('has one who chooses Pi, which cannot ask, say so or choose another', async (test) => {
    const machine = new Machine(test)
    const person = machine.meet({ variables: FREE })
    await person.answer(AGENT, '\u001B[A' + ENTER)
    await person.answer('Pi cannot ask', '')
    await person.answer(PERMISSIONS, DOWN + ENTER)
    await person.answer(AGENT, '\u001B[A' + ENTER)
    await person.answer(PERMISSIONS, ENTER)
    for (const question of [DIRECTORY, DISCORD]) await person.answer(question, ENTER)
    await person.exitCode
    const { agentBackend, agentPermissions } = machine.config()
    expect([agentBackend, agentPermissions]).toEqual(['pi', 'allow'])
  })

  it('says how to log in to an agent that is not, and goes on', async (test) => {
    const machine = new Machine(test)
    const programs = join(machine.directory, 'bin')
    rmSync(join(programs, 'codex'))
    symlinkSync(agentPath('fake-agent.sh'), join(programs, 'gemini'))
    const person = machine.meet({ variables: { ...FREE, PATH: programs } })
    await person.answer('gemini (99.1.2, not logged in)', ENTER)
    await person.answer('Log in, now or later: aetheel credentials set GEMINI_API_KEY', '')
    for (const question of [PERMISSIONS, DIRECTORY, DISCORD]) await person.answer(question, ENTER)
    expect([await person.exitCode, machine.config().agentBackend]).toEqual([0, 'gemini'])
  })

  it.for<[string, (machine: Machine) => string]>([
    ['the home of its user', ({ home }) => home],
    ['the root', () => '/'],
    ['its own checkout', () => CHECKOUT],
    ['a part of it', () => join(CHECKOUT, 'docs')],
  ])('suggests a directory of its own where it is started in %s', async ([, cwdOf], test) => {
    const machine = new Machine(test)
    const person = machine.meet({ variables: FREE, cwd: cwdOf(machine) })
    for (const question of [AGENT, PERMISSIONS, DIRECTORY, DISCORD]) await person.answer(question, ENTER)
    await person.exitCode
    const directory = join(machine.home, 'aetheel-projects/first')
    expect([machine.config().projects, readdirSync(directory)]).toEqual([[{ id: 'first', directory }], []])
  })

  it('refuses a directory that cannot be made or written to, with a way out', async (test) => {
    const machine = new Machine(test)
    const file = join(machine.directory, 'file')
    writeFileSync(file, '')
    const readOnly = readOnlyDirectory(test)
    const person = machine.meet({ variables: FREE })
    for (const question of [AGENT, PERMISSIONS]) await person.answer(question, ENTER)
    await person.answer(DIRECTORY, `${CTRL_U}${readOnly}${ENTER}`)
    for (const other of [join(readOnly, 'below', 'it'), join(file, 'below', 'it')]) {
      await person.answer('You cannot write there. Choose another directory', `${CTRL_U}${other}${ENTER}`)
    }
    await person.answer('You cannot write there. Choose another directory', CTRL_C)
    expect([await person.exitCode, readdirSync(machine.home)]).toEqual([1, []])
  })

  it('offers the next port when the usual one is taken', async (test) => {
    const machine = new Machine(test)
    const person = machine.meet({ cwd: machine.project, variables: { HTTP_HOST: '127.0.0.77' } })
    await occupy(test, '127.0.0.77', 7433)
    for (const question of [AGENT, PERMISSIONS, DIRECTORY, DISCORD]) await person.answer(question, ENTER)
    await person.answer('Port 7433 is already in use. Use 7434 for the dashboard?', ENTER)
    expect([await person.exitCode, machine.config().httpPort]).toEqual([0, 7434])
  })

  it('says what to do when no other port is wanted, and writes nothing', async (test) => {
    const machine = new Machine(test)
    await occupy(test, '127.0.0.78', 7433)
    const person = machine.meet({ variables: { HTTP_HOST: '127.0.0.78' } })
    for (const question of [AGENT, PERMISSIONS, DIRECTORY, DISCORD]) await person.answer(question, ENTER)
    await person.answer('Use 7434 for the dashboard?', 'n')
    expect([await person.exitCode, readdirSync(machine.home)]).toEqual([1, []])
    expect(person.screen()).toContain('Nothing was written. Set HTTP_PORT to a free port, or HTTP_ENABLED=false')
  })

  it('writes nothing when it is left at any question, and says how to go on', async (test) => {
    const questions = [AGENT, PERMISSIONS, DIRECTORY, DISCORD]
    const ends = await Promise.all(
      questions.map(async (last, index) => {
        const machine = new Machine(test)
        const person = machine.meet({ variables: FREE })
        for (const question of questions.slice(0, index)) await person.answer(question, ENTER)
        await person.answer(last, CTRL_C)
        const exitCode = await person.exitCode
        return [exitCode, readdirSync(machine.home), person.screen().includes('Start again with "aetheel".')]
      }),
    )
    expect(ends).toEqual(questions.map(() => [1, [], true]))
  })
})

/** Listens there until the test ends. */
async function occupy(test: TestContext, host: string, port: number): Promise<void> {
  const server = createServer().listen(port, host)
  await once(server, 'listening')
  expect((server.address() as AddressInfo).port).toBe(port)
  test.onTestFinished(() => void server.close())
}
