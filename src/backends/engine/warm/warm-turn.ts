// A turn in a warm process. If the process is lost, a one-shot process continues the turn.

import type { AgentCli, WarmAgent } from '../agent-cli.js'
import { interruptedPrompt } from '../interrupted.js'
import { joinedPrompt } from '../joined-prompt.js'
import { OneShot } from '../one-shot.js'
import { type Lifetime, takeTurn } from '../turn.js'
import type { AgentEvent, AgentRequest } from '../../types.js'
import { AttemptStream } from './attempt-stream.js'
import { WarmLifetime } from './warm-lifetime.js'

const LOST = 'The process of the agent ended in the middle of the turn. It goes on in another one.'
const DECLINED = 'This turn cannot be had in the process of the agent that stays. It is done in another one.'
const NOT_READY = 'The process of the agent did not begin to listen. The turn is done in another one.'

interface Attempt {
  lifetime: Lifetime
  /** Sent before it. */
  notice?: string
  /** Whether its end calls for the next attempt. */
  isLost(end: AgentEvent): boolean
  next?: () => Attempt
}

export async function* takeWarmTurn(
  agent: AgentCli,
  options: WarmAgent,
  request: AgentRequest,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, undefined> {
  const { config, dependencies } = agent
  const { now, elapsed } = dependencies
  const begunAt = elapsed()
  const stream = new AttemptStream(now())
  const warm = new WarmLifetime(agent, options, request)
  let attempt: Attempt | undefined = {
    lifetime: warm,
    isLost: () => warm.isLost,
    next: () => afterLoss(agent, request, warm),
  }
  try {
    while (attempt) {
      if (attempt.notice !== undefined) yield* stream.nextAttempt(attempt.notice, now())
      const take = { request, signal, spentMs: elapsed() - begunAt, config, dependencies }
      let isLost = false
      for await (const event of takeTurn(take, attempt.lifetime)) {
        isLost ||= (event.type === 'error' || event.type === 'complete') && attempt.isLost(event)
        if (isLost) continue
        // Not by `yield*`, which would dominate the cost of an answer in many pieces.
        for (const passed of stream.pass(event)) {
          // A consumer that learns of a new session may send it the next prompt at once.
          if (passed.type === 'started' && passed.sessionId) await warm.enterSession(passed.sessionId, signal)
          yield passed
        }
      }
      if (attempt.lifetime === warm) warm.recordOutcome()
      attempt = isLost ? attempt.next?.() : undefined
      if (attempt) await warm.leavePool(signal).catch(() => {})
    }
  } finally {
    warm.leaveSession()
  }
}

/** Continues the turn in a one-shot process, from where the lost one stopped. */
function afterLoss(agent: AgentCli, request: AgentRequest, warm: WarmLifetime): Attempt {
  const { sessionId, steered, run } = warm
  const whole = joinedPrompt(request.prompt, steered)
  const prompt = run?.wasPrompted && sessionId ? interruptedPrompt('Your process ended', 'its end', whole) : whole
  const { sessionId: _asked, ...rest } = request
  const fresh = { ...rest, prompt }
  // The process may have ended before it stored a session that began in this turn.
  const isOfThisTurn = sessionId !== request.sessionId
  return {
    lifetime: new OneShot(agent, { ...fresh, ...(sessionId && { sessionId }) }),
    notice: run?.isDeclined ? DECLINED : warm.isUnready ? NOT_READY : LOST,
    isLost: (end) => isOfThisTurn && saysSessionLost(end),
    next: () => ({ lifetime: new OneShot(agent, fresh), isLost: () => false }),
  }
}

function saysSessionLost(event: AgentEvent): boolean {
  if (event.type === 'complete') return event.result.failure?.reason === 'session_lost'
  return event.type === 'error' && event.reason === 'session_lost'
}
