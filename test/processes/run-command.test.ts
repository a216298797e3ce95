import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ProcessOwner } from '../../src/processes/process-owner.js'
import { type CommandOptions, runCommand } from '../../src/processes/run-command.js'
import { livingProcesses } from '../kit/living-processes.js'
import { processDirectory } from '../kit/temporary-directory.js'

describe('runCommand', () => {
  it('runs in the directory, with the environment, the exact arguments and all of stdin', async () => {
    const { directory, run, read } = setup()
    const stdin = '🦆'.repeat(100_000)
    const outcome = await run('pwd > where; echo "$ONE" > one; printf %s "$0" > argument; cat > input', {
      argument: '$HOME; `id` * "',
      environment: { PATH: '/usr/bin:/bin', ONE: '1' },
      stdin,
    })
    expect({
      outcome,
      where: read('where'),
      one: read('one'),
      argument: read('argument'),
      isInputWhole: read('input') === stdin,
    }).toEqual({
      outcome: { ok: true },
      where: `${directory}\n`,
      one: '1\n',
      argument: '$HOME; `id` * "',
      isInputWhole: true,
    })
  })

  it('finds a command with a slash in its directory', async () => {
    const { directory, run, read } = setup()
    const script = join(directory, 'notify.sh')
    writeFileSync(script, '#!/bin/sh\necho "$1" > told\n')
    chmodSync(script, 0o755)
    const outcome = await run('', { argv: ['./notify.sh', 'done'] })
    expect([outcome, read('told')]).toEqual([{ ok: true }, 'done\n'])
  })

  it.each<[string, string, string]>([
    ['its exit code', 'exit 3', 'ended with exit code 3'],
    ['the signal that ended it, as a shell would', 'kill -KILL $$', 'ended with exit code 137'],
    ['the last line it printed on stderr', 'echo one >&2; echo two >&2; exit 1', 'ended with exit code 1: two'],
    ['nothing of what it printed on stdout', 'echo secret; exit 1', 'ended with exit code 1'],
  ])('reports a failed command %s', async (_, script, problem) => {
    expect(await setup().run(script)).toEqual({ ok: false, problem })
  })

  it('keeps little of a long error message', async () => {
    const outcome = await setup().run('head -c 3000000 /dev/zero | tr "\\0" x >&2; exit 1')
    expect(outcome).toEqual({ ok: false, problem: `ended with exit code 1: ${'x'.repeat(200)}` })
  })

  it.each<[string, Partial<CommandOptions>, string]>([
    ['no command', { argv: [] }, 'was not found'],
    ['an unknown command', { argv: ['aetheel-no-such-command'] }, 'was not found'],
    ['a file that is not executable', { argv: ['/etc/passwd'] }, 'was not found, or is not executable'],
    ['a missing directory', { cwd: '/nowhere' }, 'could not be started'],
    ['an argument with NUL', { argv: ['/bin/true', 'a\0b'] }, 'could not be started'],
  ])('is a value for %s', async (_, options, problem) => {
    expect(await setup().run('true', options)).toEqual({ ok: false, problem: expect.stringContaining(problem) })
  })

  it('does not mind a command that never reads its stdin', async () => {
    expect(await setup().run('exit 0', { stdin: 'x'.repeat(5_000_000) })).toEqual({ ok: true })
  })

  it('ends the whole tree at the time limit, even a tool in its own session that ignores the signal', async () => {
    const { run, alive } = setup()
    const outcome = await run('trap "" TERM; setsid sh -c \'trap "" TERM; sleep 1000; :\' & sleep 1000; :', {
      timeoutMs: 300,
    })
    expect({ outcome, alive: alive() }).toEqual({
      outcome: { ok: false, problem: 'did not finish within 300 ms' },
      alive: [],
    })
  })

  it('leaves nothing running after a command that succeeded', async () => {
    const { run, alive } = setup()
    const outcome = await run('setsid sleep 1000 > /dev/null 2>&1 & exit 0')
    expect({ outcome, alive: alive() }).toEqual({ outcome: { ok: true }, alive: [] })
  })

  it('ends the command when the signal is aborted', async () => {
    const { run, alive } = setup()
    const stopping = new AbortController()
    const running = run('sleep 1000 & wait', { signal: stopping.signal })
    await expect.poll(alive).not.toEqual([])
    stopping.abort()
    expect({ outcome: await running, alive: alive() }).toEqual({
      outcome: { ok: false, problem: 'was stopped' },
      alive: [],
    })
  })

  it('starts nothing when the signal was aborted before', async () => {
    const { directory, run } = setup()
    const outcome = await run('touch started', { signal: AbortSignal.abort() })
    expect([outcome, readdirSync(directory)]).toEqual([{ ok: false, problem: 'was stopped' }, []])
  })

  it('tells its owner about the process and its end', async () => {
    const told: string[] = []
    const owner: ProcessOwner = {
      id: 'owner-1',
      started: async () => void told.push('started'),
      ended: async () => void told.push('ended'),
    }
    const { run, read } = setup()
    const outcome = await run('echo $AETHEEL_OWNER_ID > owner', { owner })
    expect({ outcome, told, owner: read('owner') }).toEqual({
      outcome: { ok: true },
      told: ['started', 'ended'],
      owner: 'owner-1\n',
    })
  })
})

function setup() {
  const directory = processDirectory()
  return {
    directory,
    read: (file: string) => readFileSync(join(directory, file), 'utf8'),
    alive: () => livingProcesses(directory),
    run(script: string, { argument = '', ...options }: Partial<CommandOptions> & { argument?: string } = {}) {
      return runCommand({
        argv: ['sh', '-c', script, argument],
        cwd: directory,
        environment: { PATH: '/usr/bin:/bin' },
        stdin: '',
        timeoutMs: 30_000,
        ...options,
      })
    },
  }
}
