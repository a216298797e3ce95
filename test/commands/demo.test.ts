import { describe, expect, it } from 'vitest'
import { Terminal } from './terminal.js'

describe.concurrent('aetheel demo', () => {
  it('shows two turns of one conversation and leaves nothing behind', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(['demo'])
    const told = [
      'you    My name is Ada. Which files are here?',
      'agent  Hello Ada. Let me look.',
      '→ Bash {"command":"ls"}',
      '✓ Bash hello.txt notes.md',
      'There are 2 files here, hello.txt and notes.md. I asked a real shell.',
      'you    What is my name?',
      'agent  Your name is Ada; you told me earlier in this session.',
    ]
    const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('Session: '))
    expect({ exitCode, stderr, lines, left: terminal.leftovers() }).toEqual({
      exitCode: 0,
      stderr: '',
      lines: told,
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
        ...['start', 'chat', 'ask', 'queue', 'sessions', 'runs', 'search', 'archive'],
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
