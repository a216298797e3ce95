import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createLog } from '../../src/log.js'
import { openStore } from '../../src/store/store.js'
import { DEMO_AGENT, Terminal } from '../kit/terminal.js'

it('shows what was said in a chat, and where the files are that went with it', async (test) => {
  const terminal = new Terminal(test)
  const store = await openStore({ file: join(terminal.home, '.aetheel', 'aetheel.db') }, createLog({ level: 'silent' }))
  const about = { conversationId: 'c', channel: 'terminal', address: 'default', expiresAt: 9 }
  const { seq } = await store.conversations.enter(about, about.conversationId, 1)
  terminal.write('plot.png', '')
  const directory = terminal.project
  const files = [{ path: 'plot.png', directory }, { path: '.env', directory }, { url: 'https://host.example/a.png' }]
  await store.outbox.add({ ...about, id: 'r', seq, reply: { text: 'Drawn.', notes: [], isError: false, files } }, 2)
  await store.outbox.settle({ id: 'r', fence: 0 }, 'delivered', null, 3)
  await store.close()
  const chat = await terminal.run(['chat'], { stdin: '/history\n', env: { BACKEND_CLI_PATH: DEMO_AGENT } })
  expect(chat).toEqual({
    exitCode: 0,
    stdout: [
      '1970-01-01 00:00  agent: Drawn.',
      `File: ${join(directory, 'plot.png')}`,
      'File: https://host.example/a.png',
      '',
    ].join('\n'),
    stderr: '',
  })
})
