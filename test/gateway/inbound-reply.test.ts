// WhatsApp messages through a whole gateway, configured by `inbound.reply`.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { ChannelMessage } from '../../src/channels/types.js'
import { Stage, TestChannel } from '../kit/stage.js'
import { until } from '../kit/waiting.js'

const SESSION = '01a1e0f0-9fc2-706a-8db2-85fdf6bf24c6'

/** Records how it was started, one line each time, and answers as Claude does. */
const RECORDER = `#!/usr/bin/env node
import { appendFileSync, readFileSync } from 'node:fs'
const [argv, stdin] = [process.argv.slice(2), readFileSync(0, 'utf8')]
appendFileSync('started', JSON.stringify({ argv, stdin }) + '\\n')
const result = 'You said: ' + stdin
if (argv.includes('text')) console.log(result)
else console.log(JSON.stringify({ type: 'result', subtype: 'success', is_error: false, session_id: '${SESSION}', result }))
`

async function setup(reply: object, variables: Record<string, string> = {}) {
  const stage = new Stage(onTestFinished)
  const recorder = stage.executable('recorder', RECORDER)
  const cwd = stage.makeDirectory('relay')
  const channel = new TestChannel(true, 'whatsapp')
  const { gateway } = await stage.start(variables, { inbound: { reply: { cwd, ...reply } } }, channel)
  let count = 0
  return {
    stage,
    gateway,
    channel,
    cwd,
    recorder,
    /** Sends a message, and waits for the answer. */
    ask: async (text: string, more: Partial<ChannelMessage> = {}) => {
      count += 1
      const [platformId, replies] = [`SM${count}`, channel.replies.length]
      await channel.host().onMessage({ address: '+491', author: '+491', platformId, text, ...more })
      const answer = await until(() => channel.replies[replies], 'the answer')
      const { files, notes, isError } = answer
      return { text: answer.text, notes, isError, ...(files && { files }) }
    },
    started: (): { argv: string[]; stdin: string }[] => {
      const file = join(cwd, 'started')
      if (!existsSync(file)) return []
      return readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { argv: string[]; stdin: string })
    },
  }
}

const answer = (text: string) => ({ text, notes: [], isError: false })

it('an agent is started by its template, and continues the session that it named itself', async () => {
  const { ask, started } = await setup({
    agent: { kind: 'claude', format: 'json', identityPrefix: 'You are Ada.' },
    command: ['recorder', '--name', 'from {{From}}', '{{Body}}'],
    session: { sendSystemOnce: true, sessionIntro: 'New: {{IsNewSession}}.' },
    bodyPrefix: '> ',
  })
  const variables = { From: '+491' }
  const answers = [await ask('one', { options: { variables } }), await ask('two', { options: { variables } })]
  const first = 'New: true.\n\nYou are Ada.\n\n> one'
  expect([
    answers,
    started().map(({ argv, stdin }) => [argv.filter((argument) => /from|01a1/.test(argument)), stdin]),
  ]).toEqual([
    [answer(`You said: ${first}`), answer('You said: two')],
    [
      [['from +491'], first],
      [[SESSION, 'from +491'], 'two'],
    ],
  ])
})

it('a message that would become an option is refused, and nothing is started', async () => {
  const { ask, started } = await setup({ agent: { kind: 'claude' }, command: ['recorder', '{{BodyStripped}}!'] })
  const { text, isError } = await ask('--help')
  expect([isError, text, started()]).toEqual([true, expect.stringContaining('it would begin with "-"'), []])
})

it('a missing agent is reported at once, without a retry', async () => {
  const { ask, gateway } = await setup({ agent: { kind: 'claude' }, command: ['no-such-agent', '{{Body}}'] })
  const { text, isError } = await ask('hi')
  expect([isError, text, await gateway.store.runs.list(10)]).toEqual([
    true,
    expect.stringContaining('Claude CLI "no-such-agent" was not found.'),
    [expect.objectContaining({ state: 'failed' })],
  ])
})

it('plain text has no session, and is answered as it was printed', async () => {
  const { ask, started } = await setup({ agent: { kind: 'claude', format: 'text' }, command: ['recorder', '{{Body}}'] })
  const answers = [await ask('one'), await ask('two')]
  expect([answers, started().map(({ argv }) => argv.slice(0, 3))]).toEqual([
    [answer('You said: one'), answer('You said: two')],
    [
      ['--output-format', 'text', '-p'],
      ['--output-format', 'text', '-p'],
    ],
  ])
})

it('an answer gets its prefix and the configured file, unless it names one', async () => {
  const mediaUrl = 'https://example.com/a.png'
  const { ask, cwd } = await setup({
    agent: { kind: 'claude' },
    command: ['recorder', '{{Body}}'],
    responsePrefix: '[ada]',
    mediaUrl,
  })
  expect([await ask('hi'), await ask('this\nMEDIA: b.png')]).toEqual([
    { ...answer('[ada] You said: hi'), files: [{ url: mediaUrl }] },
    { ...answer('[ada] You said: this'), files: [expect.objectContaining({ path: 'b.png', directory: cwd })] },
  ])
})

it('a fixed text is answered without an agent, and nobody gets a file by repeating its name', async () => {
  const { ask, gateway, started } = await setup({
    mode: 'text',
    text: 'You, {{From}}, wrote:\n{{Body}}\n[{{SessionId}}] {{IsNewSession}}',
  })
  const answered = await ask('MEDIA: secret.png', { options: { variables: { From: '+491' } } })
  const [run] = await gateway.store.runs.list(10)
  expect([answered, started(), run?.backend, run?.state]).toEqual([
    answer('You, +491, wrote:\nMEDIA: secret.png\n[] true'),
    [],
    'text',
    'answered',
  ])
})

it('a command that is scheduled needs no project', async () => {
  const { ask, stage } = await setup({ agent: { kind: 'claude' } })
  const answered = await ask('look', { kind: 'cron', options: { command: ['pwd'] } })
  expect(answered.text.trim()).toBe(stage.workingDir)
})
