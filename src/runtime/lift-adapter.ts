import { EventQueue } from '../backends/engine/event-queue.js'
import { failureOf } from '../backends/engine/failures.js'
import type { AgentBackend, AgentResult, BackendAdapter, BackendEventResult, FailureReason } from '../backends/types.js'
import { messageOf } from '../errors.js'

/** The part of a backend that the runtime needs. */
export interface TurnBackend {
  name(): string
  run: AgentBackend['run']
}

/** Adapters report the reason only in their text. */
const SESSION_COMPLAINT =
  /\b(?:session|conversation)\b[^.\n]*\b(?:corrupt\w*|invalid|not found|unknown|expired|does not exist|could not be (?:read|loaded))\b|\bno (?:session|conversation) found\b/i

const CANNOT_ASK =
  'This agent cannot ask before it uses a tool, so it was not started. Allow all tools, or choose another agent.'
const CANNOT_HOLD_BACK = 'This agent cannot ignore the settings of an untrusted project, so it was not started.'

/**
 * Adds `run` to an adapter that only has `execute`.
 *
 * Such an adapter cannot be stopped: a cancel ends its turn for us, and its later output is ignored.
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
  return { isError: true, failure: failureOf({ reason, message }) }
}
