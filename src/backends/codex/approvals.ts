// What `codex app-server` asks before it uses a tool. Captured from CLI 0.166.0; see test/fixtures/codex/live-asks.jsonl.

import type { JsonObject } from '../engine/jsonl.js'
import type { ApprovalRequest } from '../types.js'
import type { Item } from './warm-lines.js'

export interface Asked extends JsonObject {
  itemId?: string
  /** Of a command. `kind` tells a command from what is typed into one that runs. */
  kind?: string
  approvalId?: string | null
  command?: string | null
  cwd?: string | null
  reason?: string | null
  /** Of the tool of an MCP server. */
  serverName?: string
  message?: string
  _meta?: { codex_approval_kind?: string; tool_params?: JsonObject } | null
}

/** Undefined where it is not about a tool, or does not say what for: nobody could tell two of those apart. */
export function requestOf(method: string, asked: Asked, items: Map<string, Item>): ApprovalRequest | undefined {
  const { itemId = '', kind = 'command', approvalId, command, cwd, reason, serverName, message, _meta } = asked
  switch (method) {
    case 'item/commandExecution/requestApproval':
      if (!command && kind === 'command') return undefined
      return {
        toolName: 'command_execution',
        toolInput: {
          command: withoutShell(command ?? ''),
          ...(cwd && { cwd }),
          ...(reason && { reason }),
          // What is typed is not told, so that two of them need not be the same.
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
      // A rule for a tool must not be one for those of all servers.
      return { toolName: `mcp__${serverName}`, toolInput: { arguments: _meta.tool_params, message } }
    default:
      return undefined
  }
}

/** The command itself, of one that a shell is given as its only argument. The agent may name the shell: another than that of
 *  the system is told. */
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

/** A piece of one word of a shell. */
const QUOTED = /'([^']*)'|"((?:[^"\\]|\\.)*)"|([^\s'"\\$`;&|<>()*?~#!]+)/gs
