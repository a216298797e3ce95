import { spawn } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ProcessOptions, startProcess } from '../../src/processes/local-process.js'
import { endLivingProcesses, livingProcesses } from './living-processes.js'

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

  it('runs in a group of its own, out of reach of a Ctrl-C in our terminal', async () => {
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
  ])('tells how `%s` ended as a shell would', async (script, exitCode) => {
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

  it('gives all the output of a process that ends at once', async () => {
    const { stdout } = await setup().run('head -c 3000000 /dev/zero')
    expect(stdout.length).toEqual(3_000_000)
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

  const canBecomeRoot = process.getuid?.() === 0 && existsSync('/usr/bin/setpriv')
  it.runIf(canBecomeRoot)('ends, though a tool with more rights than ours cannot be ended', async () => {
    const { directory } = setup()
    // As `sudo` would: whoever runs it becomes root altogether.
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

function setup() {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-process-')))
  onTestFinished(() => {
    endLivingProcesses(directory)
    rmSync(directory, { recursive: true })
  })
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
