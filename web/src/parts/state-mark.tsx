import type { Conversation } from '../../../src/client/aetheel-client.js'
import { stateOf, STATE_WORDS } from '../conversation.js'

/** A conversation's state as a dot; nothing if it is idle. */
export function StateMark({ conversation }: { conversation: Conversation }) {
  const state = stateOf(conversation)
  if (state === 'idle') return null
  return (
    <span class={`mark ${state}`} title={STATE_WORDS[state]}>
      <span class="hidden">{STATE_WORDS[state]}</span>
    </span>
  )
}
