// Which messages may share a turn: docs/queue-states.md.

import type { Message } from '../store/inbox.js'

type Spoken = Pick<Message, 'kind' | 'author' | 'options'>

/** Those from the first on that can be answered together with one that is taken up, in `room` characters. */
export function joinable(carrier: Message, waiting: Message[], room: number): Message[] {
  let left = room
  const end = waiting.findIndex((message) => {
    left -= message.text.length
    // One that was taken up before may have others that end with it.
    return left < 0 || message.retriedAfter !== undefined || !areOfOneKind(carrier, message)
  })
  return end === -1 ? waiting : waiting.slice(0, end)
}

/** Whether one turn could be of both: people said them, nothing else was asked for either, and one answer reaches both. */
export function areOfOneKind(one: Spoken, other: Spoken): boolean {
  const isAnsweredToOne = one.options?.variables !== undefined || other.options?.variables !== undefined
  return isPlain(one) && isPlain(other) && (!isAnsweredToOne || one.author === other.author)
}

function isPlain({ kind, options = {} }: Spoken): boolean {
  return kind === 'message' && Object.keys(options).every((name) => name === 'variables')
}
