import type { AgentBackend, AgentRequest, AgentResult } from '../../backends/types.js'
import { EventScrubber } from '../../credentials/event-scrubber.js'
import type { Scrubber } from '../../credentials/scrubber.js'
import { withNotices } from '../../runtime/turn-notices.js'
import { type Output, TurnPrinter } from '../turn-printer.js'

interface AskOptions {
  backend: Pick<AgentBackend, 'run'>
  request: AgentRequest
  /** To tell beside what the agent does, a sentence each. */
  notices?: string[]
  /** Every event as a line of JSON instead of text. */
  isJson: boolean
  stdout: Output
  stderr: Output
  signal: AbortSignal
  /** Knows, among others, the password of a server that was started for this. */
  scrubber: Scrubber
}

/** Asks one agent one thing: the answer streams to stdout, what it does meanwhile to stderr. */
export async function ask({
  backend,
  request,
  notices = [],
  isJson,
  stdout,
  stderr,
  signal,
  scrubber,
}: AskOptions): Promise<AgentResult> {
  const printer = new TurnPrinter(stdout, stderr)
  let result: AgentResult | undefined
  const events = new EventScrubber(scrubber)
  const { onEvent } = withNotices((event) => {
    if (event.type === 'complete') result = event.result
    if (isJson) stdout.write(`${JSON.stringify(event)}\n`)
    else printer.show(event)
  }, notices)
  for await (const raw of backend.run(request, signal)) events.scrub(raw).forEach(onEvent)
  if (result === undefined) throw new Error('A run ended without its complete event')
  if (isJson) return result
  const { finalOutput = '', sessionId, failure } = result
  printer.answer(finalOutput)
  if (failure) stderr.write(`Error (${failure.reason}): ${failure.message}\n`)
  if (sessionId !== undefined) stderr.write(`Session: ${sessionId}\n`)
  return result
}
