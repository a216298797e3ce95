// Wording of command answers. Plain text, for any channel.

import type { QueueMode } from '../channels/types.js'
import { formatMoney } from '../core/money.js'
import { oneLine } from '../core/one-line.js'
import { duration, timeAhead } from '../runtime/time-words.js'
import type { Usage } from '../store/figures.js'
import type { WaitingMessage } from '../store/inbox.js'
import type { UsedSession } from '../store/runs.js'

/** Leaves room for the rest of a line in a list of choices. */
export const QUESTION_CHARACTERS = 55

const AUTHOR_CHARACTERS = 32
const SHORT_ID_CHARACTERS = 12

/** What happens to a message that arrives while the agent works. */
export const MODE_WORDS: Record<QueueMode, string> = {
  followup: 'each message waits for its own turn',
  collect: 'waiting messages share the next turn',
  interrupt: 'a new message stops the running turn and goes next',
  steer: 'a new message reaches the running agent at once if possible, otherwise it waits',
}

export function describeUsage({ turns, workedMs, tokens, costUsd, pricedTurns }: Usage): string {
  if (turns === 0) return 'no turns'
  const parts = [`${turns === 1 ? '1 turn' : `${turns} turns`}, ${duration(workedMs)} of work`]
  if (tokens) {
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = tokens
    const cache = `cache ${grouped(cacheReadTokens)} read and ${grouped(cacheWriteTokens)} written`
    parts.push(`${grouped(inputTokens)} tokens in, ${grouped(outputTokens)} out, ${cache}`)
  }
  if (costUsd !== undefined) {
    const cost = formatMoney(costUsd)
    parts.push(pricedTurns === turns ? cost : `${cost} for ${pricedTurns} of them`)
  }
  return parts.join('; ')
}

export function queueLine(
  position: number,
  { author, text, receivedAt, state, dueAt }: WaitingMessage,
  now: number,
): string {
  const from = `${oneLine(author, AUTHOR_CHARACTERS)}, ${duration(now - receivedAt)} ago`
  const waitMs = state === 'ready' ? dueAt - now : 0
  const work = state === 'active' ? ', running' : waitMs > 0 ? `, retry ${timeAhead(dueAt, now)}` : ''
  return `${position}. ${from}${work}: ${oneLine(text, QUESTION_CHARACTERS)}`
}

export function sessionLine(number: number, session: UsedSession, isCurrent: boolean, now: number): string {
  const { backend, sessionId, usedAt, question } = session
  const used = `${backend}, ${duration(now - usedAt)} ago: ${oneLine(question, QUESTION_CHARACTERS)}`
  return `${number}. ${used} (${sessionId.slice(0, SHORT_ID_CHARACTERS)}${isCurrent ? ', current' : ''})`
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
