import type { AgentBackend, AgentRequest, AgentResult } from '../backends/types.js'
import { type Output, TurnPrinter } from './turn-printer.js'

interface AskOptions {
  backend: Pick<AgentBackend, 'run'>
  request: AgentRequest
  /** Every event as a line of JSON instead of text. */
  isJson: boolean
  stdout: Output
  stderr: Output
  signal: AbortSignal
}

/** Asks one agent one thing: the answer streams to stdout, what it does meanwhile to stderr. */
export async function ask({ backend, request, isJson, stdout, stderr, signal }: AskOptions): Promise<AgentResult> {
  const printer = new TurnPrinter(stdout, stderr)
  let result: AgentResult | undefined
  for await (const event of backend.run(request, signal)) {
    if (event.type === 'complete') result = event.result
    if (isJson) stdout.write(`${JSON.stringify(event)}\n`)
    else printer.show(event)
  }
  if (result === undefined) throw new Error('A run ended without its complete event')
  if (isJson) return result
  const { finalOutput = '', sessionId, failure } = result
  printer.answer(finalOutput)
  if (failure) stderr.write(`Error (${failure.reason}): ${failure.message}\n`)
  if (sessionId !== undefined) stderr.write(`Session: ${sessionId}\n`)
  return result
}
