import type { AgentEvent } from '../backends/types.js'

/** Inserts the gateway's own notices after `started`, which comes first in every stream, and before `complete`. */
export function withNotices(
  onEvent: (event: AgentEvent) => void,
  notices: string[],
): { onEvent(event: AgentEvent): void; notify(notice: string, at: number): void } {
  const waiting: AgentEvent[] = []
  let hasBegun = false
  let isOver = false
  const release = (): void => {
    if (hasBegun && !isOver) waiting.splice(0).forEach(onEvent)
  }
  const notify = (content: string, timestamp: number): void => {
    waiting.push({ type: 'notice', content, timestamp })
    release()
  }
  return {
    onEvent: (event) => {
      isOver ||= event.type === 'complete'
      onEvent(event)
      if (event.type === 'started') for (const notice of notices) notify(notice, event.timestamp)
      // Some agents do not report that they have started.
      hasBegun ||= event.type !== 'error'
      release()
    },
    notify,
  }
}
