import { type APIAttachment, type APIMessage, MessageType } from 'discord.js'
import { oneLine } from '../../core/one-line.js'
import type { IncomingFile } from '../types.js'
import { isThread, type ChannelFacts } from './destinations.js'

/** The bot's identity within a server. */
export interface BotIdentity {
  id: string
  /** The roles Discord created for the bot; people mention them instead of the bot. */
  roleIds: ReadonlySet<string>
}

export interface Addressed {
  /** Without the mention of the bot. */
  text: string
  /** The person's own words, without the quoted message. */
  title: string
  isReplyToBot: boolean
}

const MAX_QUOTE_CHARACTERS = 2_000

/** Whether a person wrote it: not a bot, a webhook or Discord itself. */
export function isFromPerson(message: Pick<APIMessage, 'author' | 'webhook_id' | 'type'>): boolean {
  const isSaid = message.type === MessageType.Default || message.type === MessageType.Reply
  return isSaid && message.author.bot !== true && message.webhook_id === undefined
}

/** What the message says to the bot; undefined if it is for others. */
export function readMessage(message: APIMessage, bot: BotIdentity, place: ChannelFacts): Addressed | undefined {
  const isReplyToBot = message.referenced_message?.author.id === bot.id
  const isMentioned =
    message.mentions.some(({ id }) => id === bot.id) || message.mention_roles.some((id) => bot.roleIds.has(id))
  const isOurThread = isThread(place.type) && place.ownerId === bot.id
  const isDirect = place.guildId === undefined
  if (!isReplyToBot && !isMentioned && !isOurThread && !isDirect) return undefined
  return { text: readText(message, bot), title: withNames(message, bot), isReplyToBot }
}

/** Contract: another person's message that is replied to comes first, as a quotation; a command stays a command. */
function readText(message: APIMessage, bot: BotIdentity): string {
  const text = withNames(message, bot)
  const quoted = message.referenced_message
  if (!quoted || quoted.author.id === bot.id || quoted.content === '' || text.startsWith('/')) return text
  const lines = cut(withNames(quoted, bot), MAX_QUOTE_CHARACTERS).split('\n')
  return [`@${quoted.author.username} wrote:`, ...lines.map((line) => `> ${line}`), '', text].join('\n')
}

/** Removes mentions of the bot and replaces those of others by their names. */
function withNames({ content, mentions }: APIMessage, bot: BotIdentity): string {
  const names = new Map(mentions.map(({ id, username }) => [id, username]))
  return content
    .replace(/[ \t]*<@(&|!?)(\d+)>/g, (mention, kind: string, id: string) => {
      if (kind === '&') return bot.roleIds.has(id) ? '' : mention
      if (id === bot.id) return ''
      const name = names.get(id)
      return name === undefined ? mention : mention.replace(/<.*>/, () => `@${name}`)
    })
    .trim()
}

export function readFiles(attachments: APIAttachment[]): IncomingFile[] {
  return attachments.map(({ filename, content_type, size, url }) => ({
    name: filename,
    type: content_type,
    bytes: size,
    read: (signal) => download(url, size, signal),
  }))
}

async function download(url: string, bytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const response = await fetch(url, { signal })
  if (!response.ok || !response.body) throw new Error(`Discord answered with status ${response.status}`)
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > bytes) break
  }
  return Buffer.concat(chunks).subarray(0, bytes + 1)
}

/** The name for the thread that a message opens. */
export function threadName(text: string): string {
  return oneLine(text, 80) || 'Conversation'
}

/** Does not split a surrogate pair. */
function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, '')}…`
}
