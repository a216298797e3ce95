import { chmodSync, readdirSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { AetheelClient } from '../../../src/client/aetheel-client.js'
import type { RunningCommand } from '../../kit/running-command.js'
import { Terminal } from '../../kit/terminal.js'

const ENTER = '\r'
const CTRL_C = '\u0003'
const QUESTIONS = [
  'Which agent should answer?',
  'What may the agent do?',
  'Which directory should it work in?',
  'Connect it to Discord?',
]
const DOWN = '\u001B[B'

describe('aetheel without a command', () => {
  it('leads a newcomer from nothing to the first answer, with the built-in agent', async (test) => {
    const terminal = new Terminal(test)
    const gateway = terminal.openAtTerminal([], { AGENT_MODE: 'auto' })
    for (const question of QUESTIONS) {
      await gateway.printed(question)
      gateway.press(ENTER)
    }
    await gateway.printed('Ctrl-C stops it.')
    const { client, code } = await follow(gateway)
    const me = await client.loginWithCode(code)
    const again = await client.loginWithCode(code).catch(({ message }: Error) => message)
    const projects = await client.projects.list()
    const project_id = projects.find((project) => project.is_default)?.id ?? 'none'
    const { id } = await client.conversations.create({ project_id })
    const pieces = await piecesOfAnswer(client, id, 'hello')
    const chat = await terminal.run(['chat'], { stdin: 'What is my name?\n', env: { AGENT_MODE: 'auto' } })
    gateway.press(CTRL_C)
    await gateway.exited
    const last = /Stopping: .*?finish\./.exec(gateway.stdout)?.[0]
    const streamed = { isStreamed: pieces.length > 10, answer: pieces.join('') }
    expect({ scopes: me.scopes, again, ...streamed, chat: chat.stdout, last }).toEqual({
      scopes: ['read', 'run', 'admin'],
      again: 'This link was already used or has expired. Get a new one with "aetheel dashboard".',
      isStreamed: true,
      answer: expect.stringContaining('I am the demo agent: there is no model behind me'),
      chat: 'I do not know it yet.\n',
      last: 'Stopping: running turns may finish.',
    })
  })

  it('leaves nothing behind when it is left, and says how to go on', async (test) => {
    const terminal = new Terminal(test)
    const command = terminal.openAtTerminal([])
    await command.printed('Which agent should answer?')
    command.press(CTRL_C)
    expect([await command.exited, readdirSync(terminal.home)]).toEqual([1, []])
    expect(stripVTControlCharacters(command.stdout)).toContain(
      'Cancelled: nothing was written. Start again with "aetheel".',
    )
  })

  it('starts all the same with an agent that is to be installed later', async (test) => {
    const terminal = new Terminal(test)
    const gateway = terminal.openAtTerminal([], { DISPLAY: '' })
    await gateway.printed('Which agent should answer?')
    gateway.press(DOWN + ENTER)
    for (const question of QUESTIONS.slice(1)) {
      await gateway.printed(question)
      gateway.press(ENTER)
    }
    await gateway.printed('No agent yet: The agent claude cannot be used.')
    await gateway.printed('Ctrl-C stops it.')
    gateway.press(CTRL_C)
    await gateway.exited
    const later = await terminal.startGateway({})
    later.kill('SIGTERM')
    expect([await later.exited, later.stdout]).toEqual([
      0,
      expect.stringContaining('The dashboard shows the first steps.'),
    ])
  })

  it('shows how things are once it is set up', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('aetheel.json5', "{ agentBackend: 'demo' }")
    const gateway = await terminal.startGateway({})
    const running = terminal.openAtTerminal([])
    await running.exited
    gateway.kill('SIGTERM')
    await gateway.exited
    const stopped = terminal.openAtTerminal([])
    await stopped.exited
    expect([running.stdout, stopped.stdout]).toEqual([
      expect.stringMatching(
        /Gateway +running as process \d+[^]*Agent +the demo agent[^]*Dashboard +http:\/\/127\.0\.0\.1:\d+[^]*aetheel dashboard --open/,
      ),
      expect.stringMatching(/Gateway +not running[^]*aetheel start +runs the gateway/),
    ])
  })

  it('says that the agent is not logged in, and how that is done', async (test) => {
    const terminal = new Terminal(test)
    terminal.write('aetheel.json5', "{ agentBackend: 'claude' }")
    const cli = terminal.write('cli', `#!/bin/sh\n[ "$1" = --version ] && echo 2.1.326 || echo '{"loggedIn":false}'\n`)
    chmodSync(cli, 0o755)
    terminal.install('claude', cli)
    const shown = terminal.openAtTerminal([])
    await shown.exited
    expect(shown.stdout).toMatch(/Agent +claude 2\.1\.326, not logged in[^]*Log the agent in\. Run: claude auth login/)
  })

  it('prints the help where there is no terminal', async (test) => {
    const { exitCode, stderr } = await new Terminal(test).run([])
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/^Usage: aetheel [^]*\n {2}init /)])
  })

  it('says no more than what was meant when a command is mistyped', async (test) => {
    const { exitCode, stdout, stderr } = await new Terminal(test).run(['caht'])
    expect([exitCode, stdout, stderr]).toEqual([
      1,
      '',
      "error: unknown command 'caht'\nDid you mean chat?\nUse --help to list commands and options.\n",
    ])
  })
})

