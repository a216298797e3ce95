// What applies to any warm agent, shown with Claude Code's protocol.

import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startWarmRun } from '../../../../src/backends/engine/warm/warm-process.js'
import type { Run } from '../../../../src/backends/engine/turn.js'
import { CANCELLED } from '../../../../src/backends/engine/failures.js'
import type { AgentEvent } from '../../../../src/backends/types.js'
import { createScrubber } from '../../../../src/credentials/scrubber.js'
import type { ProcessOwner } from '../../../../src/processes/process-owner.js'
import { until } from '../../../kit/waiting.js'
import { createStage, type Stage } from '../../fake-cli.js'
import { openStage, type Step } from './warm-stage.js'

const SECRET = 'sk-ABCDEFGHIJKLMNOPQRSTUVWABCDEFGHIJ'

const READY: Step[] = [
  { said: { type: 'control_request', request: { subtype: 'initialize' } } },
  { printed: { type: 'control_response', response: { subtype: 'success', request_id: 'initialize-1' } } },
]
const ASKED: Step = { said: { type: 'user' } }
const INTERRUPTED: Step = { said: { type: 'control_request', request: { subtype: 'interrupt' } } }
const BEGUN: Step = { printed: { type: 'system', subtype: 'init', session_id: 's', model: 'm' } }
const TOOL: Step = {
  printed: { type: 'assistant', message: { content: [{ type: 'tool_use', id: 't', name: 'Bash', input: {} }] } },
}
const STOPPED: Step[] = [
  { printed: { type: 'control_response', response: { subtype: 'success', request_id: 'interrupt-2' } } },
  { printed: { type: 'result', subtype: 'error_during_execution', is_error: true, errors: ['Interrupted'] } },
]

function answer(text: string): Step {
  return { printed: { type: 'result', result: text } }
}

function isAlive(stage: Stage, file: string): boolean {
  const pid = Number(readFileSync(join(stage.workingDir, file), 'utf8'))
  const status = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : ') Z'
  return !/\) [ZX]/.test(status)
}

function noticesOf(events: AgentEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'notice' ? [event.content] : []))
}

it('a stopped turn is over when the agent says so, and the next begins after that', async () => {
  const late: Step = { printed: { type: 'assistant', message: { content: [{ type: 'text', text: 'late' }] } } }
  const { turn, process } = await openStage('claude', [
    ...READY,
    ...[ASKED, BEGUN, INTERRUPTED, late, ...STOPPED],
    ...[ASKED, BEGUN, answer('second')],
  ])
  const { result, kinds } = await turn('first', { stopOn: 'started' })
  expect([result.failure, kinds]).toEqual([
    { reason: 'cancelled', message: 'Cancelled', report: 'Cancelled' },
    ['started', 'error', 'complete'],
  ])
  expect((await turn('second')).result.finalOutput).toBe('second')
  expect(process.isOver).toBe(false)
})

it('an agent that does not obey is ended with everything it started', async () => {
  const { turn, process, stage } = await openStage('claude', [
    ...[{ ignore: ['SIGINT', 'SIGTERM'] } as Step, ...READY, ASKED, BEGUN],
    { run: 'setsid sleep 1000 & echo $! > orphan' },
    { run: 'touch started' },
  ])
  const stopWhenStarted = async (run: Run) => {
    await until(() => existsSync(join(stage.workingDir, 'started')), 'the orphan')
    run.stop(CANCELLED)
  }
  const { result, isProcessLost } = await turn('first', { act: stopWhenStarted })
  expect([result.failure?.reason, result.exitCode, isProcessLost]).toEqual(['cancelled', 137, false])
  expect([process.isOver, isAlive(stage, 'orphan')]).toEqual([true, false])
})

