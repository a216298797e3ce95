import { describe, expect, it } from 'vitest'
import { Terminal } from '../../kit/terminal.js'

describe.concurrent('aetheel demo', () => {
  it('shows two conversations and the answer after a kill, and leaves nothing behind', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(['demo'])
    const lines = stdout.trimEnd().split('\n')
    const answers = lines.flatMap((line) => /^ +(ada|grace) +answer +(.*)$/.exec(line)?.slice(1, 3).join(': ') ?? [])
    expect({
      exitCode,
      stderr,
      answers: answers.toSorted(),
      last: lines.slice(-3),
      left: terminal.processes(),
    }).toEqual({
      exitCode: 0,
      stderr: '',
      answers: [
        expect.stringMatching(/^ada: I was interrupted at \w+, so I continue: .* ten\.$/),
        'ada: There are 2 files here: hello.txt, notes.md. I asked a real shell.',
        'ada: Your name is Ada; you told me earlier in this session.',
        'grace: There are 2 files here: hello.txt, notes.md. I asked a real shell.',
        'grace: Your name is Grace; you told me earlier in this session.',
      ],
      last: ['5 messages, 5 answers: none lost, none repeated.', '', 'Now try it yourself: aetheel'],
      left: [],
    })
  })
})

describe.concurrent('aetheel', () => {
  it('explains itself', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(['--help'])
    const commands = [...stdout.matchAll(/^ {2}(\w+) /gm)].map(([, name]) => name)
    expect([exitCode, commands, stderr]).toEqual([
      0,
      [
        ...[
          'init',
          'start',
          'dashboard',
          'chat',
          'ask',
          'event',
          'send',
          'heartbeat',
          'cron',
          'queue',
          'approvals',
          'sessions',
          'projects',
          'credentials',
          'tokens',
          'people',
          'runs',
          'search',
          'archive',
        ],
        ...['agents', 'doctor', 'config', 'demo', 'help'],
      ],
      '',
    ])
  })

  it('explains each option of ask', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout } = await terminal.run(['ask', '--help'])
    const options = [...stdout.matchAll(/--[a-z]+/g)].map(([option]) => option)
    const expected = ['--backend', '--model', '--session', '--cwd', '--system', '--json', '--timeout', '--help']
    expect([exitCode, options]).toEqual([0, expected])
  })
})
