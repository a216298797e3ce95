import type { Log } from '../../log.js'
import { pumpStream } from './stream-pump.js'
import type { AgentBackend, AgentRequest, AgentResult, BackendEventResult } from '../types.js'

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