it('the death of the process in the middle of a turn is distinguished from other failures', async () => {
  const { turn, process } = await openStage('claude', [...READY, ASKED, BEGUN, TOOL, { run: 'kill -9 $PPID' }])
  const { result, kinds, isProcessLost } = await turn('first')
  expect(result).toEqual({
    isError: true,
    durationMs: 0,
    exitCode: 137,
    sessionId: 's',
    failure: {
      reason: 'exit',
      message: 'Claude ended in the middle of a turn.',
      report: 'Claude ended in the middle of a turn.',
    },
  })
  expect([kinds, isProcessLost]).toEqual([['started', 'tool_use', 'tool_result', 'error', 'complete'], true])
  const again = await turn('second')
  expect([process.isOver, again.result.failure?.reason, again.isProcessLost]).toEqual([true, 'exit', true])
})

it('a process that says why it ends has failed for that reason, and is not just lost', async () => {
  const { turn } = await openStage('claude', [...READY, ASKED, { stderr: 'Not logged in\n' }, { exit: 1 }])
  const { result, isProcessLost } = await turn('first')
  expect(result.failure).toMatchObject({ reason: 'auth', message: 'Not logged in', stderr: 'Not logged in\n' })
  expect(isProcessLost).toBe(false)
})

it('a process that is killed is lost, whatever it has said before', async () => {
  const complaint: Step = { stderr: 'ERROR mcp: 401 Unauthorized\n' }
  const { turn } = await openStage('claude', [...READY, ASKED, BEGUN, complaint, { run: 'kill -9 $PPID' }])
  const { result, isProcessLost } = await turn('first')
  expect([result.failure?.reason, isProcessLost]).toEqual(['exit', true])
})

it('stderr of an earlier turn is not attributed to a later one, even if it is read late', async () => {
  const { turn, stage } = await openStage('claude', [
    ...READY,
    ...[ASKED, answer('first'), { stderr: 'first\n' }, { run: 'touch printed' }],
    ...[ASKED, { stderr: 'second\n' }, { exit: 1 }],
  ])
  await turn('first')
  // Without yielding to the event loop, which would read it.
  while (!existsSync(join(stage.workingDir, 'printed'))) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
  expect((await turn('second')).result.failure?.stderr).toBe('second\n')
})

