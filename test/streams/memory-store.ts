// A store of one message in memory, no faster and no more atomic than PostgreSQL: others may run between any two steps.

import type { AgentEvent, AgentResult } from '../../src/backends/types.js'
import type { RecordedEvent } from '../../src/store/events.js'
import type { Message } from '../../src/store/inbox.js'
import type { RunRecord } from '../../src/store/runs.js'
import type { EventStore } from '../../src/streams/stream-reader.js'
import type { Ending, Writer } from './interleaving.js'

const MESSAGE_ID = 'message'

export function createMemoryWriter(pause: () => Promise<void>): Writer {
  const message: Message = {
    id: MESSAGE_ID,
    conversationId: 'conversation',
    channel: 'http',
    platformId: 'platform',
    seq: 1,
    kind: 'message',
    author: 'ann',
    text: 'Hello',
    state: 'open',
    receivedAt: 0,
  }
  const runs: RunRecord[] = []
  const events = new Map<string, AgentEvent[]>()
  const recordedOf = (runId: string): AgentEvent[] => events.get(runId) ?? []
  const store: EventStore = {
    inbox: {
      get: async () => {
        await pause()
        const copy = { ...message }
        await pause()
        return copy
      },
    },
    runs: {
      ofMessage: async () => {
        await pause()
        const copies = runs.map((run) => ({ ...run }))
        await pause()
        return copies
      },
      latest: async () => {
        await pause()
        const last = runs.at(-1)
        const copy = last && { ...last }
        await pause()
        return copy
      },
    },
    events: {
      page: async (runId, afterSeq, limits) => {
        await pause()
        const rest: RecordedEvent[] = recordedOf(runId)
          .map((event, index) => ({ seq: index + 1, event }))
          .filter(({ seq }) => seq > afterSeq)
        await pause()
        return { events: rest.slice(0, limits.events), isLast: rest.length < limits.events }
      },
    },
  }
  const end = (runId: string, state: RunRecord['state'], result?: AgentResult): void => {
    const run = runs.find(({ id }) => id === runId)
    if (run) Object.assign(run, { state, endedAt: runs.length, ...(result && { result }) })
  }
  return {
    store,
    messageId: MESSAGE_ID,
    claim: async () => {
      await pause()
      for (const run of runs) if (run.state === 'running') run.state = 'interrupted'
    },
    begin: async (id) => {
      await pause()
      const earlier = runs.at(-1)
      const firstSeq = Math.max(
        earlier ? earlier.firstSeq + recordedOf(earlier.id).length : 0,
        message.retriedAfter ?? 0,
      )
      await pause()
      const { conversationId } = message
      const about = { messageId: MESSAGE_ID, conversationId, gatewayId: 'gateway', backend: 'claude' }
      runs.push({ ...about, id, firstSeq, state: 'running', startedAt: runs.length })
    },
    record: async (runId, recorded) => {
      await pause()
      if (runs.find(({ id }) => id === runId)?.state !== 'running') return false
      events.set(runId, [...recordedOf(runId), ...recorded.map(({ event }) => event)])
      return true
    },
    settle: async (runId, ending: Ending, result) => {
      await pause()
      if (ending === 'handed-back') end(runId, 'interrupted')
      else if (ending === 'retry') end(runId, 'failed', result)
      else {
        end(runId, ending, result)
        Object.assign(message, { state: ending, finishedAt: 1 })
      }
    },
    fail: async () => {
      await pause()
      Object.assign(message, { state: 'failed', finishedAt: 1 })
    },
    retry: async () => {
      await pause()
      const last = runs.at(-1)
      const ofLast = last ? last.firstSeq + recordedOf(last.id).length : 0
      Object.assign(message, { state: 'open', retriedAfter: 1 + Math.max(ofLast, message.retriedAfter ?? 0) })
    },
    drop: async () => {
      await pause()
      Object.assign(message, { state: 'dropped', finishedAt: 1 })
    },
  }
}
