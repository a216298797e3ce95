// Which messages may share a turn: docs/queue-states.md.

import { isAgentCommand } from './agent-command.js'
import type { Message } from '../store/inbox.js'

type Mergeable = Pick<Message, 'kind' | 'author' | 'options' | 'text'>

/** The leading waiting messages that can be answered together with the lead message, within `room` characters. */
export function mergeableWith(lead: Message, waiting: Message[], room: number): Message[] {
  let left = room
  const end = waiting.findIndex((message) => {
    left -= message.text.length
    // A retried message may have others merged into it.
    return left < 0 || message.retriedAfter !== undefined || !canShareTurn(lead, message)
  })
  return end === -1 ? waiting : waiting.slice(0, end)
}

/**
 * Whether one turn can answer both: people wrote them, neither has options or is an agent's command, and one reply
 * reaches both authors.
 */
export function canShareTurn(one: Mergeable, other: Mergeable): boolean {
  const isRepliedToAuthor = one.options?.variables !== undefined || other.options?.variables !== undefined
  return isPlain(one) && isPlain(other) && (!isRepliedToAuthor || one.author === other.author)
}

function isPlain({ kind, text, options = {} }: Mergeable): boolean {
  return kind === 'message' && !isAgentCommand(text) && Object.keys(options).every((name) => name === 'variables')
}
