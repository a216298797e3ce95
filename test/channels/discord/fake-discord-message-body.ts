// The body of a bot's message, validated as Discord does.

import type { APIAttachment, APIMessage, APIMessageTopLevelComponent } from 'discord.js'
import { ApiError, invalidForm, refusals } from './fake-discord-errors.js'
import type { FakeChannel } from './fake-discord-records.js'
import type { Settings } from './fake-discord-settings.js'
import type { AllowedMentions, World } from './fake-discord-world.js'

export interface Upload {
  /** The n of `files[n]`. */
  index: string
  name: string
  type: string
  content: Uint8Array
}

export interface MessageBody {
  content?: string | null
  nonce?: string | number
  enforce_nonce?: boolean
  flags?: number
  embeds?: APIMessage['embeds']
  components?: APIMessageTopLevelComponent[] | null
  allowed_mentions?: AllowedMentions
  message_reference?: { message_id?: string; channel_id?: string; fail_if_not_exists?: boolean }
  attachments?: { id: string | number; filename?: string }[]
}

const LONGEST_CONTENT = 2_000
const LONGEST_NONCE = 25
const MOST_FILES = 10
const TYPES: Record<string, string> = {
  txt: 'text/plain; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
  json: 'application/json; charset=utf-8',
  png: 'image/png',
  pdf: 'application/pdf',
}

/** The fields a body sets; absent ones stay unchanged in an edit. */
export function readContent(body: MessageBody): { content?: string } {
  if (body.content === undefined) return {}
  const content = (body.content ?? '').trim()
  // Counted in code points: the API is written in Python.
  if (Array.from(content).length > LONGEST_CONTENT) {
    throw invalidForm('content', 'BASE_TYPE_MAX_LENGTH', `Must be ${LONGEST_CONTENT} or fewer in length.`)
  }
  return { content }
}

export function checkBody(body: MessageBody): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw refusals.invalidJson()
  if (String(body.nonce ?? '').length > LONGEST_NONCE) {
    throw invalidForm('nonce', 'NONCE_TYPE_TOO_LONG', `Must be ${LONGEST_NONCE} or fewer in length.`)
  }
  if (body.allowed_mentions?.parse?.includes('users') && body.allowed_mentions.users?.length) {
    throw invalidForm('allowed_mentions', 'MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE', 'parse and users are exclusive')
  }
  checkComponents(body.components ?? [])
}

export function isEmpty(message: Pick<APIMessage, 'content' | 'embeds' | 'attachments' | 'components'>): boolean {
  const { content, embeds, attachments, components } = message
  return content === '' && embeds.length === 0 && attachments.length === 0 && (components ?? []).length === 0
}

export function storeUploads(
  world: World,
  channel: FakeChannel,
  body: MessageBody,
  uploads: Upload[],
  settings: Settings,
  baseUrl: string,
): APIAttachment[] {
  if (uploads.length > MOST_FILES) throw refusals.tooManyAttachments()
  if (uploads.some(({ content }) => content.length > settings.uploadMaxBytes)) throw refusals.tooLarge()
  return uploads.map(({ index, name, type, content }) => {
    const filename = body.attachments?.find(({ id }) => String(id) === index)?.filename ?? name
    return world.store(channel, filename, fileType(filename, type), content, baseUrl)
  })
}

export function fileType(name: string, given: string): string {
  const isVague = given === '' || given === 'application/octet-stream'
  return isVague ? (TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream') : given
}

function checkComponents(rows: APIMessageTopLevelComponent[]): void {
  if (rows.length > 5) throw invalidForm('components', 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 5 in length.')
  const seen = new Set<string>()
  for (const [index, row] of rows.entries()) {
    const items = 'components' in row ? (row.components as { custom_id?: string; label?: string }[]) : []
    const path = `components.${index}.components`
    if (items.length === 0 || items.length > 5) {
      throw invalidForm(path, 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 5 in length.')
    }
    for (const { custom_id: id, label = '' } of items) {
      if (id !== undefined && id.length > 100) {
        throw invalidForm(path, 'BASE_TYPE_MAX_LENGTH', 'Must be 100 or fewer in length.')
      }
      if (label.length > 80) throw invalidForm(path, 'BASE_TYPE_MAX_LENGTH', 'Must be 80 or fewer in length.')
      if (id !== undefined && seen.has(id)) {
        throw invalidForm(path, 'COMPONENT_CUSTOM_ID_DUPLICATED', 'Component custom id cannot be duplicated')
      }
      if (id !== undefined) seen.add(id)
    }
  }
}

/** Too many edits of old messages are a 429 with a code of its own. */
export function tooManyOldEdits(retryAfterMs: number): ApiError {
  const seconds = (retryAfterMs / 1000).toFixed(3)
  return new ApiError(
    429,
    30046,
    'Maximum number of edits to messages older than 1 hour reached. Try again later',
    { retry_after: Number(seconds), global: false },
    { 'Retry-After': seconds, 'X-RateLimit-Scope': 'user' },
  )
}
