import { EventQueue } from '../backends/engine/event-queue.js'
import type { AgentBackend, AgentResult, BackendAdapter, BackendEventResult, FailureReason } from '../backends/types.js'
import { messageOf } from '../errors.js'

/** What the runtime asks of a backend. */
export interface TurnBackend {
  name(): string
  run: AgentBackend['run']
}

/** Such an adapter tells the reason in its text alone. */
const SESSION_COMPLAINT =
  /\b(?:session|conversation)\b[^.\n]*\b(?:corrupt\w*|invalid|not found|unknown|expired|does not exist|could not be (?:read|loaded))\b|\bno (?:session|conversation) found\b/i

const CANNOT_ASK =
  'This agent cannot ask before it uses a tool, so it was not started. Allow it all, or choose another.'
const CANNOT_HOLD_BACK = 'This agent cannot be kept from what an untrusted project holds, so it was not started.'

/**
 * Gives an adapter that has only `execute` the method that everything is built on.
 *
 * Such an adapter cannot be stopped: after a cancel its turn is over for us, and what it still says is not heard.
 */
export function liftAdapter(adapter: BackendAdapter | TurnBackend, now: () => number = Date.now): TurnBackend {
  if ('run' in adapter) return adapter
  return {
    name: () => adapter.name(),
    async *run({ prompt, systemPrompt = '', sessionId, isUntrusted, approve }, signal) {
      const startedAt = now()
      const queue = new EventQueue(now)
      let isOver = false
      const complete = (result: Omit<AgentResult, 'durationMs'>): void => {
        if (isOver) return
        isOver = true
        queue.complete({ ...result, durationMs: now() - startedAt })
      }
      const onStream = async (content: string): Promise<void> => {
        if (!isOver) queue.push({ type: 'output', content, stream: 'stdout' })
      }
      const cancel = (): void => complete(failed('cancelled', 'Cancelled'))
      signal.addEventListener('abort', cancel)
      if (signal.aborted) cancel()
      else if (isUntrusted) complete(failed('refused', CANNOT_HOLD_BACK))
      else if (approve) complete(failed('refused', CANNOT_ASK))
      else {
        const execute = async (): Promise<BackendEventResult> =>
          adapter.execute(prompt, systemPrompt, sessionId, onStream)
        execute().then(
          (outcome) => complete(toResult(outcome, sessionId)),
          (error: unknown) => complete(failed('exit', messageOf(error))),
        )
      }
      try {
        yield* queue
      } finally {
        signal.removeEventListener('abort', cancel)
      }
    },
  }
}

function toResult(outcome: BackendEventResult, resumed: string | undefined): Omit<AgentResult, 'durationMs'> {
  const { isError, responseText = '', sessionId } = outcome
  const session = sessionId === undefined ? {} : { sessionId }
  if (!isError) return { isError, finalOutput: responseText, ...session }
  const reason = resumed !== undefined && SESSION_COMPLAINT.test(responseText) ? 'session_lost' : 'exit'
  return { ...failed(reason, responseText || 'The agent failed.'), ...session }
}

function failed(reason: FailureReason, message: string): Omit<AgentResult, 'durationMs'> {
  return { isError: true, failure: { reason, message, report: message } }
}
