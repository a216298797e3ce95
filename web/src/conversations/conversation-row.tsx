import { agentName } from '../agent-names.js'
import { placeOf, stateOf, STATE_WORDS, titleOf } from '../conversation.js'
import { Icon } from '../parts/icon.js'
import { Time } from '../parts/numbers.js'
import { hrefOf } from '../router.js'
import { MarkedWords } from './marked-words.js'
import type { Listed } from './use-conversations.js'

/** The height in styles/conversation.css. */
export const ROW_PX = 60

export function ConversationRow({ row, query = '' }: { row: Listed; query?: string }) {
  const { id, match, updated_at: updatedAt, run, is_pinned: isPinned } = row
  const state = stateOf(row)
  return (
    <a class="chat-row" href={hrefOf('conversations', id)}>
      <span class={`mark ${state}`} />
      <span class="chat-row-words">
        <span class="chat-row-title">
          {isPinned && <Icon name="pin" />}
          {titleOf(row)}
        </span>
        <span class="chat-row-text">
          {match ? (
            <>
              {match.author ?? 'Aetheel'}: <MarkedWords text={match.text} query={query} />
            </>
          ) : (
            placeOf(row)
          )}
        </span>
      </span>
      <span class="chat-row-end">
        {state !== 'idle' && <span class={TONES[state]}>{STATE_WORDS[state]}</span>}
        <span class="muted">
          {run && state === 'running' && `${agentName(run.provider)} · `}
          <Time at={match?.at ?? updatedAt} />
        </span>
      </span>
    </a>
  )
}

const TONES = { asked: 'warn', running: undefined, waiting: 'muted', failed: 'bad' } as const
