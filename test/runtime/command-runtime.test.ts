import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { AgentEvent } from '../../src/backends/types.js'
import { createScrubber, MARK } from '../../src/credentials/scrubber.js'
import { commandRunner, type CommandRequest, CommandRuntime } from '../../src/runtime/command-runtime.js'
import { findExecutable } from '../../src/core/paths.js'
import { livingProcesses } from '../kit/living-processes.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const SECRET = 'sk-ABCDEFGHIJKLMNOPQRSTUVWABCDEFGHIJ'
const gitPath = findExecutable('git', process.env['PATH'] ?? '') ?? ''

it('reports the output of a command, and its exit code', async () => {
  const { run } = setup()
  const script = 'process.stdout.write("out"); process.stderr.write("err"); process.exitCode = 3'
  const { events, result } = await run(['node', '-e', script])
  expect(result).toEqual({
    isError: true,
    exitCode: 3,
    finalOutput: expect.any(String),
    durationMs: expect.any(Number),
  })
  expect(result.finalOutput?.length).toBe(6)
  expect(outputs(events)).toEqual({ stdout: 'out', stderr: 'err' })
  expect(events.map(({ type }) => type)).toEqual(['started', 'output', 'output', 'complete'])
})

it('runs in the directory, with its arguments as they are', async () => {
  const { run, directory } = setup()
  const { result } = await run(['node', '-p', '[process.cwd(), ...process.argv.slice(1)].join()', '--', '$(id) *', ';'])
  expect(result.finalOutput).toBe(`${directory},$(id) *,;\n`)
})

it('gives a command the variables of the run and none of the gateway', async () => {
  const { run } = setup({ AETHEEL_MASTER_KEY: 'secret', LANG: 'C' })
  const names = ['AETHEEL_MASTER_KEY', 'LANG', 'TOKEN', 'GIT_TERMINAL_PROMPT']
  const script = `console.log(${JSON.stringify(names)}.map((name) => process.env[name]).join())`
  const { result } = await run(['node', '-e', script], { environment: { TOKEN: 'given' } })
  expect(result.finalOutput).toBe(',C,given,0\n')
})

it('gives a command files that are gone after it', async () => {
  const { run } = setup()
  const script = `const { mode } = fs.statSync(process.env.KEY); console.log(process.env.KEY, (mode & 0o777).toString(8), fs.readFileSync(process.env.KEY, 'utf8'))`
  const { result } = await run(['node', '-e', script], { secretFiles: [{ variable: 'KEY', content: 'a key' }] })
  const [path = '', ...rest] = result.finalOutput?.trim().split(' ') ?? []
  expect([rest, existsSync(path)]).toEqual([['600', 'a', 'key'], false])
})

it('ends a command that takes too long, with all it started, as a failure', async () => {
  const { run, directory } = setup()
  const { result, events } = await run(['sh', '-c', 'sleep 1000 & sleep 1001'], { timeoutMs: 300 })
  expect([result.exitCode, result.failure?.reason]).toEqual([124, 'timeout'])
  expect(events.find(({ type }) => type === 'error')).toMatchObject({ reason: 'timeout' })
  expect(livingProcesses(directory)).toEqual([])
})

it('ends a command that is cancelled, with all it started', async () => {
  const { run, directory } = setup()
  const abort = new AbortController()
  const running = run(['sh', '-c', 'echo begun; sleep 1000 & sleep 1001'], {}, abort, (event) => {
    if (event.type === 'output') abort.abort()
  })
  const { result } = await running
  expect(result.failure?.reason).toBe('cancelled')
  expect(livingProcesses(directory)).toEqual([])
})

it('does not start a command that was cancelled before', async () => {
  const { run } = setup()
  const abort = new AbortController()
  abort.abort()
  const { events, result } = await run(['node', '-e', '0'], {}, abort)
  expect(result).toMatchObject({ isError: true, finalOutput: '', failure: { reason: 'cancelled' } })
  expect(events.map(({ type }) => type)).toEqual(['started', 'error', 'complete'])
})

it('fails with 127 if there is no such command', async () => {
  const { run } = setup()
  const { result, events } = await run(['no-such-command'])
  expect([result.exitCode, result.failure?.reason]).toEqual([127, 'spawn'])
  expect(events[1]).toMatchObject({ type: 'error', content: expect.stringContaining('no-such-command was not found') })
})

it('fails with 126 when a command cannot be started', async () => {
  const { run, directory } = setup()
  writeFileSync(join(directory, 'broken'), '#!/no/such/interpreter\n', { mode: 0o755 })
  const { result } = await run(['./broken'])
  expect(result.exitCode).toBe(126)
})

it('cuts excessive output of a command', async () => {
  const { run } = setup()
  const { events } = await run(['node', '-e', 'for (let i = 0; i < 9; i++) process.stdout.write("x".repeat(1 << 20))'])
  const { stdout } = outputs(events)
  expect([stdout.length, events.filter(({ type }) => type === 'notice').length]).toEqual([8 * 1024 * 1024, 1])
})

