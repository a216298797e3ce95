import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import type { AgentEvent, AgentResult } from '../src/backends/types.js'
import { createMetrics, type Metrics } from '../src/metrics.js'
import type { RunTurn, Work } from '../src/turns/types.js'

const START_AT = Date.UTC(2026, 0, 2, 3, 4, 5)
const ANSWERED: AgentResult = { isError: false, durationMs: 1 }
const LISTENER = { onEvent: () => {}, keepSession: async () => {} }

it('keeps nothing of a gateway that is gone', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const watchAndForget = async (): Promise<WeakRef<object>> => {
    const sources = { queueDepth: async () => ({ queued: 1 }), processes: async () => 1 }
    const metrics = createMetrics({ now: () => START_AT })
    metrics.watch(sources)
    await metrics.registry.metrics()
    return new WeakRef(sources)
  }
  const forgotten = await watchAndForget()
  await expect
    .poll(() => {
      collectGarbage()
      return forgotten.deref() === undefined
    })
    .toBe(true)
})

it('counts runs with their provider, project and status, and how long they took', async () => {
  const clock = { now: START_AT }
  const metrics = createMetrics({ now: () => clock.now })
  const run = (backend: string, result: AgentResult, seconds: number): Promise<void> =>
    runIn(metrics, 'site', backend, async () => {
      clock.now += seconds * 1000
      return result
    })
  await run('claude', ANSWERED, 2)
  await run('claude', ANSWERED, 4)
  await run('claude', failed('timeout'), 60)
  await run('codex', failed('cancelled'), 1)
  await run('git', failed('exit'), 1)
  await runIn(metrics, undefined, 'pi', () => Promise.reject(new Error('broken'))).catch(() => {})
  expect(await samplesOf(metrics, 'code_agent_requests_total')).toEqual([
    'code_agent_requests_total{provider="claudecode",project="site",status="success"} 2',
    'code_agent_requests_total{provider="claudecode",project="site",status="timeout"} 1',
    'code_agent_requests_total{provider="codex",project="site",status="cancelled"} 1',
    'code_agent_requests_total{provider="git",project="site",status="error"} 1',
    'code_agent_requests_total{provider="pi",project="",status="error"} 1',
  ])
  expect(await samplesOf(metrics, 'code_agent_duration_seconds_(sum|count)', 'claudecode')).toEqual([
    'code_agent_duration_seconds_sum{provider="claudecode",project="site"} 66',
    'code_agent_duration_seconds_count{provider="claudecode",project="site"} 3',
  ])
})

it('counts no run that may not begin', async () => {
  const metrics = createMetrics({ now: () => START_AT })
  const turn: RunTurn = async (_request, _signal, { mayBegin }) => {
    await mayBegin
    return { result: ANSWERED, notes: [] }
  }
  const listener = { ...LISTENER, mayBegin: Promise.reject(new Error("It is somebody else's.")) }
  const run = metrics.measured(workOf('site'), 'claude', turn)({ runId: '1' }, new AbortController().signal, listener)
  await expect(run).rejects.toThrow('somebody')
  const names = 'code_agent_requests_total|aetheel_runs_in_flight|aetheel_queue_wait_seconds_count'
  expect(await samplesOf(metrics, names)).toEqual(['aetheel_queue_wait_seconds_count 0'])
})

it('counts events by their type and passes them on, and runs while they are in flight', async () => {
  const metrics = createMetrics({ now: () => START_AT })
  const seen: AgentEvent[] = []
  let during: string[] = []
  const output: AgentEvent = { type: 'output', content: 'x', stream: 'stdout', timestamp: 1 }
  const notice: AgentEvent = { type: 'notice', content: 'y', timestamp: 2 }
  const turn: RunTurn = async (_request, _signal, listener) => {
    for (const event of [output, output, notice]) listener.onEvent(event)
    during = await samplesOf(metrics, 'aetheel_runs_in_flight')
    return { result: ANSWERED, notes: ['a note'] }
  }
  const measured = metrics.measured(workOf('site'), 'claude', turn)
  const listener = { ...LISTENER, onEvent: (event: AgentEvent) => seen.push(event) }
  const outcome = await measured({ runId: '1' }, new AbortController().signal, listener)
  expect([outcome, seen]).toEqual([{ result: ANSWERED, notes: ['a note'] }, [output, output, notice]])
  expect(during).toEqual(['aetheel_runs_in_flight{provider="claudecode"} 1'])
  expect(await samplesOf(metrics, 'code_agent_events_total|aetheel_runs_in_flight')).toEqual([
    'code_agent_events_total{provider="claudecode",event_type="output"} 2',
    'code_agent_events_total{provider="claudecode",event_type="notice"} 1',
    'aetheel_runs_in_flight{provider="claudecode"} 0',
  ])
})

