import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { ReadStream, WriteStream } from 'node:tty'
import { expect, it, onTestFinished } from 'vitest'
import { ChatSession } from '../../../src/cli/chat-session.js'
import { TerminalChat } from '../../../src/cli/chat/terminal-chat.js'
import type { Control, OpenQuestion } from '../../../src/cli/control/protocol.js'
import { EmulatedTerminal } from '../../kit/emulated-terminal.js'
import { SILENT_LOG } from '../../kit/log.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'
import { until } from '../../kit/waiting.js'

const QUESTION: OpenQuestion = {
  id: 'q',
  messageId: 'm',
  backend: 'claude',
  toolName: 'Write',
  summary: 'Write: a.txt',
  request: 'file_path: a.txt',
  deadline: Date.now() + 600_000,
}
const KEYS = 'y allow'

/** A chat with a gateway that never answers `chat.suggest`. */
async function setup(questions: OpenQuestion[] = [], now = Date.now) {
  const directory = temporaryDirectory(onTestFinished)
  const calls: { method: string; parameters: unknown }[] = []
  const results: Record<string, unknown> = {
    'chat.history': { entries: [] },
    'chat.questions': { questions },
    'chat.place': { backend: 'claude', isDemo: false, workplace: directory, directory: join(directory, 'project') },
    'chat.send': { status: 'accepted', messageId: 'm', conversationId: 'c', position: 0, notes: [] },
    'chat.command': { answer: 'Done.' },
  }
  const connect = () => {
    let lose = (): void => {}
    const closed = new Promise<void>((resolve) => {
      lose = resolve
    })
    const call = async (method: string, parameters: unknown): Promise<unknown> => {
      calls.push({ method, parameters })
      return method === 'chat.suggest' ? new Promise(() => {}) : (results[method] ?? {})
    }
    return { control: { call, closed, close: async () => lose() } as Control, lose }
  }
  const screen = new EmulatedTerminal(80, 24)
  const stdin = Object.assign(new PassThrough(), { setRawMode: () => {} })
  const stdout = Object.assign(new PassThrough(), { columns: 80, rows: 24 })
  stdout.setEncoding('utf8').on('data', (chunk: string) => screen.write(chunk))
  const chat = new TerminalChat({
    stdin: stdin as unknown as ReadStream,
    stdout: stdout as unknown as WriteStream,
    environment: {},
    historyFile: join(directory, 'chat-history'),
    conversation: 'default',
    log: SILENT_LOG,
    now,
  })
  chat.open()
  let isBack = false
  const session = new ChatSession({
    ...{ address: 'default', author: 'ada', view: chat.view, refusesQuestions: false },
    connect: async () => (isBack ? connect().control : undefined),
  })
  const { control, lose } = connect()
  await session.begin(control, 0, () => chat.greet(session, () => 'agent', 'gateway'))
  chat.ready()
  onTestFinished(async () => {
    chat.close()
    await session.close()
  })
  return {
    ...{ directory, calls, lose, screen },
    comeBack: () => {
      isBack = true
    },
    press: (keys: string) => stdin.write(keys),
    shows: (text: string) =>
      until(
        () => screen.text.includes(text),
        () => screen.text,
      ),
    sent: (method: string) =>
      until(() => calls.find((call) => call.method === method)?.parameters, `a call of ${method}`),
  }
}

const pasted = (text: string): string => `\u001B[200~${text}\u001B[201~`

it('gives the keyboard back on Ctrl-C while Tab waits for the gateway', async () => {
  const { press, sent, shows, screen } = await setup()
  press('/model \t')
  await sent('chat.suggest')
  press('held')
  press('\u0003')
  press('hello')
  await shows('> hello')
  expect(screen.text).not.toContain('held')
})

it('answers no question by a key that was pressed while Tab was looking', async () => {
  let at = Date.now()
  // Each time the clock is read, the last key was pressed long ago.
  const { press, shows, calls } = await setup([QUESTION], () => (at += 10_000))
  await shows(KEYS)
  press('\ty')
  await shows('> y')
  expect(calls.map(({ method }) => method)).not.toContain('approvals.answer')
})

it('asks again, and says why, if an answer could not be given', async () => {
  const { press, shows, lose, comeBack, calls, sent } = await setup([QUESTION])
  await shows(KEYS)
  lose()
  await shows('Lost the connection to the gateway.')
  press('y')
  await shows('Error: Not connected to the gateway. Try again in a moment.')
  comeBack()
  await shows('The gateway is back.')
  await shows(KEYS)
  expect(calls.map(({ method }) => method)).not.toContain('approvals.answer')
  press('y')
  expect(await sent('approvals.answer')).toEqual({ id: 'q', decision: 'allow' })
})

it('attaches what the person names, and not what a pasted text does', async () => {
  const { directory, press, shows, sent } = await setup()
  const [own, other] = [join(directory, 'plot.png'), join(directory, 'id_ed25519')]
  for (const file of [own, other]) writeFileSync(file, '')
  press(`${pasted(own)}and ${pasted(`see @${other} `)}\r`)
  await shows('Attached: plot.png')
  expect(await sent('chat.send')).toMatchObject({ text: `@${own} and see @${other} `, files: [own] })
})

it('attaches to a message that begins like a path, and to no command', async () => {
  const { directory, press, shows, calls, sent, screen } = await setup()
  const file = join(directory, 'plot.png')
  writeFileSync(file, '')
  press(`/queue @${file}\r`)
  await shows('Done.')
  expect(screen.text).not.toContain('Attached')
  press(`/etc/hosts @${file}\r`)
  await sent('chat.send')
  await shows('Attached: plot.png')
  expect(calls.filter(({ method }) => /send|command/.test(method))).toMatchObject([
    { method: 'chat.command' },
    { method: 'chat.send', parameters: { files: [file] } },
  ])
})
