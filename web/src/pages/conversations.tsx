import { ConversationList } from '../conversations/conversation-list.js'
import { ConversationPane } from '../conversations/conversation-pane.js'
import { NewConversation } from '../conversations/new-conversation.js'
import type { PageProps } from '../frame/pages.js'
import { useMe } from '../me.js'
import { Icon } from '../parts/icon.js'
import { Page } from '../parts/page.js'
import { hrefOf } from '../router.js'

export function ConversationsPage({ route }: PageProps) {
  const [id] = route.parts
  const mayRun = useMe().scopes.includes('run')
  if (id !== undefined) return <ConversationPane key={id} id={id} />
  return (
    <Page
      title="Conversations"
      actions={
        mayRun && (
          <a class="button primary" href={hrefOf('new')}>
            <Icon name="plus" />
            New conversation
          </a>
        )
      }
    >
      <ConversationList />
    </Page>
  )
}

/** `?project=` selects a project. */
export function NewConversationPage({ route: { query } }: PageProps) {
  const project = query.get('project') ?? undefined
  return (
    <div class="hero">
      <h1>What are we working on?</h1>
      <NewConversation key={project} inProject={project} />
    </div>
  )
}