it('measures how long messages wait for their first run only', async () => {
  const metrics = createMetrics({ now: () => START_AT + 3_000 })
  await runIn(metrics, 'site', 'claude', async () => ANSWERED)
  for (const again of [{ failures: 1 }, { interruptions: 1 }]) {
    const turn: RunTurn = async () => ({ result: ANSWERED, notes: [] })
    await metrics.measured(workOf('site', again), 'claude', turn)(
      { runId: '2' },
      new AbortController().signal,
      LISTENER,
    )
  }
  expect(await samplesOf(metrics, 'aetheel_queue_wait_seconds_(sum|count)')).toEqual([
    'aetheel_queue_wait_seconds_sum 3',
    'aetheel_queue_wait_seconds_count 1',
  ])
})

it('names 200 projects and calls all further ones other', async () => {
  const metrics = createMetrics({ now: () => START_AT })
  for (let number = 1; number <= 500; number += 1) {
    await runIn(metrics, `p${number}`, 'claude', async () => ANSWERED)
  }
  await runIn(metrics, 'p1', 'claude', async () => ANSWERED)
  const samples = await samplesOf(metrics, 'code_agent_requests_total')
  expect([samples.length, samples[0], samples.at(-1)]).toEqual([
    201,
    'code_agent_requests_total{provider="claudecode",project="p1",status="success"} 2',
    'code_agent_requests_total{provider="claudecode",project="other",status="success"} 300',
  ])
})

it('asks for the queue and the processes at each scrape', async () => {
  const metrics = createMetrics({ now: () => START_AT })
  const before = await samplesOf(metrics, 'aetheel_queue_depth|aetheel_processes')
  let depths: Record<string, number> = { queued: 2, ready: 1, active: 1, failed: 0 }
  metrics.watch({ queueDepth: async () => depths, processes: async () => 3 })
  const busy = await samplesOf(metrics, 'aetheel_queue_depth|aetheel_processes')
  depths = { failed: 4 }
  const calm = await samplesOf(metrics, 'aetheel_queue_depth')
  expect([before, busy, calm]).toEqual([
    [],
    [
      'aetheel_queue_depth{state="queued"} 2',
      'aetheel_queue_depth{state="ready"} 1',
      'aetheel_queue_depth{state="active"} 1',
      'aetheel_queue_depth{state="failed"} 0',
      'aetheel_processes 3',
    ],
    ['aetheel_queue_depth{state="failed"} 4'],
  ])
})

it('answers a scrape without what the database does not provide in time', async () => {
  const metrics = createMetrics({ now: () => START_AT })
  metrics.watch({ queueDepth: async () => ({ ready: 1 }), processes: async () => 1 })
  await metrics.registry.metrics()
  const never = new AbortController()
  metrics.watch({
    queueDepth: () => Promise.reject(new Error('away')),
    processes: () => sleep(1_000_000, 1, { signal: never.signal }),
  })
  expect(await samplesOf(metrics, 'aetheel_queue_depth|aetheel_processes|aetheel_stream_clients')).toEqual([
    'aetheel_stream_clients 0',
  ])
  never.abort()
})

it('counts the clients of streams, each once', async () => {
  const metrics = createMetrics({ now: () => START_AT })
  const [first] = [metrics.streamOpened(), metrics.streamOpened(), metrics.streamOpened()]
  first?.()
  first?.()
  expect(await samplesOf(metrics, 'aetheel_stream_clients')).toEqual(['aetheel_stream_clients 2'])
})

it('measures statements of the database, and the process itself', async () => {
  const metrics = createMetrics({ now: () => START_AT })
  metrics.storeAnswered('select', 2)
  metrics.storeAnswered('select', 4)
  metrics.storeAnswered('insert', -1)
  expect(await samplesOf(metrics, 'aetheel_store_latency_seconds_(sum|count)')).toEqual([
    'aetheel_store_latency_seconds_sum{operation="select"} 0.006',
    'aetheel_store_latency_seconds_count{operation="select"} 2',
    'aetheel_store_latency_seconds_sum{operation="insert"} 0',
    'aetheel_store_latency_seconds_count{operation="insert"} 1',
  ])
  await expect.poll(() => samplesOf(metrics, 'process_start_time_seconds')).toHaveLength(1)
})

async function samplesOf(metrics: Metrics, names: string, provider = ''): Promise<string[]> {
  const lines = (await metrics.registry.metrics()).split('\n')
  const name = new RegExp(`^(${names})[{ ]`)
  return lines.filter((line) => name.test(line) && line.includes(provider))
}

async function runIn(
  metrics: Metrics,
  projectId: string | undefined,
  backend: string,
  run: () => Promise<AgentResult>,
): Promise<void> {
  const turn: RunTurn = async () => ({ result: await run(), notes: [] })
  await metrics.measured(workOf(projectId), backend, turn)({ runId: '1' }, new AbortController().signal, LISTENER)
}

function workOf(projectId: string | undefined, claim: Partial<Work['claim']> = {}): Work {
  return {
    claim: { failures: 0, interruptions: 0, ...claim },
    conversation: { ...(projectId !== undefined && { projectId }) },
    message: { receivedAt: START_AT },
  } as Work
}

function failed(reason: 'timeout' | 'cancelled' | 'exit'): AgentResult {
  return { isError: true, durationMs: 1, failure: { reason, message: 'm', report: 'r' } }
}
