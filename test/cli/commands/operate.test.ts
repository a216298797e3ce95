import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openSqlite } from '../../../src/store/sqlite.js'
import { storeOn } from '../../../src/store/store.js'
import { makeUnreleased } from '../../store/store-contract.js'
import { DEMO_AGENT } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'

const DEMO = { BACKEND_CLI_PATH: DEMO_AGENT, USER: 'ada' }

describe.concurrent('commands that look and change', () => {
  it('work beside a gateway that runs', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(DEMO)
    await terminal.run(['chat'], { stdin: 'My name is Ada.\n', env: { USER: 'ada' } })
    const runs = JSON.parse((await terminal.run(['runs', '--json'])).stdout) as { id: string }[]
    const [looked, shown, found, reset, retried] = await Promise.all([
      terminal.run(['queue', 'list']),
      terminal.run(['runs', 'show', runs[0]?.id.slice(0, 8) ?? '']),
      terminal.run(['search', 'ADA']),
      terminal.run(['sessions', 'reset', 'default']),
      terminal.run(['queue', 'retry', '12345678']),
    ])
    const sessions = await terminal.run(['sessions'])
    gateway.kill('SIGTERM')
    await gateway.exited
    expect([looked, shown.stdout, found.stdout, reset, retried, sessions.stdout]).toEqual([
      { exitCode: 0, stdout: 'Nothing is waiting, and nothing has failed.\n', stderr: '' },
      expect.stringMatching(/^run +[0-9a-f-]{36}\n[^]*\n\d+ +\+\d\.\d s +complete +Your name is Ada; /),
      expect.stringMatching(
        /terminal\/default {2}claude {2}Your name is Ada;[^]*terminal\/default {2}ada +My name is Ada\./,
      ),
      { exitCode: 0, stdout: 'The next message in terminal/default starts a fresh session.\n', stderr: '' },
      {
        exitCode: 1,
        stdout: '',
        stderr: 'There is no message 12345678. GET /queue, or "aetheel queue list", lists them.\n',
      },
      'There are no sessions.\n',
    ])
  })

  it('do the work themselves if none runs', async (test) => {
    const terminal = new Terminal(test)
    await terminal.run(['chat'], { stdin: 'My name is Ada.\n', env: DEMO })
    const reset = await terminal.run(['sessions', 'reset', 'terminal/default'])
    const archived = await terminal.run(['archive'])
    const { stdout } = await terminal.run(['chat'], { stdin: 'What is my name?\n', env: DEMO })
    expect([reset, archived, stdout]).toEqual([
      { exitCode: 0, stdout: 'The next message in terminal/default starts a fresh session.\n', stderr: '' },
      {
        exitCode: 0,
        stdout: `Wrote 1 day of 1 conversation to ${join(terminal.home, '.aetheel/archive')}\n`,
        stderr: '',
      },
      'I do not know it yet.\n',
    ])
  })

  it.for([
    ['queue', 'Nothing is waiting, and nothing has failed.\n'],
    ['sessions', 'There are no sessions.\n'],
    ['runs', 'No agent has run yet.\n'],
  ])('say that there is nothing yet: %s', async ([name = '', nothing], test) => {
    const terminal = new Terminal(test)
    expect(await terminal.run([name, 'list'])).toEqual({ exitCode: 0, stdout: nothing, stderr: '' })
  })

  it('say what to do about a database without tables, and work once a gateway has made them', async (test) => {
    const terminal = new Terminal(test)
    await (await openDatabase(terminal)).close()
    const refused = await look(terminal)
    const gateway = await terminal.startGateway(DEMO)
    gateway.kill('SIGTERM')
    await gateway.exited
    const looked = []
    for (const command of [
      ['runs', '--json'],
      ['queue', 'list', '--json'],
    ]) {
      const { exitCode, stdout, stderr } = await terminal.run(command)
      looked.push([exitCode, JSON.parse(stdout) as unknown, stderr])
    }
    const advice = 'Upgrade it by starting the gateway once: aetheel start'
    const refusal = {
      exitCode: 1,
      stdout: '',
      stderr: `The database is from an earlier version of Aetheel. ${advice}\n`,
    }
    expect([refused, looked]).toEqual([
      refused.map(() => refusal),
      [
        [0, [], ''],
        [0, { waiting: [], failed: [], undelivered: [] }, ''],
      ],
    ])
  })

  it('say what to do about a database of a version before 0.1.0, and so does a gateway', async (test) => {
    const terminal = new Terminal(test)
    const old = await openDatabase(terminal)
    await makeUnreleased(old.db)
    await old.close()
    const refused = [...(await look(terminal)), await terminal.run(['start'])]
    const refusal = {
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /before Aetheel 0\.1\.0, and this version cannot use it\..*move aetheel\.db /,
      ) as string,
    }
    expect(refused).toEqual(refused.map(() => refusal))
  })

  it('check and show the configuration', async (test) => {
    const terminal = new Terminal(test)
    const file = terminal.write('aetheel.json5', `{ agentBackend: 'nope' }`)
    const check = await terminal.run(['config', 'check'])
    const show = await terminal.run(['config', 'show', '--json'], { env: { AGENT_BACKEND: 'pi' } })
    expect([check.exitCode, check.stdout, show.exitCode, JSON.parse(show.stdout)]).toEqual([
      1,
      `${file}: agentBackend: Unknown backend "nope". Known: claude, codex, gemini, opencode, pi, demo\n`,
      0,
      expect.objectContaining({ configFile: file }),
    ])
  })
})

async function openDatabase({ home }: Terminal) {
  return storeOn(await openSqlite(join(home, '.aetheel', 'aetheel.db')))
}

async function look(terminal: Terminal) {
  const looked = []
  for (const command of [['runs'], ['runs', 'show', 'r'], ['queue', 'list'], ['sessions'], ['search', 'Hello']]) {
    looked.push(await terminal.run(command))
  }
  return looked
}