it('keeps a character whole that comes in two pieces', async () => {
  const { run } = setup()
  const script =
    'const [a, b] = Buffer.from("é"); const w = (x) => process.stdout.write(Buffer.of(x)); w(a); setTimeout(w, 50, b)'
  const { result } = await run(['node', '-e', script])
  expect(result.finalOutput).toBe('é')
})

it('hides a secret even where the result is cut', async () => {
  const { run } = setup()
  const script = `const { KEY } = process.env; process.stdout.write('x'.repeat(8192 - 30) + KEY + 'y'.repeat(30_000) + KEY + 'z'.repeat(8192 - 30))`
  const { result, events } = await run(['node', '-e', script], { environment: { KEY: SECRET } })
  const { stdout } = outputs(events)
  expect([pieces(result.finalOutput), pieces(stdout), stdout.split(MARK).length]).toEqual([[], [], 3])
})

it('hides a secret that a command prints on one stream while it prints on the other', async () => {
  const { run } = setup()
  const script = `const { KEY } = process.env
    const print = (stream, text) => new Promise((done) => { stream.write(text); setTimeout(done, 150) })
    const { stdout, stderr } = process
    print(stdout, KEY.slice(0, 3)).then(() => print(stderr, '.')).then(() => print(stdout, KEY.slice(3)))`
  const { result, events } = await run(['node', '-e', script], { environment: { KEY: SECRET } })
  expect([outputs(events), pieces(result.finalOutput)]).toEqual([{ stdout: MARK, stderr: '.' }, []])
})

it('keeps the last words of a command that prints beyond all measure', async () => {
  const { run } = setup()
  const script = `process.stdout.write('x'.repeat(9 * 1024 * 1024) + 'the last words')`
  const { result } = await run(['node', '-e', script])
  expect(result.finalOutput?.slice(-15)).toBe('xthe last words')
})

it.each([['git'], [gitPath]])('runs no hooks of an untrusted repository, by %s', async (git) => {
  const { run, directory } = setup()
  await run(['git', 'init', '-q', '.'])
  writeFileSync(join(directory, '.git/hooks/pre-commit'), '#!/bin/sh\ntouch ran\n', { mode: 0o755 })
  const commit = ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'one', '--allow-empty']
  const { result } = await run([git, ...commit], { isUntrusted: true, environment: { GIT_CONFIG_COUNT: '0' } })
  const { result: status } = await run(['git', 'status', '--short'])
  expect([result.exitCode, status.finalOutput]).toEqual([0, ''])
})

it('starts nothing if the settings of an untrusted repository may run a program', async () => {
  const { run, directory } = setup()
  await run(['git', 'init', '-q', '.'])
  writeFileSync(join(directory, 'a.txt'), 'one')
  await run(['git', 'add', '.'])
  writeFileSync(join(directory, '.gitattributes'), '*.txt filter=x')
  writeFileSync(join(directory, 'a.txt'), 'two')
  await run(['git', 'config', 'filter.x.clean', 'touch ran; cat'])
  const { result, events } = await run(['git', 'status', '--short'], { isUntrusted: true })
  const settings = join(directory, '.git/config')
  expect([result.exitCode, events[1], existsSync(join(directory, 'ran'))]).toEqual([
    126,
    {
      type: 'error',
      reason: 'refused',
      content: `The project is untrusted, and ${settings} sets filter.x.clean, which can make git run a program or leave the project. Remove the setting, or trust the project.`,
      timestamp: expect.any(Number),
    },
    false,
  ])
})

it('distinguishes git from other commands', () => {
  expect([commandRunner(['git', 'status']), commandRunner(['npm', 'test'])]).toEqual(['git', 'shell'])
})

type Extra = Partial<Pick<CommandRequest, 'timeoutMs' | 'environment' | 'secretFiles' | 'isUntrusted'>>

function setup(environment: NodeJS.ProcessEnv = {}) {
  const directory = temporaryDirectory()
  const operator = { PATH: process.env['PATH'], HOME: directory, ...environment }
  const runtime = new CommandRuntime({
    environment: operator,
    passVariables: [],
    now: Date.now,
    scrubber: createScrubber([SECRET]),
  })
  const run = async (
    argv: string[],
    extra: Extra = {},
    abort = new AbortController(),
    onEvent: (event: AgentEvent) => void = () => {},
  ) => {
    const events: AgentEvent[] = []
    const request = { argv, directory, runId: `run-${directory}`, timeoutMs: 60_000, ...extra }
    const result = await runtime.run(request, abort.signal, (event) => {
      events.push(event)
      onEvent(event)
    })
    return { events, result }
  }
  return { run, directory }
}

/** What is left of the secret. */
function pieces(text = ''): string[] {
  return text.match(/sk-|[A-W]{3,}/g) ?? []
}

function outputs(events: AgentEvent[]): { stdout: string; stderr: string } {
  const printed = { stdout: '', stderr: '' }
  for (const event of events) {
    if (event.type === 'output') printed[event.metadata?.['stream'] === 'stderr' ? 'stderr' : 'stdout'] += event.content
  }
  return printed
}
