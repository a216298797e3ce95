import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { HELP_TEXT } from '../../../src/conversation/command-descriptions.js'
import { openStore } from '../../../src/store/store.js'
import { START } from '../../contract/agent-script.js'
import { agentPath } from '../../kit/agents.js'
import { DEMO_AGENT } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'
import { SILENT_LOG } from '../../kit/log.js'
import { steps, STEPS_AGENT } from '../../kit/steps-agent.js'

const DEMO = { BACKEND_CLI_PATH: DEMO_AGENT, USER: 'ada' }
const FAKE = { BACKEND_CLI_PATH: agentPath('fake-agent.sh') }

describe.concurrent('aetheel chat, with a gateway', () => {
  it('streams answers to stdout and what the agent does to stderr, and remembers', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('poem.txt', '')
    const gateway = await terminal.startGateway(DEMO)
    const first = await terminal.run(['chat'], { stdin: 'My name is Ada. Which files?\n' })
    const second = await terminal.run(['chat'], { stdin: 'What is my name?\n' })
    gateway.kill('SIGTERM')
    expect([first, second, await gateway.exited, terminal.leftovers()]).toEqual([
      {
        exitCode: 0,
        stdout: 'Hello Ada. Let me look.\n\nThere is one file here, poem.txt. I asked a real shell.\n',
        stderr: expect.stringMatching(/^\n→ Bash ls {2}✓ \d+s\n$/),
      },
      { exitCode: 0, stdout: 'Your name is Ada; you told me earlier in this session.\n', stderr: '' },
      0,
      [],
    ])
  })

  it('shows where the files of an answer are, and why one is withheld', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('my plot.png', '')
    terminal.write('.env', '')
    const gateway = await terminal.startGateway(FAKE)
    const lines = ['Drawn.', '', 'MEDIA: my plot.png', 'MEDIA:.env', 'MEDIA:https://host.example/a.png']
    const prompt = terminal.prompt(START, { answer: lines.join('\n') })
    const chat = await terminal.run(['chat'], { stdin: `${prompt.replaceAll('\n', '; ')}\n` })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect(chat).toEqual({
      exitCode: 0,
      stdout: [...lines, `File: ${join(terminal.project, 'my plot.png')}`, 'File: https://host.example/a.png', ''].join(
        '\n',
      ),
      stderr: expect.stringMatching(/^! The file "\.env" was not sent: files of this kind may hold secrets .*\n$/),
    })
  })

  it('keeps conversations apart', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(DEMO)
    await terminal.run(['chat', '--conversation', 'one'], { stdin: 'My name is Ada.\n' })
    const { stdout } = await terminal.run(['chat', '-c', 'two'], { stdin: 'What is my name?\n' })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect(stdout).toBe('I do not know it yet.\n')
  })

  it('works in a project', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('aetheel.json5', `{ projects: { home: { directory: '${terminal.home}' } } }`)
    const gateway = await terminal.startGateway(DEMO)
    const known = await terminal.run(['chat', '--project', 'home'], { stdin: 'Which files?\n' })
    const unknown = await terminal.run(['chat', '--project', 'web'], { stdin: 'Which files?\n' })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect([known.stdout, unknown]).toEqual([
      expect.stringMatching(/There is nothing here yet/),
      {
        exitCode: 1,
        stdout: '',
        stderr: 'There is no project web. Known: home. "aetheel projects create" creates one.\n',
      },
    ])
  })

  it('takes the commands of a conversation, and treats a path as text', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(DEMO)
    const lines = ['/model small', '/backend', '/nope', '/help', '/etc/hosts is empty?', '/quit', 'not read']
    const chat = await terminal.run(['chat'], { stdin: `${lines.join('\n')}\n` })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect(chat.stderr.split('\n')).toEqual([
      'The next message uses the model small.',
      'The agent is claude.',
      'Unknown command /nope. /help lists the commands; //nope sends /nope to the agent.',
      ...HELP_TEXT.split('\n'),
      ...['history', 'quit'].map((name) => expect.stringMatching(`^/${name}: `)),
      'The gateway keeps working on it; "aetheel chat" shows the answer.',
      '',
    ])
  })

  it('shows the history', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(DEMO)
    await terminal.run(['chat'], { stdin: 'My name is \u001B[31mAda.\n', env: { USER: 'ada' } })
    const { stdout } = await terminal.run(['chat'], { stdin: '/history\n' })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d {2}ada: My name is \[31mAda\.$/),
      expect.stringMatching(/ {2}agent: I do not know it yet\.$/),
      '',
    ])
  })

  it('stops the turn on Ctrl-C, and leaves on the next', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(FAKE)
    const chat = terminal.open(['chat'])
    chat.type(terminal.prompt(START, { say: 'Working' }, { hang: true }).replaceAll('\n', '; '))
    await chat.printed('Working')
    chat.kill('SIGINT')
    await chat.printed(/Stopped claude after \d+ s\./)
    chat.kill('SIGINT')
    gateway.kill('SIGTERM')
    expect([await chat.exited, await gateway.exited, terminal.leftovers()]).toEqual([1, 0, []])
  })

  it('answers, once restarted, what was asked before the gateway was killed', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('poem.txt', '')
    const killed = await terminal.startGateway(DEMO)
    const chat = terminal.open(['chat'])
    chat.type('Which files?')
    await chat.printed('Let')
    killed.kill('SIGKILL')
    await chat.printed('Lost the connection to the gateway.')
    chat.type('My name is Ada.')
    chat.endInput()
    const next = await terminal.startGateway(DEMO)
    const exitCode = await chat.exited
    next.kill('SIGTERM')
    await next.exited
    // Of the turn that was cut off, a part or all may have been seen.
    const answers = new Set(chat.stdout.split('\n').filter((line) => /^(?:There|Your).*\.$/.test(line)))
    expect([exitCode, [...answers], terminal.processes()]).toEqual([
      0,
      [
        'There is one file here, poem.txt. I asked a real shell.',
        'Your name is Ada; you told me earlier in this session.',
      ],
      [],
    ])
  })

  it('says why it takes long when a turn is retried', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(FAKE)
    const answer = terminal.prompt(START, { answer: 'Done' }).replaceAll('\n', '; ')
    const stdin = `[ -e tried ] || { : > tried; echo 'Out of luck' >&2; exit 1; }; ${answer}\n`
    const chat = await terminal.run(['chat'], { stdin })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect(chat).toEqual({
      exitCode: 0,
      stdout: 'Done\n',
      stderr: expect.stringMatching(/^! Failed, retrying: Out of luck\. Attempt 2 of 4 starts in \d s\.\n$/),
    })
  })

  it("says until when a limit lasts, in the person's time zone", async (test) => {
    const terminal = new Terminal(test)
    const env = { BACKEND_CLI_PATH: STEPS_AGENT, TZ: 'Asia/Tokyo' }
    const end = new Date(Date.now() + 2 * 3_600_000)
    const clock = end.toLocaleTimeString('sv', { timeZone: env.TZ, timeStyle: 'short' })
    const chat = terminal.open(['chat'], env)
    chat.type(steps({ fail: `You've hit your limit · resets ${clock}` }))
    await chat.printed(/claude has reached its usage limit.*\n/)
    chat.kill('SIGTERM')
    expect([await chat.exited, chat.stdout, chat.stderr]).toEqual([
      1,
      '',
      expect.stringMatching(
        new RegExp(
          `^! claude has reached its usage limit\\. Your message is waiting and will be retried at (?:[\\d-]{10} )?${clock}\\.\\n`,
        ),
      ),
    ])
  })

  it('waits for what /continue begins', async (test) => {
    const terminal = new Terminal(test)
    const stdin = `${steps({ text: 'Half of it.' }, { pause: true })}\n/continue\n`
    const chat = await terminal.run(['chat'], { stdin, env: { BACKEND_CLI_PATH: STEPS_AGENT } })
    expect(chat).toEqual({
      exitCode: 0,
      stdout: 'Half of it.\nYou said: Continue where you stopped.\n',
      stderr: '! Paused after 25 steps, the limit for one message. Use /continue to resume.\nContinuing.\n',
    })
  })

  it('ends with 1 when the answer is an error', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway(FAKE)
    const chat = await terminal.run(['chat'], { stdin: `   \n${'x'.repeat(1_000_001)}\n` })
    gateway.kill('SIGTERM')
    await gateway.exited
    expect(chat).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Error: The message is too long: 1000001 characters/),
    })
  })
})

