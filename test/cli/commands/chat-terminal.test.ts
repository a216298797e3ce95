import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { openStore } from '../../../src/store/store.js'
import { START } from '../../contract/agent-script.js'
import { agentPath } from '../../kit/agents.js'
import { SILENT_LOG } from '../../kit/log.js'
import { livingProcesses } from '../../kit/living-processes.js'
import { SCRIPT } from '../../kit/running-command.js'
import { type CommandAtTerminal, Terminal } from '../../kit/terminal.js'
import { until } from '../../kit/waiting.js'

const DEMO = { AGENT_BACKEND: 'demo', USER: 'ada' }
const FAKE = { BACKEND_CLI_PATH: agentPath('fake-agent.sh') }
const ENTER = '\r'
const ESCAPE = '\u001B'
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const UP = '\u001B[A'

/** A prompt of the fake agent on one line. */
const onOneLine = (prompt: string): string => prompt.replaceAll('\n', '; ')

const pasted = (text: string): string => `\u001B[200~${text}\u001B[201~`

async function begin(test: TestContext, env: NodeJS.ProcessEnv, args: string[] = [], columns = 80, rows = 24) {
  const terminal = new Terminal(test)
  const chat = terminal.openAtTerminal(['chat', ...args], env, columns, rows)
  await chat.shows('/help')
  return { terminal, chat }
}

async function leave(chat: CommandAtTerminal): Promise<unknown> {
  chat.press(CTRL_D)
  return chat.exited
}

/** What the agent was asked, as the gateway has it. */
async function messagesOf(terminal: Terminal): Promise<string[]> {
  const store = await openStore({ file: join(terminal.home, '.aetheel', 'aetheel.db') }, SILENT_LOG)
  const conversation = await store.conversations.find('terminal', 'default')
  const messages = conversation ? await store.inbox.history(conversation.id, 50, 0) : []
  await store.close()
  return messages.map(({ text }) => text)
}