it('a line that is not a message, or an invalid one, is a notice and not the end', async () => {
  const { turn } = await openStage('claude', [
    ...[...READY, ASKED, BEGUN, { text: 'Warning: old' }, { text: '' }],
    ...[{ printed: { type: 'control_response' } }, { printed: { type: 'assistant' } }, { text: '[' }, answer('done')],
  ])
  const { result, events } = await turn('first')
  expect([result.finalOutput, noticesOf(events)]).toEqual([
    'done',
    [
      'Warning: old',
      expect.stringMatching(/^The agent sent an invalid message \(/),
      expect.stringMatching(/^The agent sent an invalid event: assistant \(/),
      '[',
    ],
  ])
})

it('a secret in what it prints is hidden', async () => {
  const dependencies = { scrubber: createScrubber([SECRET]) }
  const exchange: Step[] = [...READY, ASKED, BEGUN, { text: `key ${SECRET}` }, { stderr: `key ${SECRET}` }, { exit: 1 }]
  const { turn } = await openStage('claude', exchange, { dependencies })
  const { result, events } = await turn('first')
  expect([noticesOf(events), result.failure?.stderr, result.failure?.message]).toEqual([
    ['key [secret]'],
    'key [secret]',
    'key [secret]',
  ])
})

it.each([
  ['silence', { idleTimeoutMs: 100 }, 'The agent printed nothing for 0.1 s.'],
  ['a whole time that is too long', { timeoutMs: 100 }, 'The agent did not finish within 0.1 s.'],
])('%s is ended by an interrupt, and the process stays warm', async (_, request, message) => {
  const dependencies = { now: Date.now }
  const exchange: Step[] = [...READY, ASKED, BEGUN, INTERRUPTED, ...STOPPED, ASKED, answer('second')]
  const { turn, process } = await openStage('claude', exchange, { dependencies })
  await process.connection.ready
  const { result } = await turn('first', { request })
  expect(result.failure).toEqual({ reason: 'timeout', message, report: 'Query timed out' })
  expect((await turn('second')).result.finalOutput).toBe('second')
})

it('an agent that speaks now and then is not silent', async () => {
  let now = 0
  const text: Step = { printed: { type: 'assistant', message: { content: [{ type: 'text', text: 'Wait.' }] } } }
  const { turn, stage } = await openStage(
    'claude',
    [
      ...[...READY, ASKED, BEGUN, { run: 'while [ ! -e speak ]; do sleep 0.02; done' }, text],
      ...[{ run: 'while [ ! -e answer ]; do sleep 0.02; done; sleep 0.2' }, answer('done')],
    ],
    { dependencies: { now: () => now } },
  )
  const act = async (_run: Run, events: AgentEvent[]) => {
    await until(() => events.length > 0, 'the beginning')
    now = 15
    stage.write('work/speak', '')
    await until(() => events.some(({ type }) => type === 'output'), 'the text')
    now = 30
    stage.write('work/answer', '')
  }
  const { result } = await turn('first', { act, request: { idleTimeoutMs: 20 } })
  expect(result.finalOutput).toBe('done')
})

it("a process that never listens is ended at the turn's time-out", async () => {
  const { turn, process } = await openStage('claude', [{ run: 'sleep 1000' }])
  const { result, isProcessLost } = await turn('first', { request: { timeoutMs: 100 } })
  expect([result.failure?.reason, isProcessLost, process.isOver]).toEqual(['timeout', false, true])
  await process.ended
})

it.each(['codex', 'gemini'] as const)(
  'a process of %s that never gets to a turn is ended with its time',
  async (name) => {
    const { turn, process } = await openStage(name, [{ printed: { id: 1, result: {} } }])
    await process.connection.ready
    const cancelled = await turn('first', { stopOn: 'begun' })
    expect([cancelled.result.failure?.reason, process.isOver]).toEqual(['cancelled', false])
    const { result } = await turn('second', { request: { timeoutMs: 100 } })
    expect([result.failure?.reason, process.isOver]).toEqual(['timeout', true])
  },
)

it('a turn that is stopped before the process listens never begins, and the process stays warm', async () => {
  const { turn, process } = await openStage('claude', [...READY, ASKED, answer('second')])
  const act = async (run: Run) => run.stop(CANCELLED)
  expect((await turn('first', { act })).result.failure?.reason).toBe('cancelled')
  expect((await turn('second')).result.finalOutput).toBe('second')
  expect(process.isOver).toBe(false)
})

it('a turn that nobody reads holds up nothing', async () => {
  const exchange: Step[] = [...READY, ASKED, BEGUN, answer('first'), ASKED, answer('second')]
  const { turn, backend, process } = await openStage('claude', exchange)
  await startWarmRun(backend.cli, process, { prompt: 'first' }).ended
  expect((await turn('second')).result.finalOutput).toBe('second')
})

it("what a tool left behind is ended with the turn; the agent's own children stay", async () => {
  const { turn, stage, process } = await openStage('claude', [
    { child: 'sh -c "echo $$ > server; sleep 1000"' },
    { run: 'while [ ! -e server ]; do sleep 0.02; done' },
    ...[...READY, ASKED, BEGUN, TOOL],
    { run: 'setsid sleep 1000 & echo $! > orphan' },
    answer('done'),
  ])
  expect((await turn('first')).result.finalOutput).toBe('done')
  expect([isAlive(stage, 'orphan'), isAlive(stage, 'server')]).toEqual([false, true])
  process.stop()
  await process.ended
  expect(isAlive(stage, 'server')).toBe(false)
})

it('a tool that still runs when its turn is stopped is ended; what earlier turns left running stays', async () => {
  const left = (file: string): Step[] => [
    { child: `setsid sh -c "echo $$ > ${file}; sleep 1000"` },
    { run: `until [ -e ${file} ]; do sleep 0.01; done` },
  ]
  const { turn, stage } = await openStage('claude', [
    ...[...left('own'), ...READY, ASKED, TOOL, ...left('background'), answer('first')],
    // Like the MCP servers of Codex: its own group in the agent's process session.
    ...[ASKED, { child: 'sh -c "set -m; sleep 1000 & echo \\$! > server; wait"' }],
    ...[{ run: 'until [ -e server ]; do sleep 0.01; done' }, ...left('tool'), BEGUN, INTERRUPTED, ...STOPPED],
    ...[ASKED, answer('third')],
  ])
  await turn('first')
  expect((await turn('second', { stopOn: 'started' })).result.failure?.reason).toBe('cancelled')
  expect(['tool', 'background', 'own', 'server'].map((file) => isAlive(stage, file))).toEqual([
    ...[false, true, true, true],
  ])
  expect((await turn('third')).result.finalOutput).toBe('third')
})

it('a line that is too long ends the process', async () => {
  const dependencies = { limits: { lineBytes: 1024 * 1024, totalBytes: Infinity } }
  const exchange: Step[] = [...READY, ASKED, BEGUN, { text: 'x'.repeat(2 * 1024 * 1024) }, answer('done')]
  const { turn, process } = await openStage('claude', exchange, { dependencies })
  const { result } = await turn('first')
  expect([result.failure?.reason, result.failure?.message]).toEqual([
    'no_result',
    'The agent printed more than 1 MiB on one line and was stopped.',
  ])
  await process.ended
})

it('an agent that does not stop printing between turns is ended', async () => {
  const dependencies = { limits: { lineBytes: 1024 * 1024, totalBytes: Infinity } }
  const chatter: Step[] = Array.from({ length: 30 }, () => ({ text: 'x'.repeat(100_000) }))
  const { turn, process } = await openStage('claude', [...READY, ASKED, answer('done'), ...chatter], { dependencies })
  const { result } = await turn('first')
  expect(result.finalOutput).toBe('done')
  await process.ended
})

it('too much output ends its turn; there may be many turns within the limit', async () => {
  const dependencies = { limits: { lineBytes: 1024 * 1024, totalBytes: 1024 * 1024 } }
  const much: Step = {
    printed: { type: 'assistant', message: { content: [{ type: 'text', text: 'x'.repeat(600_000) }] } },
  }
  const exchange: Step[] = [
    ...READY,
    ...[ASKED, much, answer('first'), ASKED, much, answer('second')],
    ...[ASKED, much, much, INTERRUPTED, ...STOPPED],
  ]
  const { turn } = await openStage('claude', exchange, { dependencies })
  expect((await turn('first')).result.finalOutput).toBe('first')
  expect((await turn('second')).result.finalOutput).toBe('second')
  expect((await turn('third')).result.failure?.message).toBe(
    'The agent printed more than 1 MiB in one turn and was stopped.',
  )
})

it('a process that cannot be started is reported', async () => {
  const stage = createStage()
  const cliPath = stage.write('cli', '#!/no/such/interpreter\n')
  chmodSync(cliPath, 0o755)
  const { turn } = await openStage('claude', READY, { cliPath })
  const { result, isProcessLost } = await turn('first')
  expect([result.failure?.reason, result.failure?.message, isProcessLost]).toEqual([
    'spawn',
    expect.stringMatching(/^Claude CLI could not be started: spawn .* ENOENT$/),
    false,
  ])
})

it('the process is on record, and has its files, while it lives', async () => {
  const id = `live-${process.pid}`
  const record: string[] = []
  const owner: ProcessOwner = {
    id,
    started: async () => void record.push('started'),
    ended: async () => void record.push('ended'),
  }
  const request = { systemPrompt: 'Be brief.' }
  const exchange: Step[] = [...READY, ASKED, answer('first'), ASKED, answer('second')]
  const { turn, process: live } = await openStage('claude', exchange, { request, dependencies: { owner } })
  await turn('first', { request })
  await turn('second', { request })
  const directories = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`aetheel-run-${id}-`))
  const files = directories().flatMap((name) => readdirSync(join(tmpdir(), name)))
  expect([record, files]).toEqual([['started'], ['system-prompt.md']])
  live.stop()
  await live.ended
  await until(() => directories().length === 0, 'the end of the files')
  expect(record).toEqual(['started', 'ended'])
})
