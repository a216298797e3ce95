// What applies to every warm agent, whatever its protocol; played by test/fixtures/bin/any-agent.mjs.

import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WarmPool } from '../../../../src/backends/engine/warm/warm-pool.js'
import type { AgentEvent, AgentRequest, BackendName } from '../../../../src/backends/types.js'
import { brokenInvariants } from '../../../contract/invariants.js'
import { livingProcesses } from '../../../kit/living-processes.js'
import { until } from '../../../kit/waiting.js'
import { createFakeBackend, createStage } from '../../fake-cli.js'
import { SILENT_LOG } from '../../../kit/log.js'
import { seeRun } from '../../../kit/seen-run.js'
import { agentPath } from '../../../kit/agents.js'

const AGENT = agentPath('any-agent.mjs')
const NAMES = ['claude', 'codex', 'gemini', 'pi'] as const
const SHARED = ['codex', 'gemini'] as const

function setup(name: BackendName) {
  const stage = createStage()
  const log = SILENT_LOG
  const dependencies = { log, now: Date.now, elapsed: Date.now }
  const limits = { liveIdleMs: 600_000, liveMaxProcesses: 8, liveMaxMemoryMb: 4096, liveSpare: false }
  const pool = new WarmPool({ log, limits, memory: (pids) => pids.map(() => 0), readyMs: 60_000 })
  onTestFinished(() => pool.stop())
  const backend = createFakeBackend(name, AGENT, stage, {
    config: { queryTimeoutMs: 100_000 },
    dependencies: { ...dependencies, warm: { mode: 'live', pool } },
  })
  const turn = async (
    lines: string[],
    request: Partial<AgentRequest> = {},
    onEvent: (event: AgentEvent) => void = () => {},
    signal = new AbortController().signal,
  ) => {
    const run = backend.run({ prompt: lines.join('\n'), ...request }, signal)
    const { events, notices, result } = await seeRun(run, onEvent)
    const { finalOutput, sessionId = '', failure } = result
    return {
      answer: finalOutput?.trim().split(/\s+/).at(-1),
      sessionId,
      reason: failure?.reason,
      kinds: events.map(({ type }) => type),
      notices,
      broken: brokenInvariants(events),
    }
  }
  const begun = (file: string) => until(() => existsSync(join(stage.workingDir, `${file}.begun`)), `${file}.begun`)
  const letGo = (file: string): string => stage.write(join('work', file), '')
  const living = (): number[] => livingProcesses(stage.workingDir).map(({ pid }) => pid)
  return { stage, turn, begun, letGo, living, pool }
}

describe.each(NAMES)('a warm %s', (name) => {
  it('answers turn after turn of a session in one process, and leaves nothing behind', async () => {
    const { turn, living, pool } = setup(name)
    const first = await turn(['say One', 'tool', 'answer'])
    const second = await turn(['answer'], { sessionId: first.sessionId })
    expect([first.broken, second.broken, second.answer, second.sessionId]).toEqual([
      [],
      [],
      first.answer,
      first.sessionId,
    ])
    expect(first.kinds.filter((kind) => kind.startsWith('tool'))).toEqual(['tool_use', 'tool_result'])
    expect(living().map(String)).toEqual([first.answer])
    await pool.stop()
    expect(living()).toEqual([])
  })

  it('stays warm when a turn is cancelled', async () => {
    const { turn } = setup(name)
    const { answer, sessionId } = await turn(['answer'])
    const controller = new AbortController()
    const stop = ({ type }: AgentEvent): void => (type === 'output' ? controller.abort() : undefined)
    const cancelled = await turn(['say Working', 'wait never', 'answer'], { sessionId }, stop, controller.signal)
    const after = await turn(['answer'], { sessionId })
    expect([cancelled.reason, cancelled.broken, after.answer]).toEqual(['cancelled', [], answer])
  })

  it('answers once, in the same session, when it is lost in the middle of a turn', async () => {
    const { turn } = setup(name)
    const { sessionId } = await turn(['answer'])
    const lost = await turn(['say Half', 'die', 'answer'], { sessionId })
    expect(lost).toMatchObject({ answer: 'alone', sessionId, reason: undefined, broken: [] })
    expect(lost.notices).toContainEqual(expect.stringContaining('continues in a new process'))
    const next = await turn(['answer'], { sessionId })
    expect([next.sessionId, next.answer === 'alone']).toEqual([sessionId, false])
  })

  it('is not disturbed by garbage', async () => {
    const { turn } = setup(name)
    const { answer, sessionId } = await turn(['answer'])
    const heard = await turn(['garbage', 'answer'], { sessionId })
    expect([heard.answer, heard.notices, heard.broken]).toEqual([answer, ['}{'], []])
  })

  it('answers simultaneous messages of one session one after the other', async () => {
    const { turn, begun, letGo } = setup(name)
    const { sessionId } = await turn(['answer'])
    const order: string[] = []
    const held = turn(['wait go', 'answer'], { sessionId }).then(() => order.push('first'))
    await begun('go')
    const next = turn(['answer'], { sessionId }).then(() => order.push('second'))
    letGo('go')
    await Promise.all([held, next])
    expect(order).toEqual(['first', 'second'])
  })
})

describe.each(SHARED)('%s for several sessions', (name) => {
  it('answers two simultaneously in one process', async () => {
    const { turn, begun, letGo } = setup(name)
    const held = turn(['wait one', 'answer'])
    await begun('one')
    const other = await turn(['answer'])
    letGo('one')
    const first = await held
    expect([first.answer, first.sessionId === other.sessionId]).toEqual([other.answer, false])
  })

  it('answers both in separate processes when the shared one is lost', async () => {
    const { turn, begun, letGo } = setup(name)
    const [one, two] = [await turn(['answer']), await turn(['answer'])]
    const held = turn(['say Half', 'wait go', 'answer'], { sessionId: one.sessionId })
    await begun('go')
    const dying = turn(['die', 'answer'], { sessionId: two.sessionId })
    expect((await dying).answer).toBe('alone')
    letGo('go')
    expect(await held).toMatchObject({ answer: 'alone', sessionId: one.sessionId, broken: [] })
  })
})

it('a session that Gemini cannot load yet gets a process for the turn, and nothing is lost', async () => {
  const { turn, stage } = setup('gemini')
  const sessionId = randomUUID()
  const chats = join(stage.home, '.gemini', 'tmp', 'project', 'chats')
  mkdirSync(chats, { recursive: true })
  for (const ms of [0, 60_000, 120_000]) {
    const minute = new Date(Date.now() + ms).toISOString().slice(0, 16).replaceAll(':', '-')
    writeFileSync(join(chats, `session-${minute}-${sessionId.slice(0, 8)}.jsonl`), '')
  }
  const declined = await turn(['answer'], { sessionId })
  expect(declined).toMatchObject({ answer: 'alone', sessionId, broken: [] })
  expect(declined.notices).toContainEqual(expect.stringContaining('cannot take this turn'))
})