describe('aetheel dashboard', () => {
  it('prints a link that logs in once, and opens it where there is a screen', async (test) => {
    const terminal = new Terminal(test)
    const opener = terminal.write('opener.mjs', OPENER)
    chmodSync(opener, 0o755)
    terminal.install('xdg-open', opener)
    const gateway = await terminal.startGateway({ AGENT_BACKEND: 'demo' })
    const env = { DISPLAY: ':0', AGENT_BACKEND: 'demo' }
    const { exitCode, stdout, stderr } = await terminal.run(['dashboard', '--open'], { env })
    await expect.poll(() => readdirSync(terminal.project)).toContain('opened')
    gateway.kill('SIGTERM')
    await gateway.exited
    expect([exitCode, stdout, stderr, terminal.read('opened')]).toEqual([
      0,
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#\/login\?code=[\w-]{43}\n$/),
      'The link works once and expires in 10 minutes.\n',
      stdout.trim(),
    ])
  })

  it.for<[string, NodeJS.ProcessEnv | undefined, string]>([
    ['no gateway', undefined, 'No gateway is running here. Start one with "aetheel start".\n'],
    [
      'no HTTP API',
      { HTTP_ENABLED: 'false' },
      'The HTTP API and the dashboard are turned off. Remove HTTP_ENABLED=false and restart the gateway.\n',
    ],
  ])('says what to do with %s', async ([, env, sentence], test) => {
    const terminal = new Terminal(test)
    const gateway = env && (await terminal.startGateway({ AGENT_BACKEND: 'demo', ...env }))
    const { exitCode, stderr } = await terminal.run(['dashboard'])
    gateway?.kill('SIGTERM')
    await gateway?.exited
    expect([exitCode, stderr]).toEqual([1, sentence])
  })
})

const OPENER = `#!/usr/bin/env node
import { renameSync, writeFileSync } from 'node:fs'
writeFileSync('opened.new', process.argv[2])
renameSync('opened.new', 'opened')
`

/** The text of an answer as it arrives. */
async function piecesOfAnswer(client: AetheelClient, conversationId: string, text: string): Promise<string[]> {
  const pieces: string[] = []
  for await (const event of client.activity()) {
    if (event.name === 'snapshot') await client.conversations.send(conversationId, text)
    if (event.name !== 'event') continue
    if (event.data.name === 'output') pieces.push(String(event.data.data['line']))
    if (event.data.name === 'complete') break
  }
  return pieces
}

/** What the page behind a link says to the gateway. */
async function follow({ stdout }: RunningCommand): Promise<{ client: AetheelClient; code: string }> {
  const [, origin = '', code = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/#\/login\?code=([\w-]{43})/.exec(stdout) ?? []
  let cookie = ''
  const client = new AetheelClient({
    baseUrl: origin,
    fetch: async (input, init) => {
      const headers = new Headers(init?.headers)
      headers.set('origin', origin)
      if (cookie !== '') headers.set('cookie', cookie)
      const response = await fetch(input, { ...init, headers })
      cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie
      return response
    },
  })
  return { client, code }
}
