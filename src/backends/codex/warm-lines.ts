// Converts events of `codex app-server` to lines of `codex exec --json`, which the one-shot translation understands, and its
// requests to those for approval.

import { isObject, type JsonObject } from '../engine/jsonl.js'
import type { ApprovalRequest } from '../types.js'

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
  const status = info === 'badRequest' ? 400 : isObject(about) ? about['httpStatusCode'] : undefined
  return { message: error.message, status }
}

/** Neither tools nor text for the user. */
const IGNORED_ITEMS = new Set([
  ...['userMessage', 'hookPrompt', 'plan', 'contextCompaction', 'enteredReviewMode', 'exitedReviewMode'],
])

/** Fields that `codex exec --json` does not have. */
const DROPPED_FIELDS = new Set([
  ...['startedAtMs', 'completedAtMs', 'durationMs', 'pluginId', 'scriptPath', 'processId'],
  ...['source', 'commandActions', 'cwd'],
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

/** An approval request; see test/fixtures/codex/live-asks.jsonl. */
interface ApprovalParams extends JsonObject {
  itemId?: string
  /** For a command. `kind` distinguishes a command from input to a running one. */
  kind?: string
  approvalId?: string | null
  command?: string | null
  cwd?: string | null
  reason?: string | null
  /** For a tool of an MCP server. */
  serverName?: string
  message?: string
  _meta?: { codex_approval_kind?: string; tool_params?: JsonObject } | null
}

/** Undefined if it is not about a tool, or lacks details: two such requests could not be told apart. */
export function requestOf(
  method: string,
  params: ApprovalParams,
  items: Map<string, Item>,
): ApprovalRequest | undefined {
  const { itemId = '', kind = 'command', approvalId, command, cwd, reason, serverName, message, _meta } = params
  switch (method) {
    case 'item/commandExecution/requestApproval':
      if (!command && kind === 'command') return undefined
      return {
        toolName: 'command_execution',
        toolInput: {
          command: withoutShell(command ?? ''),
          ...(cwd && { cwd }),
          ...(reason && { reason }),
          // The input itself is not included, so two such requests need not be the same.
          ...(kind !== 'command' && { kind, call: approvalId ?? itemId }),
        },
      }
    case 'item/fileChange/requestApproval': {
      const changes = (items.get(itemId)?.['changes'] ?? []) as Array<{ path: string }>
      const [first] = changes
      if (!first) return undefined
      const files = changes.length > 1 ? { paths: changes.map(({ path }) => path) } : { file_path: first.path }
      return { toolName: 'file_change', toolInput: { ...files, changes, ...(reason && { reason }) } }
    }
    case 'mcpServer/elicitation/request':
      if (_meta?.codex_approval_kind !== 'mcp_tool_call') return undefined
      // Includes the server's name: a rule for one server's tools must not apply to another's.
      return { toolName: `mcp__${serverName}`, toolInput: { arguments: _meta.tool_params, message } }
    default:
      return undefined
  }
}

/** Unwraps `sh -c <command>`. The agent may choose the shell, so any but a system shell is shown in full. */
function withoutShell(command: string): string {
  const [, argument = ''] = /^(?:\/usr(?:\/local)?)?\/bin\/(?:ba|z|da)?sh -l?c (.+)$/s.exec(command) ?? []
  let text = ''
  let end = 0
  for (const { 0: whole, 1: single, 2: double, 3: bare = '', index } of argument.matchAll(QUOTED)) {
    if (index !== end) return command
    end = index + whole.length
    text += single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? bare
  }
  return argument !== '' && end === argument.length ? text : command
}

/** Part of one shell word. */
const QUOTED = /'([^']*)'|"((?:[^"\\]|\\.)*)"|([^\s'"\\$`;&|<>()*?~#!]+)/gs
