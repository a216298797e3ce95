// A turn that starts over: when a session is lost, what the agent is told next, and how several attempts stay one
// stream of events.
//
// A session is lost if the turn should continue it, but it does not exist here or is damaged. The reason is always
// `session_lost`, however it is detected: an id that cannot be one of the agent's, a session other than the one
// requested, a server that cannot read it (all by `lostSession`), or the agent's own message (by the `failureSigns` of
// its backend).
//
// Two places act on it, since neither knows enough for both cases. `takeWarmTurn` starts over if the session began in
// this turn, in a process that ended before storing it: nothing else knows that session, or what the agent was told.
// `AgentRuntime` starts over if an earlier turn began it: only the runtime has it stored and can tell a person.

import type { AgentEvent, FailureReason, Steer } from '../types.js'
import type { Failed } from './failures.js'

export function lostSession(message: string): Failed {
  return { reason: 'session_lost', message }
}

export function isSessionLost(failure: { reason: FailureReason } | undefined): boolean {
  return failure?.reason === 'session_lost'
}

/** Whether this end of an attempt says that the session is lost. */
export function saysSessionLost(end: AgentEvent): boolean {
  if (end.type === 'complete') return isSessionLost(end.result.failure)
  return end.type === 'error' && isSessionLost(end)
}

/** Sent between two attempts: why there is another. */
export type AttemptNotice = Pick<Extract<AgentEvent, { type: 'notice' }>, 'content' | 'isTechnical'>

/**
 * Merges the attempts at one turn into a single stream: `started` once and first, one `complete`, and a notice between
 * attempts.
 */
export class AttemptStream {
  /** The current attempt has ended in a way that calls for another. */
  isLost = false
  #hasBegun = false
  /** Whether the next part needs no gap, as between the texts of one attempt. */
  #endsWithNewline = true
  #isNewPart = false
  /** Notices from before the first other event, which may turn out to be `started`. */
  #held: AgentEvent[] = []
  /** Of the latest event: timestamps never decrease. */
  #timestamp = 0

  /** `isLost` judges an end, which is passed on only if no other attempt follows. */
  pass(event: AgentEvent, isLost: (end: AgentEvent) => boolean): AgentEvent[] {
    this.#timestamp = event.timestamp
    this.isLost ||= (event.type === 'error' || event.type === 'complete') && isLost(event)
    if (this.isLost) return []
    if (event.type === 'notice' && !this.#hasBegun) {
      this.#held.push(event)
      return []
    }
    const isFirst = !this.#hasBegun
    this.#hasBegun = true
    const held = this.#release()
    if (event.type === 'started') return isFirst ? [event, ...held] : held
    return [...held, event.type === 'output' ? this.#separate(event) : event]
  }

  nextAttempt(notice: AttemptNotice | undefined): AgentEvent[] {
    this.isLost = false
    this.#isNewPart = true
    if (notice) this.#held.push({ type: 'notice', ...notice, timestamp: this.#timestamp })
    return this.#hasBegun ? this.#release() : []
  }

  #release(): AgentEvent[] {
    return this.#held.splice(0).map((notice) => ({ ...notice, timestamp: this.#timestamp }))
  }

  #separate(event: Extract<AgentEvent, { type: 'output' }>): AgentEvent {
    const needsGap = this.#isNewPart && !this.#endsWithNewline
    this.#isNewPart = false
    this.#endsWithNewline = event.content.endsWith('\n')
    return needsGap ? { ...event, content: `\n\n${event.content}` } : event
  }
}

/** The prompt for an agent that resumes a message it may already have worked on. `what` begins a sentence and says what
 *  happened; `cause` names it. */
export function interruptedPrompt(what: string, cause: string, prompt: string): string {
  return `[${what} while you worked on this message, and your answer was not delivered. Parts of the work may be done \
already: look before you repeat them. Nobody refused or cancelled anything; a tool that seems to have been was cut off \
by ${cause}. The message was:]

${prompt}`
}

/** The prompt for an agent that continues after a pause, but does not remember the turn that paused. `said` is what it
 *  had said until then. */
export function resumedPrompt(prompt: string, said: string): string {
  const before = `[You worked on this message until you had used up the steps of one turn, and do not remember it. Parts of \
the work are done already: look before you repeat them, and go on from there. The message was:]

${prompt}`
  return said.trim() === '' ? before : `${before}\n\n[What you had said by then:]\n\n${said}`
}

/** The prompt for an agent that answers several messages of a conversation at once. */
export function joinedPrompt(prompt: string, others: string[]): string {
  return [prompt, ...others.map((text) => `[Another message of this conversation:]\n\n${text}`)].join('\n\n')
}

/** Records the text that the agent takes. If the turn starts over, it becomes part of the prompt. */
export function recordTaken(steer: Steer, taken: string[]): Steer {
  return async (text) => {
    const isTaken = await steer(text)
    if (isTaken) taken.push(text)
    return isTaken
  }
}
