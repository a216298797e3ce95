import type { AgentEvent } from '../../src/backends/types.js'

/** The kinds of events in order; consecutive text events count once, since their number is not fixed. */
export function kindsOf(events: AgentEvent[]): string[] {
  const kinds = events.map(({ type }) => type)
  return kinds.filter((kind, index) => (kind !== 'output' && kind !== 'thinking') || kind !== kinds[index - 1])
}

/** The contract violations in the events of one finished run, one sentence each. */
export function brokenInvariants(events: AgentEvent[]): string[] {
  return [...brokenOrder(events), ...openTools(events), ...brokenTimestamps(events), ...brokenResult(events)]
}

function brokenOrder(events: AgentEvent[]): string[] {
  const types = events.map(({ type }) => type)
  const broken: string[] = []
  if (types.lastIndexOf('started') > 0) broken.push('started is not once and first')
  if (types.indexOf('complete') !== types.length - 1 || types.length === 0) broken.push('complete is not once and last')
  return broken
}

function openTools(events: AgentEvent[]): string[] {
  const open = new Set<string>()
  const broken: string[] = []
  for (const event of events) {
    if (event.type === 'tool_use') {
      if (open.has(event.toolId)) broken.push(`tool ${event.toolId} is used again while it is open`)
      open.add(event.toolId)
    } else if (event.type === 'tool_result') open.delete(event.toolId)
  }
  return [...broken, ...[...open].map((toolId) => `tool ${toolId} is never closed`)]
}

function brokenTimestamps(events: AgentEvent[]): string[] {
  return events.flatMap(({ type, timestamp }, index) => {
    const before = events[index - 1]?.timestamp ?? 0
    return timestamp >= before ? [] : [`event ${index} (${type}) is older than the one before it`]
  })
}

function brokenResult(events: AgentEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.type !== 'complete') return []
    const { isError, failure, finalOutput, sessionId } = event.result
    return [
      ...(isError === (failure !== undefined) ? [] : ['isError and failure contradict each other']),
      ...(isError === (finalOutput === undefined) ? [] : ['isError and finalOutput contradict each other']),
      ...(failure?.reason === 'session_lost' && sessionId !== undefined ? ['a lost session has an id'] : []),
    ]
  })
}
