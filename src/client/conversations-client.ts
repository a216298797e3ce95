import type {
  Continued,
  ConversationChanges,
  ConversationDetails,
  ConversationFilter,
  ConversationPage,
  Done,
  NewConversation,
  TakenMessage,
  TranscriptPage,
  TranscriptQuery,
  UsedSession,
  UsedSessionList,
} from '../service/api/conversations.js'
import type { Connection } from './connection.js'
import { queryOf } from './query.js'

/** Conversations of all channels. */
export class ConversationsClient {
  constructor(private readonly connection: Connection) {}

  /** Latest first; `q` searches their text. */
  list(filter: ConversationFilter = {}): Promise<ConversationPage> {
    return this.connection.json('GET', `/conversations${queryOf(filter)}`)
  }

  get(id: string): Promise<ConversationDetails> {
    return this.connection.json('GET', pathOf(id))
  }

  /** The transcript, latest first. */
  messages(id: string, page: TranscriptQuery = {}): Promise<TranscriptPage> {
    return this.connection.json('GET', `${pathOf(id)}/messages${queryOf(page)}`)
  }

  create(conversation: NewConversation = {}): Promise<ConversationDetails> {
    return this.connection.json('POST', '/conversations', { body: conversation })
  }

  /** Settles when the gateway has stored it. Resending under the same key does not create a second message. */
  send(id: string, text: string, { idempotencyKey }: { idempotencyKey?: string } = {}): Promise<TakenMessage> {
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    return this.connection.json('POST', `${pathOf(id)}/messages`, { body: { text }, headers })
  }

  /** Absent choices stay; null clears one. */
  update(id: string, changes: ConversationChanges): Promise<ConversationDetails> {
    return this.connection.json('PATCH', pathOf(id), { body: changes })
  }

  /** With `messageId`, only that message: later ones continue. */
  stop(id: string, { messageId }: { messageId?: string } = {}): Promise<Done> {
    const given = messageId === undefined ? {} : { body: { message_id: messageId } }
    return this.connection.json('POST', `${pathOf(id)}/stop`, given)
  }

  /** An agent that has paused goes on; with `messageId`, only if that message is where it paused. */
  continue(id: string, { messageId }: { messageId?: string } = {}): Promise<Continued> {
    const given = messageId === undefined ? {} : { body: { message_id: messageId } }
    return this.connection.json('POST', `${pathOf(id)}/continue`, given)
  }

  newSession(id: string): Promise<Done> {
    return this.connection.json('POST', `${pathOf(id)}/new-session`)
  }

  /** Sessions that the conversation could resume, most recently used first. */
  async sessions(id: string): Promise<UsedSession[]> {
    return (await this.connection.json<UsedSessionList>('GET', `${pathOf(id)}/sessions`)).sessions
  }

  /** The next message continues an earlier session. */
  resume(id: string, sessionId: string): Promise<Done> {
    return this.connection.json('POST', `${pathOf(id)}/resume`, { body: { session_id: sessionId } })
  }

  /** Retries a failed message. */
  retry(id: string, messageId: string): Promise<Done> {
    return this.connection.json('POST', `${pathOf(id)}/retry`, { body: { message_id: messageId } })
  }
}

function pathOf(id: string): string {
  return `/conversations/${encodeURIComponent(id)}`
}
