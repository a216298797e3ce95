import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { type ProcessOptions, startProcess } from '../../src/processes/local-process.js'
import type { ProcessOwner } from '../../src/processes/process-owner.js'
import { livingProcesses } from '../kit/living-processes.js'
import { processDirectory } from '../kit/temporary-directory.js'

describe('startProcess', () => {
  it('runs in the directory, with that environment and nothing more', async () => {
    const { directory, run } = setup()
    const { stdout, exit } = await run('pwd; env', { environment: { ONLY: 'this' }, runId: 'run-1' })
    const [cwd, ...variables] = stdout.trim().split('\n')
    expect({ cwd, variables: variables.toSorted(), exit }).toEqual({
      cwd: directory,
      variables: expect.arrayContaining(['AETHEEL_RUN_ID=run-1', 'ONLY=this']),
      exit: { exitCode: 0 },
    })
    expect(variables.filter((variable) => !/^(?:AETHEEL_RUN_ID|ONLY|PWD|OLDPWD|_|SHLVL)=/.test(variable))).toEqual([])
  })

  it('runs in its own process group, out of reach of a Ctrl-C in our terminal', async () => {
    const { stdout } = await setup().run('echo $$ $(cut -d " " -f 5 /proc/$$/stat)')
    const [pid, groupId] = stdout.trim().split(' ')
    expect(groupId).toEqual(pid)
  })

  it('keeps stdout and stderr apart', async () => {
    const { stdout, stderr } = await setup().run('echo out; echo err >&2')
    expect([stdout, stderr]).toEqual(['out\n', 'err\n'])
  })

  it('writes all of stdin and closes it', async () => {
    const stdin = '🦆'.repeat(500_000)
    const { stdout } = await setup().run('cat', { stdin })
    expect(stdout === stdin).toEqual(true)
  })

  it('takes more input while it runs, if started so', async () => {
    const { start } = setup()
    const heard: string[] = []
    const child = start('while read -r line; do echo "heard $line"; done; echo end', {
      stdin: 'one\n',
      keepsInput: true,
      onStdout(chunk) {
        heard.push(chunk.toString())
        if (heard.join('') === 'heard one\n') child.write('two\n')
        if (heard.join('').endsWith('heard two\n')) child.endInput()
      },
    })
    expect(await child.ended).toEqual({ exitCode: 0 })
    expect(heard.join('')).toEqual('heard one\nheard two\nend\n')
  })

  it('does not mind a process that never reads its stdin', async () => {
    const { exit } = await setup().run('exit 3', { stdin: 'x'.repeat(5_000_000) })
    expect(exit).toEqual({ exitCode: 3 })
  })

  it.each([
    ['exit 0', 0],
    ['exit 7', 7],
    ['kill -KILL $$', 137],
    ['kill -TERM $$', 143],
    ['kill -SEGV $$', 139],
  ])('reports how `%s` ended as a shell would', async (script, exitCode) => {
    const { exit } = await setup().run(script)
    expect(exit).toEqual({ exitCode })
  })

  it.each([
    ['a file that is not there', { executable: '/nowhere/agent' }],
    ['a directory', { executable: '/' }],
    ['a directory that is not there', { cwd: '/nowhere' }],
    ['an argument with NUL', { args: ['a\0b'] }],
    ['an argument that is too long', { args: ['x'.repeat(200_000)] }],
    ['a variable that is too long', { environment: { LONG: 'x'.repeat(200_000) } }],
    ['a variable with NUL', { environment: { NUL: 'a\0b' } }],
  ])('gives back why nothing was started: %s', async (_, options) => {
    const { exit } = await setup().run('true', options)
    expect(exit).toEqual({ spawnError: expect.any(Error) })
  })

  it('returns all the output of a process that ends at once', async () => {
    const { stdout } = await setup().run('head -c 3000000 /dev/zero')
    expect(stdout.length).toEqual(3_000_000)
  })

  it('returns all the output of a process even if the time to read it seems over when it ends', async ({
    onTestFinished,
  }) => {
    const { start } = setup()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    let heard = ''
    const late = start('read -r line; printf %s "$line"', {
      stdin: '',
      keepsInput: true,
      onStdout: (chunk) => (heard += chunk),
    })
    const onStdout = (): void => {
      // It prints and ends now, just as the end of the other process is about to be noticed: so its own end is noticed
      // before its output.
      late.write('all of it\n')
      block(100)
      setImmediate(() => vi.advanceTimersByTime(60_000))
    }
    const first = start('echo first', { onStdout })
    block(100)
    await Promise.all([first.ended, late.ended])
    expect(heard).toEqual('all of it')
  })

  it('ends what holds the output open after its parent has gone', async () => {
    const { run, alive } = setup()
    const { exit, stdout } = await run('(trap "" TERM; echo left; exec sleep 1000) & sleep 0.1; exit 5')
    expect({ exit, stdout, alive: alive() }).toEqual({ exit: { exitCode: 5 }, stdout: 'left\n', alive: 0 })
  })

  it('can be stopped, more than once and after the end', async () => {
    const { start, alive } = setup()
    const running = start('sleep 1000 & echo up; wait', {
      onStdout() {
        running.stop()
        running.stop()
      },
    })
    const exit = await running.ended
    running.stop()
    expect({ exit, alive: alive() }).toEqual({ exit: { exitCode: 143 }, alive: 0 })
  })

  it('returns why nothing was started when too many files are open', async () => {
    const code = `
      import { openSync } from 'node:fs'
      import { startProcess } from ${JSON.stringify(new URL('../../src/processes/local-process.ts', import.meta.url).href)}
      try {
        for (;;) openSync('/dev/null')
      } catch {}
      const { ended } = startProcess({
        executable: '/bin/true',
        args: [],
        cwd: '/',
        environment: {},
        stdin: '',
        runId: 'files',
        stopSignal: 'SIGTERM',
        onStdout() {},
        onStderr() {},
      })
      process.exitCode = (await ended).spawnError.code === 'EMFILE' ? 7 : 8
    `
    const args = ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, '--import', import.meta.resolve('tsx')]
    const child = spawn('/bin/sh', [...args, '--input-type=module', '-e', code], { stdio: 'ignore' })
    expect(await once(child, 'exit')).toEqual([7, null])
  })

  const canBecomeRoot = process.getuid?.() === 0 && existsSync('/usr/bin/setpriv')
  it.runIf(canBecomeRoot)('ends, even if a tool with more rights than ours cannot be ended', async () => {
    const { directory } = setup()
    // Like `sudo`: the process becomes root entirely.
    const become = join(directory, 'become-root')
    copyFileSync('/usr/bin/setpriv', become)
    chmodSync(become, 0o4755)
    chownSync(directory, 65_534, 65_534)
    const code = `
      import { startProcess } from ${JSON.stringify(new URL('../../src/processes/local-process.ts', import.meta.url).href)}
      const running = startProcess({
        executable: '/bin/sh',
        args: ['-c', './become-root --reuid=0 --regid=0 --clear-groups sleep 1000 > /dev/null 2>&1 & echo up; wait'],
        cwd: ${JSON.stringify(directory)},
        environment: { PATH: '/usr/bin:/bin' },
        stdin: '',
        runId: 'rights',
        stopSignal: 'SIGTERM',
        onStdout: () => setTimeout(running.stop, 300),
        onStderr: () => {},
      })
      console.log(JSON.stringify(await running.ended))
    `
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', code], {
      uid: 65_534,
      gid: 65_534,
      env: { PATH: process.env['PATH'], TMPDIR: directory, HOME: directory, TSX_DISABLE_CACHE: '1' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    expect(await text(child.stdout)).toEqual('{"exitCode":143}\n')
  })
})

