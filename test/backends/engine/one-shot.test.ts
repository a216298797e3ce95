// How the end of a process is reported, beyond what the contract suite and the captures cover.

import { chmodSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { JsonObject } from '../../../src/backends/engine/jsonl.js'
import { startOneShot } from '../../../src/backends/engine/one-shot.js'
import { Translation } from '../../../src/backends/engine/translation.js'
import type { Run } from '../../../src/backends/engine/turn.js'
import type { AgentEvent } from '../../../src/backends/types.js'
import { createScrubber } from '../../../src/credentials/scrubber.js'
import type { PodExit } from '../../../src/kubernetes/types.js'
import { OUTPUT_LIMITS } from '../../../src/processes/output.js'
import { createFakeBackend, createPrintingBackend, createStage, type Printed, runTurn } from '../fake-cli.js'

const SECRET = 'sk-ABCDEFGHIJKLMNOPQRSTUVWABCDEFGHIJ'

function isNotice({ type }: AgentEvent): boolean {
  return type === 'notice'
}

async function failureOf(printed: Printed) {
  const { result } = await runTurn(createPrintingBackend('claude', printed))
  return result.failure
}

describe('a process that fails', () => {
  it('with plain text on stdout alone is reported with that text, as printed', async () => {
    expect(await failureOf({ stdout: 'boom', exit: 3 })).toEqual({
      reason: 'exit',
      message: 'boom',
      report: 'Claude CLI error (exit 3): boom',
    })
  })

  it('without output is reported by its exit code', async () => {
    expect(await failureOf({ exit: 3 })).toEqual({
      reason: 'exit',
      message: 'Claude ended with exit code 3.',
      report: 'Claude CLI error (exit 3): unknown error',
    })
  })

  it('in colour is reported without it', async () => {
    expect(await failureOf({ stderr: '\u001B[91m\u001B[1mError: \u001B[0mIt broke', exit: 1 })).toEqual({
      reason: 'exit',
      message: 'Error: It broke',
      report: 'Claude CLI error (exit 1): Error: It broke',
      stderr: 'Error: It broke',
    })
  })

  it('after its answer is reported by stderr, and the answer does not count', async () => {
    const printed = { stdout: '{"type":"result","result":"done"}\n', stderr: 'Segmentation fault', exit: 139 }
    const { result } = await runTurn(createPrintingBackend('claude', printed))
    expect(result).toMatchObject({
      isError: true,
      exitCode: 139,
      failure: { reason: 'exit', message: 'Segmentation fault' },
    })
    expect(result).not.toHaveProperty('finalOutput')
  })

  it('after its answer and with an empty stderr reports that answer', async () => {
    expect(await failureOf({ stdout: '{"type":"result","result":"done"}\n', exit: 5 })).toMatchObject({
      report: 'Claude CLI error (exit 5): done',
    })
  })

  it.each([
    [
      'the line with a known sign',
      'Warning: slow\nError: oops\nNot logged in, sorry\nbye',
      'Not logged in, sorry',
      'auth',
    ],
    ['the line that calls itself an error', 'Warning: slow\n  error: bad flag\n\nUsage: …', 'error: bad flag', 'exit'],
    ['the line that holds an error', 'Loading\nclaude: error: bad\nbye', 'claude: error: bad', 'exit'],
    ['the fatal one', 'Loading\nfatal: bad\nbye', 'fatal: bad', 'exit'],
    ['the last line otherwise', 'Loading\n\nIt broke\n\n', 'It broke', 'exit'],
  ])('shows people %s of stderr', async (_, stderr, message, reason) => {
    expect(await failureOf({ stderr, exit: 1 })).toEqual({
      reason,
      message,
      report: `Claude CLI error (exit 1): ${stderr}`,
      stderr,
    })
  })

  it('says when it may be tried again', async () => {
    const stdout = '{"type":"result","is_error":true,"result":"Claude AI usage limit reached|1760000000"}\n'
    expect(await failureOf({ stdout, exit: 1 })).toEqual({
      reason: 'rate_limit',
      message: 'Claude AI usage limit reached|1760000000',
      report: 'Claude CLI error (exit 1): Claude AI usage limit reached|1760000000',
      retryAt: 1_760_000_000_000,
    })
  })

  it('keeps the beginning and the end of a long stderr', async () => {
    const failure = await failureOf({ stderr: `first ${'x'.repeat(100_000)} last`, exit: 1 })
    expect(failure?.stderr).toMatch(/^first x{8186}\n\[… 83627 characters …\]\nx{8187} last$/)
  })
})

it.each<[string, Printed]>([
  ['stderr is', { stderr: `${'x'.repeat(8_170)}${SECRET}${'y'.repeat(9_000)}${SECRET}${'z'.repeat(8_170)}` }],
  ['the report is', { stdout: `${'x'.repeat(480)}${SECRET}` }],
  ['a line that is no JSON is', { stdout: `${'x'.repeat(480)}${SECRET}\n` }],
  ['the final word is', { stdout: JSON.stringify({ type: 'result', result: `${'x'.repeat(480)}${SECRET}` }) }],
])('a secret is hidden even where %s cut', async (_, printed) => {
  const dependencies = { scrubber: createScrubber([SECRET]) }
  const backend = createPrintingBackend('claude', { exit: 1, ...printed }, createStage(), { dependencies })
  const { result, events } = await runTurn(backend)
  const told = JSON.stringify([result.failure?.report, result.failure?.stderr, events.filter(isNotice)])
  expect(told.match(/sk-|[A-W]{4,}/g)).toBe(null)
})

it('a character that comes in two parts on stderr stays one', async () => {
  const stage = createStage()
  const cliPath = stage.write('cli', "#!/bin/sh\nprintf 'caf\\303' >&2\nsleep 0.1\nprintf '\\251' >&2\nexit 1\n")
  chmodSync(cliPath, 0o755)
  const backend = createFakeBackend('claude', cliPath, stage)
  expect(await backend.execute('hi', '')).toEqual({ isError: true, responseText: 'Claude CLI error (exit 1): café' })
})

describe('an agent that has answered and does not exit', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  class WordTranslation extends Translation {
    protected translate({ output, answer, failure }: JsonObject): void {
      if (typeof output === 'string') this.output(output)
      if (typeof answer === 'string') this.succeeded(answer)
      if (typeof failure === 'string') this.failed(failure)
    }
  }

  /** A process that exits only when it is stopped. */
  function startStuck() {
    let print = (_line: Buffer): void => {}
    const stop = vi.fn<() => void>()
    const run = startOneShot({
      ...{ label: 'Claude', failureSigns: [], limits: OUTPUT_LIMITS, scrubber: createScrubber() },
      ...{ now: Date.now, elapsed: Date.now, timeoutMs: 1_800_000, idleTimeoutMs: 600_000 },
      translation: (emit) => new WordTranslation(emit),
      start({ onStdout }) {
        print = onStdout
        const ended = new Promise<PodExit>((resolve) => {
          stop.mockImplementation(() => resolve({ exitCode: 137, hasExpected: false }))
        })
        return { stop, ended }
      },
    })
    return { run, stop, say: (words: JsonObject) => print(Buffer.from(`${JSON.stringify(words)}\n`)) }
  }

  async function resultOf({ events }: Run) {
    for await (const event of events) if (event.type === 'complete') return event.result
    throw new Error('There was no complete')
  }

  it('is ended after a moment, and its answer counts', async () => {
    const { run, stop, say } = startStuck()
    say({ answer: 'done' })
    vi.advanceTimersByTime(9_999)
    expect(stop).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    say({ failure: 'interrupted' })
    run.stop({ reason: 'cancelled', message: 'Cancelled' })
    expect(await resultOf(run)).toEqual({ isError: false, finalOutput: 'done', durationMs: 10_000 })
  })

  it('is left alone while it works on', async () => {
    const { run, stop, say } = startStuck()
    say({ answer: 'done' })
    vi.advanceTimersByTime(5_000)
    say({ output: 'One more thing.' })
    vi.advanceTimersByTime(300_000)
    expect(stop).not.toHaveBeenCalled()
    say({ answer: 'done again' })
    vi.advanceTimersByTime(10_000)
    expect(await resultOf(run)).toMatchObject({ isError: false, finalOutput: 'done again' })
  })

  it('has failed if it said so', async () => {
    const { run, say } = startStuck()
    say({ failure: 'Overloaded' })
    vi.advanceTimersByTime(10_000)
    expect((await resultOf(run)).failure).toMatchObject({ reason: 'exit', message: 'Overloaded' })
  })
})

describe('a flood of lines that are not JSON', () => {
  it('is reported in part, and the answer after it is found', async () => {
    const stdout = `${'y\n'.repeat(5_000)}${'[\n'.repeat(60_000)}{"type":"result","result":"done"}\n`
    const { events, result } = await runTurn(createPrintingBackend('claude', { stdout }))
    const notices = events.flatMap((event) => (event.type === 'notice' ? [event.content] : []))
    expect([result.finalOutput, notices.length, notices.at(-1)]).toEqual([
      'done',
      101,
      'Further unreadable lines are skipped.',
    ])
  })

  it('does not hold up the time-out', async () => {
    const stage = createStage()
    const cliPath = stage.write('cli', '#!/bin/sh\nexec yes "[x]"\n')
    chmodSync(cliPath, 0o755)
    const { result } = await runTurn(createFakeBackend('claude', cliPath, stage), { prompt: 'hi', timeoutMs: 300 })
    expect(result.failure?.report).toBe('Query timed out')
  })
})