describe.concurrent('aetheel chat, without a gateway', () => {
  it('does the work itself', async (test) => {
    const terminal = new Terminal(test)
    const first = await terminal.run(['chat'], { stdin: 'My name is Ada.\n', env: DEMO })
    const second = await terminal.run(['chat'], { stdin: 'What is my name?\n', env: DEMO })
    const answer = 'Your name is Ada; you told me earlier in this session.\n'
    expect([first, second, terminal.leftovers()]).toEqual([
      { exitCode: 0, stdout: answer, stderr: '' },
      { exitCode: 0, stdout: answer, stderr: '' },
      [],
    ])
  })

  it('keeps a message that was not answered for the next one', async (test) => {
    const terminal = new Terminal(test)
    const first = terminal.open(['chat'], FAKE)
    first.type(terminal.prompt(START, { say: 'Working' }, { waitFor: 'go' }, { answer: 'Done' }).replaceAll('\n', '; '))
    await first.printed('Working')
    first.type('/quit')
    const exitCode = await first.exited
    terminal.write('go', '')
    const second = terminal.open(['chat'], FAKE)
    await second.printed('Done')
    second.endInput()
    expect([exitCode, first.stderr, await second.exited, terminal.leftovers()]).toEqual([
      1,
      expect.stringContaining('Your message is kept, and the next gateway answers it'),
      0,
      [],
    ])
  })

  it('says what to do when the agent is not installed', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stderr } = await terminal.run(['chat'], { stdin: 'Hello\n', env: { LOG_LEVEL: 'silent' } })
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/^The agent claude cannot be used\. .*npm install/)])
  })

  it('shows the history of a chat, and where its files are', async (test) => {
    const terminal = new Terminal(test)
    const store = await openStore({ file: join(terminal.home, '.aetheel', 'aetheel.db') }, SILENT_LOG)
    const about = { conversationId: 'c', channel: 'terminal', address: 'default', expiresAt: 9 }
    const { seq } = await store.conversations.enter(about, about.conversationId, 1)
    terminal.write('plot.png', '')
    const directory = terminal.project
    const files = [{ path: 'plot.png', directory }, { path: '.env', directory }, { url: 'https://host.example/a.png' }]
    await store.outbox.add({ ...about, id: 'r', seq, reply: { text: 'Drawn.', notes: [], isError: false, files } }, 2)
    await store.outbox.settle({ id: 'r', fence: 0 }, 'delivered', null, 3)
    await store.close()
    const chat = await terminal.run(['chat'], {
      stdin: '/history\n',
      env: { BACKEND_CLI_PATH: DEMO_AGENT, TZ: 'Asia/Tokyo' },
    })
    expect(chat).toEqual({
      exitCode: 0,
      stdout: [
        '1970-01-01 09:00  agent: Drawn.',
        `File: ${join(directory, 'plot.png')}`,
        'File: https://host.example/a.png',
        '',
      ].join('\n'),
      stderr: '',
    })
  })
})

