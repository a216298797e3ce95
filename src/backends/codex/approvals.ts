// Approval requests of `codex app-server`. Captured from CLI 0.166.0; see test/fixtures/codex/live-asks.jsonl.

import type { JsonObject } from '../engine/jsonl.js'
import type { ApprovalRequest } from '../types.js'
import type { Item } from './warm-lines.js'

export interface ApprovalParams extends JsonObject {
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
