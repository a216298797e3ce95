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

  /** Uploads a file for `files` of a message, to be sent within an hour. Its type is that of the blob. */
  upload(id: string, name: string, file: Blob): Promise<UploadedFile> {
    return this.connection.json('POST', `${pathOf(id)}/files${queryOf({ name })}`, { file })
  }

  /** A file that was uploaded for a message. */
  async file(id: string, fileId: string): Promise<Blob> {
    return (await this.connection.open('GET', `${pathOf(id)}/files/${encodeURIComponent(fileId)}`)).blob()
  }

  /** The slash commands. */
  async commands(id: string): Promise<SlashCommand[]> {
    return (await this.connection.json<CommandList>('GET', `${pathOf(id)}/commands`)).commands
  }

  /** The files that the agent changed in it. */
  changes(id: string): Promise<Changes> {
    return this.connection.json('GET', `${pathOf(id)}/changes`)
  }

  create(conversation: NewConversation = {}): Promise<ConversationDetails> {
    return this.connection.json('POST', '/conversations', { body: conversation })
  }

  /**
   * Settles when the gateway has stored the message, or answered the slash command. `files` are ids of uploaded files.
   * Sending a message again with the same key does not create a second one; a slash command runs each time.
   */
  send(
    id: string,
    text: string,
    { idempotencyKey, files = [] }: { idempotencyKey?: string; files?: string[] } = {},
  ): Promise<TakenMessage | AnsweredCommand> {
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    return this.connection.json('POST', `${pathOf(id)}/messages`, { body: { text, files }, headers })
  }

  /** Omitted choices stay; null resets one. */
  update(id: string, changes: ConversationChanges): Promise<ConversationDetails> {
    return this.connection.json('PATCH', pathOf(id), { body: changes })
  }

  /** Deletes it with its messages, runs and files. Rejects with `conflict` while something runs or waits in it. */
  remove(id: string): Promise<void> {
    return this.connection.done('DELETE', pathOf(id))
  }

  /** With `messageId`, stops only that message: later ones continue. */
  stop(id: string, { messageId }: { messageId?: string } = {}): Promise<Done> {
    const given = messageId === undefined ? {} : { body: { message_id: messageId } }
    return this.connection.json('POST', `${pathOf(id)}/stop`, given)
  }

  /** Continues a paused agent; with `messageId`, only if it paused at that message. */
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

  /** Makes the next message continue an earlier session. */
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