describe('startProcess with an owner', () => {
  it('marks the process, and gives it its input only once it is recorded', async () => {
    const { run } = setup()
    const { owner, calls } = createOwner()
    owner.started = async (started) => {
      calls.push(['started', started])
      // Long enough to answer input that came too early.
      await sleep(200)
      calls.push('recorded')
    }
    const out: string[] = []
    const { exit } = await run('echo up $$; cat; env', {
      owner,
      runId: 'run-1',
      stdin: 'input\n',
      onStdout: (chunk) => {
        const [first = ''] = chunk.toString().split('\n')
        out.push(chunk.toString())
        calls.push(first.replace(/\d+/, 'pid'))
      },
    })
    const [, pid] = /^up (\d+)/.exec(out.join('')) ?? []
    expect([exit, calls.filter((call) => !String(call).includes('='))]).toEqual([
      { exitCode: 0 },
      [
        ['started', { runId: 'run-1', pid: Number(pid), startTime: expect.any(Number) }],
        'up pid',
        'recorded',
        'input',
        ['ended', 'run-1'],
      ],
    ])
    expect(out.join('').split('\n')).toEqual(
      expect.arrayContaining(['AETHEEL_OWNER_ID=owner-1', 'AETHEEL_RUN_ID=run-1']),
    )
  })

  it('reports the end when nothing is alive any more', async () => {
    const { run, alive } = setup()
    const { owner, calls } = createOwner()
    owner.ended = async () => void calls.push(alive())
    await run('(trap "" TERM; exec sleep 1000) & exit 0', { owner })
    expect(calls).toEqual([['started', expect.anything()], 0])
  })

  it('does not start a process that cannot be recorded', async () => {
    const { run, alive, directory } = setup()
    const { owner, calls } = createOwner()
    const error = new Error('disk full')
    owner.started = () => Promise.reject(error)
    const { exit, stdout } = await run('(trap "" TERM; exec sleep 1000) & cat; echo worked', { owner, stdin: 'input' })
    expect([exit, stdout, alive(), calls]).toEqual([{ spawnError: error }, '', 0, [['ended', `test-${directory}`]]])
  })

  it.each([
    ['settles', (settle: () => void) => setTimeout(settle, 300)],
    ['never settles', () => {}],
  ])('can be stopped before it is on record, and gets no input: the record %s', async (_, later) => {
    const { start, alive, directory } = setup()
    const { owner, calls } = createOwner()
    owner.started = () => new Promise<void>(later)
    let stdout = ''
    const running = start('trap "" TERM; echo up; cat; echo worked', {
      owner,
      stdin: 'input',
      onStdout(chunk) {
        stdout += chunk.toString()
        running.stop()
      },
    })
    const exit = await running.ended
    expect([exit, stdout, alive(), calls]).toEqual([{ exitCode: 137 }, 'up\n', 0, [['ended', `test-${directory}`]]])
  })

  it('is reported by what stopped it, even if it could not be recorded either', async () => {
    const { owner } = createOwner()
    const stopped = new AbortController()
    owner.started = () => once(stopped.signal, 'abort').then(() => Promise.reject(new Error('disk full')))
    const onStdout = (): void => {
      running.stop()
      stopped.abort()
    }
    const running = setup().start('echo up; cat', { owner, onStdout })
    expect(await running.ended).toEqual({ exitCode: 143 })
  })

  it('reports the end after the record of a process that exits at once', async () => {
    const { owner, calls } = createOwner()
    owner.started = async () => {
      await sleep(200)
      calls.push('recorded')
    }
    const { exit } = await setup().run('exit 4', { owner, runId: 'run-1', stdin: 'x'.repeat(1_000_000) })
    expect([exit, calls]).toEqual([{ exitCode: 4 }, ['recorded', ['ended', 'run-1']]])
  })

  it('reports nothing about a process that was never started', async () => {
    const { owner, calls } = createOwner()
    await setup().run('true', { owner, executable: '/nowhere/agent' })
    await setup().run('true', { owner, args: ['a\0b'] })
    expect(calls).toEqual([])
  })
})

function createOwner(): { owner: ProcessOwner; calls: unknown[] } {
  const calls: unknown[] = []
  const owner: ProcessOwner = {
    id: 'owner-1',
    started: async (started) => void calls.push(['started', started]),
    ended: async (runId) => void calls.push(['ended', runId]),
  }
  return { owner, calls }
}

function setup() {
  const directory = processDirectory()
  const start = (script: string, options: Partial<ProcessOptions> = {}) =>
    startProcess({
      executable: '/bin/sh',
      args: ['-c', script],
      cwd: directory,
      environment: { PATH: '/usr/bin:/bin' },
      stdin: '',
      runId: `test-${directory}`,
      stopSignal: 'SIGTERM',
      onStdout: () => {},
      onStderr: () => {},
      ...options,
    })
  return {
    directory,
    start,
    alive: () => livingProcesses(directory).length,
    async run(script: string, options: Partial<ProcessOptions> = {}) {
      const out: Buffer[] = []
      const err: Buffer[] = []
      const exit = await start(script, {
        onStdout: (chunk) => out.push(chunk),
        onStderr: (chunk) => err.push(chunk),
        ...options,
      }).ended
      return { exit, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }
    },
  }
}

/** Like a machine that is busy with something else. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
