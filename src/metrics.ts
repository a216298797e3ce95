// What Prometheus reads at /metrics. The first three are spec 3's, with its names and labels.
//
// What must stay true:
// - Labels are bounded: a label never holds what a client may make up freely.
// - A scrape is answered also when the database is not: what it would have told is left out.

import { within } from './core/async.js'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { AgentResult } from './backends/types.js'
import { runnerName } from './backends/engine/provider-names.js'
import type { RunTurn, Work } from './turns/types.js'

export interface MetricsOptions {
  now: () => number
}

/** What is asked at each scrape, since another gateway may have changed it. */
export interface MetricsSources {
  /** How many messages there are, by their state. */
  queueDepth(): Promise<Record<string, number>>
  /** How many processes of this gateway's agents and commands are there. */
  processes(): Promise<number>
}

const STORE_OPERATIONS = ['select', 'insert', 'update', 'delete', 'other'] as const

export type StoreOperation = (typeof STORE_OPERATIONS)[number]

export interface Metrics {
  registry: Registry
  /** From now on scrapes ask these. */
  watch(sources: MetricsSources): void
  /** The same run, with its wait, its end and its events counted. */
  measured(work: Work, backend: string, run: RunTurn): RunTurn
  /** A statement was answered, or failed. */
  storeAnswered(operation: StoreOperation, durationMs: number): void
  /** A client follows a stream. Call what it returns when the client has left; again does no harm. */
  streamOpened(): () => void
}

const MOST_PROJECTS = 200
const OTHER_PROJECTS = 'other'
/** Less than the ten seconds in which Prometheus gives up. */
const SOURCE_TIMEOUT_MS = 2_000

const TURN_SECONDS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600]
const WAIT_SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800]
const STORE_SECONDS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]

export function createMetrics({ now }: MetricsOptions): Metrics {
  const registry = new Registry()
  const registers = [registry]
  let sources: MetricsSources | undefined
  const projectLabel = boundedLabel(MOST_PROJECTS, OTHER_PROJECTS)

  const requests = new Counter({
    name: 'code_agent_requests_total',
    help: 'Runs of agents and commands that have ended.',
    labelNames: ['provider', 'project', 'status'] as const,
    registers,
  })
  const durations = new Histogram({
    name: 'code_agent_duration_seconds',
    help: 'How long runs took.',
    labelNames: ['provider', 'project'] as const,
    buckets: TURN_SECONDS,
    registers,
  })
  const events = new Counter({
    name: 'code_agent_events_total',
    help: 'Events of runs.',
    labelNames: ['provider', 'event_type'] as const,
    registers,
  })
  const inFlight = new Gauge({
    name: 'aetheel_runs_in_flight',
    help: 'Runs that this gateway works on.',
    labelNames: ['provider'] as const,
    registers,
  })
  const waits = new Histogram({
    name: 'aetheel_queue_wait_seconds',
    help: 'How long messages waited for their first run.',
    buckets: WAIT_SECONDS,
    registers,
  })
  const storeLatency = new Histogram({
    name: 'aetheel_store_latency_seconds',
    help: 'How long the database took for a statement.',
    labelNames: ['operation'] as const,
    buckets: STORE_SECONDS,
    registers,
  })
  const streamClients = new Gauge({
    name: 'aetheel_stream_clients',
    help: 'Clients that follow an event stream of this gateway.',
    registers,
  })
  const queueDepth = new Gauge({
    name: 'aetheel_queue_depth',
    help: 'Messages in the queue, of all gateways on the database.',
    labelNames: ['state'] as const,
    registers,
    collect: async () => {
      const depths = await sourceWithin(sources?.queueDepth)
      queueDepth.reset()
      for (const [state, count] of Object.entries(depths ?? {})) queueDepth.set({ state }, count)
    },
  })
  const processes = new Gauge({
    name: 'aetheel_processes',
    help: "Processes of this gateway's agents and commands.",
    registers,
    collect: async () => {
      const count = await sourceWithin(sources?.processes)
      if (count === undefined) processes.remove()
      else processes.set(count)
    },
  })

  return {
    registry: Registry.merge([processRegistry(), registry]),
    watch: (given) => {
      sources = given
    },
    measured: (work, backend, run) => async (request, signal, listener) => {
      const provider = runnerName(backend)
      const project = projectLabel(work.conversation.projectId ?? '')
      let startedAt = 0
      const begin = (): boolean => {
        startedAt = now()
        // Later runs wait on purpose: for a limit to pass, or before they try again.
        const { failures, interruptions } = work.claim
        if (failures + interruptions === 0) waits.observe(seconds(startedAt - work.message.receivedAt))
        inFlight.inc({ provider })
        return true
      }
      const hasBegun = listener.mayBegin ? listener.mayBegin.then(begin, () => false) : begin()
      let status = 'error'
      try {
        const outcome = await run(request, signal, {
          ...listener,
          onEvent: (event) => {
            events.inc({ provider, event_type: event.type })
            listener.onEvent(event)
          },
        })
        status = statusOf(outcome.result)
        return outcome
      } finally {
        if (await hasBegun) {
          inFlight.dec({ provider })
          requests.inc({ provider, project, status })
          durations.observe({ provider, project }, seconds(now() - startedAt))
        }
      }
    },
    storeAnswered: (operation, durationMs) => storeLatency.observe({ operation }, seconds(durationMs)),
    streamOpened: () => {
      let isOpen = true
      streamClients.inc()
      return () => {
        if (isOpen) streamClients.dec()
        isOpen = false
      }
    },
  }
}

let ofProcess: Registry | undefined

/** What is measured of the process itself, by a timer and an observer that cannot be stopped: once, whoever asks. */
function processRegistry(): Registry {
  if (!ofProcess) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}

/** Clocks are set back now and then. */
function seconds(durationMs: number): number {
  return Math.max(0, durationMs) / 1000
}

function statusOf({ isError, failure }: AgentResult): 'success' | 'error' | 'timeout' | 'cancelled' {
  if (failure?.reason === 'timeout' || failure?.reason === 'cancelled') return failure.reason
  return isError ? 'error' : 'success'
}

/** The first values as they are, and one name for all others. */
function boundedLabel(most: number, other: string): (value: string) => string {
  const known = new Set<string>()
  return (value) => {
    if (known.size < most) known.add(value)
    return known.has(value) ? value : other
  }
}

/** Undefined also when it fails: a scrape is answered in any case. */
async function sourceWithin<T>(look: (() => Promise<T>) | undefined): Promise<T | undefined> {
  return look && within(SOURCE_TIMEOUT_MS, look()).catch(() => undefined)
}

/** By the name that the query builder has for a statement: `SelectQueryNode`. */
export function storeOperation(kind: string): StoreOperation {
  const word = /^(Select|Insert|Update|Delete)/.exec(kind)?.[1]?.toLowerCase()
  return STORE_OPERATIONS.find((operation) => operation === word) ?? 'other'
}