describe.concurrent('a question of the agent, in a pipe', () => {
  it('is refused at once, since nobody can be asked', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway({ ...DEMO, AGENT_PERMISSIONS: 'ask' })
    const chat = await terminal.run(['chat'], { stdin: 'Edit a file.\n' })
    gateway.kill('SIGTERM')
    await gateway.exited
    const about = chat.stderr.split('\n').filter((line) => /wait|refuse|denied|deny|allow|nobody/i.test(line))
    expect([chat.exitCode, chat.stdout, about, existsSync(join(terminal.project, 'aetheel-demo.txt'))]).toEqual([
      0,
      expect.stringMatching(/^I have changed nothing: Nobody can be asked here whether this is allowed\. .*\n$/),
      [
        expect.stringMatching(
          /^! Denied, because nobody can answer here: Write: .*aetheel-demo\.txt\. To answer, run "aetheel chat" in a terminal /,
        ),
      ],
      false,
    ])
  })

  it('waits if it belongs to the message of somebody else', async (test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway({ ...DEMO, AGENT_PERMISSIONS: 'ask' })
    const first = terminal.open(['chat'], { AGENT_PERMISSIONS: 'ask' })
    const second = terminal.open(['chat'])
    second.type('/status')
    await second.printed('agent: claude')
    first.type('Edit a file.')
    await second.printed('Denied')
    second.endInput()
    first.endInput()
    gateway.kill('SIGTERM')
    await Promise.all([first.exited, second.exited, gateway.exited])
    expect([first.stderr.match(/because nobody can answer here/g), second.stderr.includes('because nobody')]).toEqual([
      ['because nobody can answer here'],
      false,
    ])
  })
})
