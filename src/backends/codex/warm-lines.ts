// Converts events of `codex app-server` to lines of `codex exec --json`, which the one-shot translation understands.

import { isObject, type JsonObject } from '../engine/jsonl.js'

/** About a thread or, with a `turnId` or a `turn`, about one of its turns. */
export interface Notification {
  threadId?: string
  turnId?: string
  turn?: { id: string; status: 'inProgress' | 'completed' | 'failed' | 'interrupted'; error?: CodexError | null }
  item?: Item
  itemId?: string
  delta?: string
  tokenUsage?: { total: JsonObject }
  error?: CodexError
  willRetry?: boolean
  message?: string
}

interface CodexError {
  message: string
  additionalDetails?: string | null
  /** A word, or an object whose only value may hold the model server's status. */
  codexErrorInfo?: unknown
}

export interface Item extends JsonObject {
  id: string
  type: string
  status?: string
}

/** A line that is merely a sign of life. */
const SIGN_OF_LIFE = { type: 'turn.started' }

export function lineOf(method: string, params: Notification, totalBefore: JsonObject | undefined): JsonObject {
  const { item, turn, error } = params
  switch (method) {
    case 'item/started':
    case 'item/completed':
      return item && !IGNORED_ITEMS.has(item.type)
        ? { type: method.replace('/', '.'), item: execItem(item) }
        : SIGN_OF_LIFE
    case 'item/agentMessage/delta':
      return { type: 'item.delta', item_id: params.itemId, text: params.delta }
    case 'thread/tokenUsage/updated':
      return {
        type: 'turn.usage',
        usage: toSnakeCase(params.tokenUsage?.total ?? {}),
        ...(totalBefore && { before: toSnakeCase(totalBefore) }),
      }
    case 'error':
      // The final error comes again with `turn/completed`.
      return error && params.willRetry ? { type: 'error', message: sentenceOf(error) } : SIGN_OF_LIFE
    case 'turn/completed':
      if (turn?.status === 'completed') return { type: 'turn.completed' }
      return { type: 'turn.failed', error: failureOf(turn?.error) }
    default:
      return SIGN_OF_LIFE
  }
}

function sentenceOf({ message, additionalDetails }: CodexError): string {
  return additionalDetails ? `${message} (${additionalDetails})` : message
}

function failureOf(error: CodexError | null | undefined): JsonObject {
  if (!error) return { message: 'The turn was interrupted.' }
  const { codexErrorInfo: info } = error
  const [about] = isObject(info) ? Object.values(info) : []
  return { message: error.message, status: isObject(about) ? about['httpStatusCode'] : undefined }
}

/** Neither tools nor text for the user. */
const IGNORED_ITEMS = new Set([
  'userMessage',
  'hookPrompt',
  'plan',
  'contextCompaction',
  'enteredReviewMode',
  'exitedReviewMode',
])

/** Fields that `codex exec --json` does not have. */
const DROPPED_FIELDS = new Set([
  ...[
    'startedAtMs',
    'completedAtMs',
    'durationMs',
    'pluginId',
    'scriptPath',
    'processId',
    'source',
    'commandActions',
    'cwd',
  ],
  ...['appContext', 'mcpAppResourceUri', 'mcpAppUi', 'readOnlyHint', 'summary', 'content'],
])

function execItem({ type, status, changes, ...rest }: Item): JsonObject {
  const kept = Object.entries(rest).filter(([name, value]) => value !== null && !DROPPED_FIELDS.has(name))
  return {
    ...toSnakeCase(Object.fromEntries(kept)),
    type: snakeCase(type),
    ...(typeof status === 'string' && { status: status === 'declined' ? 'failed' : snakeCase(status) }),
    ...(Array.isArray(changes) && { changes: changes.map(execChange) }),
    ...(type === 'reasoning' && Array.isArray(rest['summary']) && { text: rest['summary'].join('\n\n') }),
  }
}

function execChange({ path, kind }: { path: string; kind: { type: string } }): JsonObject {
  return { path, kind: kind.type }
}

function toSnakeCase(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [snakeCase(name), value]))
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
