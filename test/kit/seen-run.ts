import type { AgentEvent, AgentResult } from '../../src/backends/types.js'

/** The record of a finished run. */
export interface SeenRun {
  events: AgentEvent[]
  /** The types of the events, in order. */
  types: string
  /** The streamed text. */
  output: string
  notices: string[]
  result: AgentResult
}

/** Reads a run to its end. Awaits `onEvent`, like a slow consumer. */
export async function seeRun(
  run: AsyncIterable<AgentEvent>,
  onEvent: (event: AgentEvent) => unknown = () => {},
): Promise<SeenRun> {
  const events: AgentEvent[] = []
  for await (const event of run) {
    events.push(event)
    await onEvent(event)
  }
  return seenIn(events)
}

export function seenIn(events: AgentEvent[]): SeenRun {
  const last = events.at(-1)
  if (last?.type !== 'complete') throw new Error(`The run did not end with complete: ${JSON.stringify(last)}`)
  return {
    events,
    types: events.map(({ type }) => type).join(' '),
    output: events.map((event) => (event.type === 'output' ? event.content : '')).join(''),
    notices: events.flatMap((event) => (event.type === 'notice' ? [event.content] : [])),
    result: last.result,
  }
}
