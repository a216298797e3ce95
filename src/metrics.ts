// The metrics that Prometheus reads at /metrics.
//
// Invariants:
// - Labels are bounded: a label never holds a value that a client can choose freely.
// - A scrape is answered even if the database is not available; metrics that need it are left out.

import { within } from './core/async.js'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { AgentResult } from './backends/types.js'
import { runnerName } from './backends/agents.js'
import type { RunTurn, Work } from './turns/types.js'

/** Read at each scrape, since another gateway may have changed it. */
export interface MetricsSources {
  /** Messages by state. */
  queueDepth(): Promise<Record<string, number>>
  /** Processes of this gateway's agents and commands. */
  processes(): Promise<number>
}

export interface Metrics {
  registry: Registry
  /** Sets the sources of later scrapes. */
  watch(sources: MetricsSources): void
  /** Wraps a run to count its wait, its end and its events. */
  measured(work: Work, backend: string, run: RunTurn): RunTurn
  /** Called when a statement was answered or failed, with the query builder's name for it: `SelectQueryNode`. */
  storeAnswered(statement: string, durationMs: number): void
  /** Called when a client opens a stream. Call the returned function when it leaves; calling it again is harmless. */
  streamOpened(): () => void
}

const MAX_PROJECTS = 200
const OTHER_PROJECTS = 'other'
/** Less than Prometheus' ten-second timeout. */
const SOURCE_TIMEOUT_MS = 2_000

const TURN_SECONDS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600]
const WAIT_SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800]
const STORE_SECONDS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]

export function createMetrics({ now }: { now: () => number }): Metrics {
  const registry = new Registry()
  const registers = [registry]
  let sources: MetricsSources | undefined
  const projectLabel = boundedLabel(MAX_PROJECTS, OTHER_PROJECTS)

  const requests = new Counter({
    name: 'code_agent_requests_total',
    help: 'Finished runs of agents and commands.',
    labelNames: ['provider', 'project', 'status'] as const,
    registers,
  })
  const durations = new Histogram({
    name: 'code_agent_duration_seconds',
    help: 'Duration of runs.',
    labelNames: ['provider', 'project'] as const,
    buckets: TURN_SECONDS,
    registers,
  })
  const events = new Counter({
    name: 'code_agent_events_total',
    help: 'Events emitted by runs.',
    labelNames: ['provider', 'event_type'] as const,
    registers,
  })
  const inFlight = new Gauge({
    name: 'aetheel_runs_in_flight',
    help: 'Runs in progress on this gateway.',
    labelNames: ['provider'] as const,
    registers,
  })
  const waits = new Histogram({
    name: 'aetheel_queue_wait_seconds',
    help: 'Time that messages waited for their first run.',
    buckets: WAIT_SECONDS,
    registers,
  })
  const storeLatency = new Histogram({
    name: 'aetheel_store_latency_seconds',
    help: 'Duration of database statements.',
    labelNames: ['operation'] as const,
    buckets: STORE_SECONDS,
    registers,
  })
  const streamClients = new Gauge({
    name: 'aetheel_stream_clients',
    help: 'Clients connected to event streams of this gateway.',
    registers,
  })
  const queueDepth = new Gauge({
    name: 'aetheel_queue_depth',
    help: 'Messages in the queue, across all gateways on the database.',
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
        // Later runs wait on purpose: for a limit to end, or before a retry.
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
    storeAnswered: (statement, durationMs) =>
      storeLatency.observe({ operation: operationOf(statement) }, seconds(durationMs)),
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

let processMetrics: Registry | undefined

/** Process metrics, collected by a timer and an observer that cannot be stopped: created once and shared. */
function processRegistry(): Registry {
  if (!processMetrics) {
    processMetrics = new Registry()
    collectDefaultMetrics({ register: processMetrics })
  }
  return processMetrics
}

/** Clocks may be set back. */
function seconds(durationMs: number): number {
  return Math.max(0, durationMs) / 1000
}

function statusOf({ isError, failure }: AgentResult): 'success' | 'error' | 'timeout' | 'cancelled' {
  if (failure?.reason === 'timeout' || failure?.reason === 'cancelled') return failure.reason
  return isError ? 'error' : 'success'
}

/** Keeps the first values and maps all others to one name. */
function boundedLabel(most: number, other: string): (value: string) => string {
  const known = new Set<string>()
  return (value) => {
    if (known.size < most) known.add(value)
    return known.has(value) ? value : other
  }
}

/** Undefined if it fails or takes too long: a scrape is always answered. */
async function sourceWithin<T>(look: (() => Promise<T>) | undefined): Promise<T | undefined> {
  return look && within(SOURCE_TIMEOUT_MS, look()).catch(() => undefined)
}

function operationOf(statement: string): string {
  return /^(?:select|insert|update|delete)/i.exec(statement)?.[0].toLowerCase() ?? 'other'
}