describe.concurrent('aetheel chat, at a terminal', () => {
  it.runIf(existsSync(SCRIPT))(
    'says with whom, shows what was said, and keeps what was typed for the person alone',
    async (test) => {
      const terminal = new Terminal(test)
      await terminal.run(['chat'], { stdin: 'My name is Ada.\n', env: DEMO })
      const chat = terminal.openAtTerminal(['chat'], DEMO)
      await chat.shows('agent:')
      chat.press(`What is my name?${ENTER}`)
      await chat.shows(/> What is my name\?\n\nYour name is Ada; you told me earlier in this session\.\n\n>$/)
      chat.press(`/quit${ENTER}`)
      const exitCode = await chat.exited
      const kept = join(terminal.home, '.aetheel/chat-history')
      const [header, ...rest] = chat.terminal.text.split('\n')
      expect([
        exitCode,
        header,
        readFileSync(kept, 'utf8'),
        statSync(kept).mode & 0o777,
        chat.terminal.unknown,
      ]).toEqual([
        0,
        expect.stringMatching(/^Aetheel · the demo agent, without a model ·/),
        'What is my name?\n/quit\n',
        0o600,
        [],
      ])
      expect(rest.join('\n')).toMatch(
        /\n\d\d:\d\d {2}ada: My name is Ada\.\n\d\d:\d\d {2}agent:\n\nYour name is Ada; .*\n\n> What/,
      )
    },
  )

  it.runIf(existsSync(SCRIPT))('takes a paste of 40 lines for one message, and shows it folded', async (test) => {
    const { terminal, chat } = await begin(test, DEMO)
    const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`).join('\n')
    chat.press(`Explain: ${pasted(lines.replaceAll('\n', '\r'))}`)
    await chat.shows('> Explain: [40 pasted lines]')
    chat.press(ENTER)
    await chat.shows('To talk to a real agent')
    expect([await leave(chat), await messagesOf(terminal), chat.terminal.text.includes('line 7')]).toEqual([
      0,
      [`Explain: ${lines}`],
      false,
    ])
  })

  it.runIf(existsSync(SCRIPT))('makes another line by each key that does, and remembers all of them', async (test) => {
    const { terminal, chat } = await begin(test, DEMO)
    chat.press(`My\u001B\rname\nis\u001B[13;2uAda\\${ENTER}!`)
    await chat.shows(/> My\n {2}name\n {2}is\n {2}Ada\n {2}!$/)
    chat.press(ENTER)
    await chat.shows('I do not know it yet.')
    expect([await leave(chat), await messagesOf(terminal)]).toEqual([0, ['My\nname\nis\nAda\n!']])
    const next = terminal.openAtTerminal(['chat', '--no-history'], DEMO)
    await next.shows('/help')
    next.press(UP)
    await next.shows(/> My\n {2}name\n {2}is\n {2}Ada\n {2}!$/)
    next.press(CTRL_C)
    expect(await leave(next)).toBe(0)
  })

  it.runIf(existsSync(SCRIPT))('keeps the cursor where wide characters, emoji and marks are written', async (test) => {
    const { terminal, chat } = await begin(test, DEMO)
    const text = '漢字 👩‍👩‍👧 e\u0301!'
    chat.press(`${text}\u001B[D\u001B[D`)
    await chat.shows(`> ${text}`)
    await until(
      () => chat.terminal.cursor.column === 2 + 5 + 3,
      () => JSON.stringify(chat.terminal.cursor),
    )
    chat.press(`\u007F\u007Fx${ENTER}`)
    await chat.shows('To talk to a real agent')
    expect([await leave(chat), await messagesOf(terminal)]).toEqual([0, ['漢字 xe\u0301!']])
  })

  it.runIf(existsSync(SCRIPT))('stops the turn on Escape, and leaves what was said', async (test) => {
    const { terminal, chat } = await begin(test, FAKE)
    chat.press(`${onOneLine(terminal.prompt(START, { say: 'Working on it' }, { hang: true }))}${ENTER}`)
    await chat.shows(/\nWorking on it\n\n. Writing · /)
    chat.press(ESCAPE)
    await chat.shows(/\nWorking on it\n\nStopped claude after \d+ s\.\n\n>$/)
    expect([await leave(chat), terminal.leftovers()]).toEqual([0, []])
  })

  it.runIf(existsSync(SCRIPT))('clears the line, stops the turn, and leaves, each by Ctrl-C', async (test) => {
    const { terminal, chat } = await begin(test, FAKE)
    chat.press(`${onOneLine(terminal.prompt(START, { say: 'Working' }, { hang: true }))}${ENTER}`)
    await chat.shows('\nWorking\n')
    chat.press('not sent')
    await chat.shows('> not sent')
    chat.press(CTRL_C)
    await chat.shows(/Esc stops\n>$/)
    chat.press(CTRL_C)
    await chat.shows(/Stopped claude after \d+ s\.\n\n>$/)
    chat.press(CTRL_C)
    await chat.shows('Press Ctrl-C again to leave.')
    chat.press(CTRL_C)
    expect([await chat.exited, terminal.leftovers()]).toEqual([0, []])
  })

  it.runIf(existsSync(SCRIPT))('draws anew when the window changes, and leaves nothing behind', async (test) => {
    const { chat } = await begin(test, DEMO)
    chat.press(`count to ten${ENTER}`)
    // A frame drawn during the resize may still have the old width; once the turn has ended, none is drawn.
    await chat.shows(/ten\.\n\n>$/)
    chat.press('one two three four five six seven')
    await chat.shows(/> one two three four five six seven$/)
    chat.resize(32, 20)
    await chat.shows(/> one two three four five six\n\s*seven$/)
    chat.resize(90, 24)
    await chat.shows(/ten\.\n\n> one two three four five six seven$/)
    const { text, unknown } = chat.terminal
    chat.press(CTRL_C)
    const words = text.slice(text.indexOf('> count')).replaceAll(/\s+/g, ' ')
    expect([await leave(chat), words, unknown]).toEqual([
      0,
      '> count to ten Counting: one, two, three, four, five, six, seven, eight, nine, ten. > one two three four five six seven',
      [],
    ])
  })

  it.runIf(existsSync(SCRIPT))(
    'shows each line of an answer once, also of one that is higher than the window',
    async (test) => {
      const { terminal, chat } = await begin(test, FAKE, [], 60, 10)
      const items = Array.from({ length: 40 }, (_, index) => `- item ${index + 1}\n`)
      const code = ['\n```ts\n', 'const a = 1\n', '```\n', '\n**Done.**']
      const said = [...items, ...code]
      const steps = [START, { say: said.slice(0, 20) }, { waitFor: 'go' }, { answer: said.slice(20) }]
      chat.press(`${onOneLine(terminal.prompt(...steps))}${ENTER}`)
      await chat.shows('• item 20')
      chat.press(`/queue${ENTER}`)
      await chat.shows('Mode followup')
      terminal.write('go', '')
      await chat.shows(/Done\.\n\n>$/)
      const { text } = chat.terminal
      expect([await leave(chat), text.match(/• item \d+|const a = 1|Done\./g)]).toEqual([
        0,
        [...items.map((item) => item.trimEnd().replace('-', '•')), 'const a = 1', 'Done.'],
      ])
    },
  )

  it.runIf(existsSync(SCRIPT))('says in words, without the log, that the agent is not there', async (test) => {
    const terminal = new Terminal(test)
    const chat = terminal.openAtTerminal(['chat'], {})
    const exitCode = await chat.exited
    expect([exitCode, chat.terminal.text]).toEqual([
      1,
      expect.stringMatching(/The agent claude cannot be used\. .*npm install/),
    ])
    expect(chat.stdout).not.toContain('backend.missing')
  })

  it.runIf(existsSync(SCRIPT))('says why a turn failed in words, without the log', async (test) => {
    const { terminal, chat } = await begin(test, FAKE)
    chat.press(pasted(terminal.prompt({ fail: 'Invalid API key · Please run /login' })) + ENTER)
    await chat.shows('is not logged in where the gateway runs')
    await leave(chat)
    expect(chat.stdout).not.toContain('message.failed')
  })

  const leaving: [string, (chat: CommandAtTerminal, pid: number) => Promise<void> | void][] = [
    [
      'Ctrl-C',
      async (chat) => {
        chat.press(CTRL_C)
        await chat.shows('Press Ctrl-C again to leave.')
        chat.press(CTRL_C)
      },
    ],
    ['Ctrl-D', (chat) => chat.press(CTRL_D)],
    ['SIGTERM', (_, pid) => void process.kill(pid, 'SIGTERM')],
    ['SIGHUP', (_, pid) => void process.kill(pid, 'SIGHUP')],
  ]
  it.runIf(existsSync(SCRIPT)).for(leaving)(
    'can be left by %s while the gateway does not answer',
    async ([, leaveBy], test) => {
      const terminal = new Terminal(test)
      mkdirSync(join(terminal.home, '.aetheel'))
      const silent = createServer()
      await new Promise<void>((resolve) => {
        silent.listen(join(terminal.home, '.aetheel', 'gateway.sock'), resolve)
      })
      test.onTestFinished(() => void silent.close())
      const chat = terminal.openAtTerminal(['chat'], DEMO)
      await chat.shows(/>$/)
      const own = livingProcesses(terminal.directory).find(({ command }) => command.startsWith(process.execPath))
      await leaveBy(chat, own?.pid ?? 0)
      expect([await chat.exited, terminal.processes()]).toEqual([0, []])
      expect(chat.stdout.slice(chat.stdout.indexOf('\u001B[?2004h'))).toContain('\u001B[?2004l')
    },
  )

  it.runIf(existsSync(SCRIPT))('completes commands, their arguments and files of the project', async (test) => {
    const { terminal, chat } = await begin(test, DEMO)
    terminal.write('poem.txt', '')
    chat.press('/que')
    await chat.shows('› /queue  show what is waiting')
    chat.press(`\tfoll\t${ENTER}`)
    await chat.shows('> /queue followup')
    await chat.shows('The mode is followup')
    chat.press('@po')
    await chat.shows('› poem.txt')
    chat.press(`\tfile?${ENTER}`)
    await chat.shows('> @poem.txt file?')
    await chat.shows('I asked a real shell.')
    expect([await leave(chat), await messagesOf(terminal)]).toEqual([0, ['@poem.txt file?']])
  })

  it.runIf(existsSync(SCRIPT))(
    'attaches a file whose path is dragged into it, and leaves any other path as text',
    async (test) => {
      const { terminal, chat } = await begin(test, DEMO)
      const picture = join(terminal.home, 'my plot.png')
      writeFileSync(picture, 'PNG')
      chat.press(`The plot ${pasted(picture.replace(' ', '\\ '))}and ${pasted('/no/such.png')}`)
      await chat.shows('and /no/such.png')
      chat.press(ENTER)
      await chat.shows('  Attached: my plot.png (3 bytes)')
      await chat.shows('I asked a real shell.')
      expect([await leave(chat), await messagesOf(terminal)]).toEqual([
        0,
        [
          expect.stringMatching(
            /^The plot @".*\/my plot\.png" and \/no\/such\.png\nAttached file: \.aetheel\/inbox\/\S+\/my plot\.png \(image\/png, 3 bytes\)$/,
          ),
        ],
      ])
    },
  )
})

const ASK = { ...DEMO, AGENT_PERMISSIONS: 'ask' }

describe.concurrent('a question of the agent, at a terminal', () => {
  const KEYS =
    /Allow Write: \S+\?\ny allow · a always for this file · n deny · d deny with a reason ·\s+expires\s+in\s+10\s+minutes/

  it.runIf(existsSync(SCRIPT))('is shown once, and answered by a key on an empty line alone', async (test) => {
    const { terminal, chat } = await begin(test, ASK)
    chat.press(`edit a file${ENTER}`)
    await chat.shows(/\? demo wants to use Write\n {2}│ file_path: \S+aetheel-demo\.txt/)
    await chat.shows(KEYS)
    chat.press('my')
    await chat.shows('clear the line to answer with a key')
    chat.press('y\u007F\u007F\u007F')
    await chat.shows(KEYS)
    const hadWritten = existsSync(join(terminal.project, 'aetheel-demo.txt'))
    chat.press('y')
    await chat.shows(/✓ Write aetheel-demo\.txt {2}\d+s\n {2}\+ Written by [^]*I have written aetheel-demo\.txt\./)
    const asked = chat.terminal.text.match(/wants to use|Waits for an answer|\/approve|UTC/g)
    expect([await leave(chat), hadWritten, asked, terminal.read('aetheel-demo.txt')]).toEqual([
      0,
      false,
      ['wants to use'],
      expect.stringContaining('Changes so far: 0.'),
    ])
  })

  it.runIf(existsSync(SCRIPT))('is refused with a reason, which the agent is told', async (test) => {
    const { terminal, chat } = await begin(test, ASK)
    chat.press(`edit a file${ENTER}`)
    await chat.shows(KEYS)
    chat.press('d')
    await chat.shows(/Reason:$/)
    chat.press(`Not on Fridays.${ENTER}`)
    await chat.shows('I have changed nothing: Not on Fridays.')
    expect([await leave(chat), existsSync(join(terminal.project, 'aetheel-demo.txt'))]).toEqual([0, false])
  })

  it.runIf(existsSync(SCRIPT))('goes when it is answered elsewhere', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(ASK)
    const chat = terminal.openAtTerminal(['chat'], ASK)
    await chat.shows('/help')
    chat.press(`edit a file${ENTER}`)
    await chat.shows(KEYS)
    const { stdout } = await terminal.run(['approvals'])
    const [id = ''] = /\b[0-9a-f]{8}\b/.exec(stdout) ?? []
    await terminal.run(['approvals', 'deny', id])
    await chat.shows(/I have changed nothing: [^]*\n>$/)
    const { text } = chat.terminal
    const exitCode = await leave(chat)
    gateway.kill('SIGTERM')
    expect([exitCode, await gateway.exited, text.includes('expires in')]).toEqual([0, 0, false])
  })
})

describe.concurrent('aetheel chat, at a simple terminal', () => {
  const SIMPLE = { TERM: 'dumb' }

  it.runIf(existsSync(SCRIPT))('shows a tool as one line, and what is answered by a letter', async (test) => {
    const { terminal, chat } = await begin(test, { ...ASK, ...SIMPLE }, [], 200)
    chat.press('edit a file\n')
    await chat.shows(/\? demo wants to use Write\n {2}│ file_path: \S+aetheel-demo\.txt\n {2}│ [^]*\nAllow Write: /)
    await chat.shows('y allow · a always for this file · n deny · d deny with a reason · expires in 10')
    chat.press('d\n')
    await chat.shows('Reason:')
    chat.press('Not on Fridays.\n')
    await chat.shows('I have changed nothing: Not on Fridays.')
    const refused = existsSync(join(terminal.project, 'aetheel-demo.txt'))
    chat.press('edit a file\n')
    await chat.shows(/wants to use[^]*wants to use[^]*y allow/)
    chat.press('y\n')
    await chat.shows('I have written aetheel-demo.txt.')
    const { text } = chat.terminal
    expect([await leave(chat), await messagesOf(terminal), refused, text]).toEqual([
      0,
      ['edit a file', 'edit a file'],
      false,
      expect.not.stringMatching(/Waits for an answer|\/approve|UTC|\{"/),
    ])
    expect(text).toMatch(/^→ Write \S+aetheel-demo\.txt {2}✓ \d+s$/m)
  })

  it.runIf(existsSync(SCRIPT))(
    'takes lines that were pasted, or go on behind a backslash, for one message',
    async (test) => {
      const { terminal, chat } = await begin(test, { ...DEMO, ...SIMPLE })
      chat.press('Hello,\n\nmy name is Ada.\n')
      await chat.shows('you told me earlier')
      chat.press('What is\\\n')
      await chat.shows('What is\\')
      chat.press('my name?\n')
      await chat.shows(/you told me earlier[^]*you told me earlier/)
      expect([await leave(chat), await messagesOf(terminal)]).toEqual([
        0,
        ['Hello,\n\nmy name is Ada.', 'What is\nmy name?'],
      ])
    },
  )
})
