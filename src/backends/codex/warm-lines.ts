// What `codex app-server` tells of a turn, in the words of `codex exec --json`, which the translation of one-shot knows.

import { isObject, type JsonObject } from '../engine/jsonl.js'

/** What is told of a thread; with a `turnId` or a `turn`, of one of its turns. */
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
  /** A word, or an object whose one value may have the status of the model server. */
  codexErrorInfo?: unknown
}

export interface Item extends JsonObject {
  id: string
  type: string
  status?: string
}

/** What `codex exec --json` says too, and is nothing but a sign of life. */
const ALIVE = { type: 'turn.started' }

/** As `codex exec --json` would tell it. */
export function lineOf(method: string, params: Notification, totalBefore: JsonObject | undefined): JsonObject {
  const { item, turn, error } = params
  switch (method) {
    case 'item/started':
    case 'item/completed':
      return item && !UNTOLD.has(item.type) ? { type: method.replace('/', '.'), item: toldItem(item) } : ALIVE
    case 'item/agentMessage/delta':
      return { type: 'item.delta', item_id: params.itemId, text: params.delta }
    case 'thread/tokenUsage/updated':
      return {
        type: 'turn.usage',
        usage: toSnakeCase(params.tokenUsage?.total ?? {}),
        ...(totalBefore && { before: toSnakeCase(totalBefore) }),
      }
    case 'error':
      // The last one is also why the turn fails.
      return error && params.willRetry ? { type: 'error', message: sentenceOf(error) } : ALIVE
    case 'turn/completed':
      if (turn?.status === 'completed') return { type: 'turn.completed' }
      return { type: 'turn.failed', error: failureOf(turn?.error) }
    default:
      return ALIVE
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

/** Neither a tool nor said to the person. */
const UNTOLD = new Set([
  'userMessage',
  'hookPrompt',
  'plan',
  'contextCompaction',
  'enteredReviewMode',
  'exitedReviewMode',
])

/** What `codex exec --json` does not tell of an item. */
const LEFT_OUT = new Set([
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

function toldItem({ type, status, changes, ...rest }: Item): JsonObject {
  const kept = Object.entries(rest).filter(([name, value]) => value !== null && !LEFT_OUT.has(name))
  return {
    ...toSnakeCase(Object.fromEntries(kept)),
    type: snakeCase(type),
    ...(typeof status === 'string' && { status: status === 'declined' ? 'failed' : snakeCase(status) }),
    ...(Array.isArray(changes) && { changes: changes.map(toldChange) }),
    ...(type === 'reasoning' && Array.isArray(rest['summary']) && { text: rest['summary'].join('\n\n') }),
  }
}

function toldChange({ path, kind }: { path: string; kind: { type: string } }): JsonObject {
  return { path, kind: kind.type }
}

function toSnakeCase(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [snakeCase(name), value]))
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
