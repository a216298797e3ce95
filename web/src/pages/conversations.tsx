import { ConversationList } from '../conversations/conversation-list.js'
import { ConversationPane } from '../conversations/conversation-pane.js'
import { NewConversation } from '../conversations/new-conversation.js'
import type { PageProps } from '../app.js'
import { useMe } from '../me.js'
import { EmptyState } from '../parts/empty-state.js'
import { hrefOf } from '../router.js'

/** In place of an id. */
const NEW = 'new'

export function ConversationsPage({ route }: PageProps) {
  const [id] = route.parts
  const mayRun = useMe().scopes.includes('run')
  return (
    <div class={`chat ${id === undefined ? '' : 'is-open'}`}>
      <aside class="chat-list" aria-label="All conversations">
        <div class="page-head">
          <h1>Conversations</h1>
          {mayRun && (
            <a class="button" href={hrefOf('conversations', NEW)}>
              New
              <span class="hidden"> conversation</span>
            </a>
          )}
        </div>
        <ConversationList openId={id} />
      </aside>
      {id === NEW && mayRun ? (
        <NewConversation />
      ) : id === undefined || id === NEW ? (
        <section class="chat-pane chat-none" aria-label="Conversation">
          <EmptyState title={mayRun ? 'Choose a conversation, or begin one.' : 'Choose a conversation.'} />
        </section>
      ) : (
        <ConversationPane key={id} id={id} />
      )}
    </div>
  )
}
