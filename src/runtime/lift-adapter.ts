import { EventQueue } from '../backends/event-queue.js'
import type { AgentBackend, AgentFailure, AgentResult, BackendAdapter } from '../backends/types.js'

/** What the runtime asks of a backend. */
export interface TurnBackend {
  name(): string
  run: AgentBackend['run']
}

/** Such an adapter tells the reason in its text alone. */
const SESSION_COMPLAINT =
  /\b(?:session|conversation)\b[^.\n]*\b(?:corrupt\w*|invalid|not found|unknown|expired|does not exist|could not be (?:read|loaded))\b|\bno (?:session|conversation) found\b/i

/** Gives an adapter that has only `execute` the method that everything is built on. It cannot be stopped half-way. */
export function liftAdapter(adapter: BackendAdapter | TurnBackend, now: () => number = Date.now): TurnBackend {
  if ('run' in adapter) return adapter
  return {
    name: () => adapter.name(),
    async *run({ prompt, systemPrompt = '', sessionId }) {
      const startedAt = now()
      const queue = new EventQueue(now)
      const onStream = async (content: string): Promise<void> => {
        queue.push({ type: 'output', content, stream: 'stdout' })
      }
      const finish = async (): Promise<void> => {
        const outcome = await adapter.execute(prompt, systemPrompt, sessionId, onStream)
        const durationMs = now() - startedAt
        const said = outcome.responseText ?? ''
        const reason = sessionId !== undefined && SESSION_COMPLAINT.test(said) ? 'session_lost' : 'exit'
        const failure: AgentFailure = { reason, message: said || 'The agent failed.', report: said }
        const result: AgentResult = outcome.isError
          ? { isError: true, durationMs, failure }
          : { isError: false, durationMs, finalOutput: said }
        queue.complete({ ...result, ...(outcome.sessionId !== undefined && { sessionId: outcome.sessionId }) })
      }
      const finished = finish()
      // A rejection is told below; until then it must not count as unhandled.
      finished.catch((error: unknown) => queue.complete(thrown(error, now() - startedAt)))
      yield* queue
    },
  }
}

function thrown(error: unknown, durationMs: number): AgentResult {
  const message = error instanceof Error ? error.message : String(error)
  return { isError: true, durationMs, failure: { reason: 'exit', message, report: message } }
}
