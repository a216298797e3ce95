import { within } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { AgentBackend, AgentRequest, AgentResult, BackendEventResult, StreamCallback } from '../types.js'

/** Implements a backend's `execute` by its `run`. */
export async function executeTurn(
  backend: Pick<AgentBackend, 'run'>,
  log: Log,
  ...[prompt, systemPrompt, sessionId, onStream]: Parameters<AgentBackend['execute']>
): Promise<BackendEventResult> {
  const request: AgentRequest = { prompt, systemPrompt, ...(sessionId !== undefined && { sessionId }) }
  const pump = onStream && pumpStream(onStream, log)
  let result: AgentResult | undefined
  for await (const event of backend.run(request, new AbortController().signal)) {
    if (event.type === 'output') pump?.push(event.content)
    if (event.type === 'complete') result = event.result
  }
  await pump?.drained()
  if (result === undefined) throw new Error('A run ended without its complete event')
  const responseText = result.failure?.report ?? result.finalOutput
  return {
    isError: result.isError,
    ...(responseText !== undefined && { responseText }),
    ...(result.sessionId !== undefined && { sessionId: result.sessionId }),
  }
}

const DRAIN_MS = 5_000

/** Passes text to a callback in order, one call at a time. Text that arrives during a call goes into the next one. */
export function pumpStream(onStream: StreamCallback, log: Log) {
  let waiting = ''
  let isPumping = false
  let pumped: Promise<void> | undefined
  let hasFailed = false

  const pump = async (): Promise<void> => {
    isPumping = true
    while (waiting !== '') {
      const text = waiting
      waiting = ''
      try {
        await onStream(text)
      } catch (error) {
        if (!hasFailed) log.warn('stream.callback-failed', { error: messageOf(error) })
        hasFailed = true
      }
    }
    isPumping = false
  }

  return {
    push(text: string): void {
      waiting += text
      if (!isPumping) pumped = pump()
    },
    /** Settles when the callback has received everything, or takes too long. */
    async drained(): Promise<void> {
      if (pumped) await within(DRAIN_MS, pumped)
    },
  }
}
