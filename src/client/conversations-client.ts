import type {
  AnsweredCommand,
  Changes,
  CommandList,
  Continued,
  ConversationChanges,
  ConversationDetails,
  ConversationFilter,
  ConversationPage,
  Done,
  NewConversation,
  SlashCommand,
  TakenMessage,
  TranscriptPage,
  TranscriptQuery,
  UsedSession,
  UploadedFile,
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

  /** For `files` of a message, within an hour. Its type is that of the blob. */
  upload(id: string, name: string, file: Blob): Promise<UploadedFile> {
    return this.connection.json('POST', `${pathOf(id)}/files${queryOf({ name })}`, { file })
  }

  /** A file that was uploaded for a message. */
  async file(id: string, fileId: string): Promise<Blob> {
    return (await this.connection.open('GET', `${pathOf(id)}/files/${encodeURIComponent(fileId)}`)).blob()
  }

  /** The slash commands that a message can be. */
  async commands(id: string): Promise<SlashCommand[]> {
    return (await this.connection.json<CommandList>('GET', `${pathOf(id)}/commands`)).commands
  }

  /** The files that the agent has changed in it. */
  changes(id: string): Promise<Changes> {
    return this.connection.json('GET', `${pathOf(id)}/changes`)
  }

  create(conversation: NewConversation = {}): Promise<ConversationDetails> {
    return this.connection.json('POST', '/conversations', { body: conversation })
  }

  /**
   * `files` are the ids of uploaded ones. Settles when the gateway has stored it. Resending under the same key does not create a second message. A slash command
   * is answered instead, each time.
   */
  send(
    id: string,
    text: string,
    { idempotencyKey, files = [] }: { idempotencyKey?: string; files?: string[] } = {},
  ): Promise<TakenMessage | AnsweredCommand> {
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    return this.connection.json('POST', `${pathOf(id)}/messages`, { body: { text, files }, headers })
  }

  /** Absent choices stay; null clears one. */
  update(id: string, changes: ConversationChanges): Promise<ConversationDetails> {
    return this.connection.json('PATCH', pathOf(id), { body: changes })
  }

  /** With everything that was said and done in it. Refused as a `conflict` while something runs or waits. */
  remove(id: string): Promise<void> {
    return this.connection.done('DELETE', pathOf(id))
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
