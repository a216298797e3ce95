// A turn in a warm process: if that is lost, a process of its own goes on with the turn.

import type { AgentCli, WarmAgent } from '../agent-cli.js'
import { interruptedPrompt } from '../interrupted.js'
import { joinedPrompt } from '../joined-prompt.js'
import { OneShot } from '../one-shot.js'
import { type Lifetime, takeTurn } from '../take-turn.js'
import type { AgentEvent, AgentRequest } from '../../types.js'
import { OneStream } from './one-stream.js'
import { WarmLifetime } from './warm-lifetime.js'

const LOST = 'The process of the agent ended in the middle of the turn. It goes on in another one.'
const DECLINED = 'This turn cannot be had in the process of the agent that stays. It is done in another one.'
const NOT_READY = 'The process of the agent did not begin to listen. The turn is done in another one.'

interface Attempt {
  lifetime: Lifetime
  /** Told before it. */
  notice?: string
  /** Whether it ended so that the next one is to be made. */
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
  const stream = new OneStream(now())
  const warm = new WarmLifetime(agent, options, request)
  let attempt: Attempt | undefined = {
    lifetime: warm,
    isLost: () => warm.isLost,
    next: () => afterLoss(agent, request, warm),
  }
  try {
    while (attempt) {
      if (attempt.notice !== undefined) yield* stream.again(attempt.notice, now())
      const take = { request, signal, spentMs: elapsed() - begunAt, config, dependencies }
      let isLost = false
      for await (const event of takeTurn(take, attempt.lifetime)) {
        isLost ||= (event.type === 'error' || event.type === 'complete') && attempt.isLost(event)
        if (isLost) continue
        // Not by `yield*`, which costs more than all the rest for an answer in many pieces.
        for (const passed of stream.pass(event)) {
          // Whoever is told of a new session may send the next prompt to it at once.
          if (passed.type === 'started' && passed.sessionId) await warm.enter(passed.sessionId, signal)
          yield passed
        }
      }
      if (attempt.lifetime === warm) warm.noteOutcome()
      attempt = isLost ? attempt.next?.() : undefined
      if (attempt) await warm.leavePool(signal).catch(() => {})
    }
  } finally {
    warm.leave()
  }
}

/** The turn in a process of its own, where the lost one had come to. */
function afterLoss(agent: AgentCli, request: AgentRequest, warm: WarmLifetime): Attempt {
  const { sessionId, steered, run } = warm
  const whole = joinedPrompt(request.prompt, steered)
  const prompt = run?.wasAsked && sessionId ? interruptedPrompt('Your process ended', 'its end', whole) : whole
  const { sessionId: _asked, ...rest } = request
  const fresh = { ...rest, prompt }
  // It may have ended before it wrote down that there is such a session.
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
