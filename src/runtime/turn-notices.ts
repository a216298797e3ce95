import type { AgentEvent } from '../backends/types.js'

/** What we say ourselves comes between the beginning, which is first in every stream, and the end. */
export function withNotices(
  onEvent: (event: AgentEvent) => void,
  notices: string[],
): { onEvent(event: AgentEvent): void; tell(notice: string, at: number): void } {
  const waiting: AgentEvent[] = []
  let hasBegun = false
  let isOver = false
  const release = (): void => {
    if (hasBegun && !isOver) waiting.splice(0).forEach(onEvent)
  }
  const tell = (content: string, timestamp: number): void => {
    waiting.push({ type: 'notice', content, timestamp })
    release()
  }
  return {
    onEvent: (event) => {
      isOver ||= event.type === 'complete'
      onEvent(event)
      if (event.type === 'started') for (const notice of notices) tell(notice, event.timestamp)
      // Some agents do not tell that they have begun.
      hasBegun ||= event.type !== 'error'
      release()
    },
    tell,
  }
}
