import { expect, it } from 'vitest'
import type { Conversation } from '../../src/client/aetheel-client.js'
import { askedIn } from '../../web/src/use-questions.js'

it('notices a question that replaces another, and ignores conversations without one', () => {
  const first = askedIn([conversationOf('a', 1, 4), conversationOf('b', 0, 7)])
  const said = askedIn([conversationOf('b', 0, 8), conversationOf('a', 1, 4)])
  const next = askedIn([conversationOf('a', 1, 5), conversationOf('b', 0, 8)])
  expect([said === first, next === first]).toEqual([true, false])
})

function conversationOf(id: string, asked: number, number: number): Pick<Conversation, 'id' | 'asked' | 'last_number'> {
  return { id, asked, last_number: number }
}
