// Labels for the tools of the five agents: their names differ, what they do does not. Pure.

import { subjectOf } from '../../src/core/tool-input.js'
import type { IconName } from './parts/icon.js'

export interface ToolLabel {
  icon: IconName
  /** As "Run command". */
  action: string
  /** As "npm test"; empty when there is none. */
  subject: string
  /** As in "Claude Code wants to …". */
  wish: string
}

interface Kind extends Omit<ToolLabel, 'subject'> {
  names: RegExp
}

const KINDS: Kind[] = [
  {
    names: /^(bash|shell|exec|exec_command|command_execution|run_shell_command|local_shell)$/,
    icon: 'terminal',
    action: 'Run command',
    wish: 'run a command',
  },
  {
    names: /^(edit|multiedit|replace|str_replace|apply_patch|patch|file_change|notebookedit)$/,
    icon: 'edit',
    action: 'Edit',
    wish: 'edit a file',
  },
  { names: /^(write|write_file|create|create_file)$/, icon: 'file', action: 'Write', wish: 'write a file' },
  { names: /^(read|read_file|read_many_files|view|notebookread)$/, icon: 'file', action: 'Read', wish: 'read a file' },
  { names: /^(grep|search|search_file_content|find)$/, icon: 'search', action: 'Search', wish: 'search the files' },
  { names: /^(glob|ls|list|list_directory)$/, icon: 'folder', action: 'List files', wish: 'list files' },
  { names: /^(webfetch|web_fetch|fetch)$/, icon: 'web', action: 'Open page', wish: 'open a web page' },
  {
    names: /^(websearch|web_search|google_web_search)$/,
    icon: 'web',
    action: 'Search the web',
    wish: 'search the web',
  },
  { names: /^(task|agent|subagent)$/, icon: 'agent', action: 'Subagent', wish: 'start a subagent' },
  {
    names: /^(todowrite|todo_write|todo_list|update_plan|write_todos)$/,
    icon: 'queue',
    action: 'Update plan',
    wish: 'update its plan',
  },
]

/** Codex wraps its commands in a shell. People want to see only the command. */
const WRAPPED = /^(?:\/bin\/)?(?:ba|z)?sh -l?c (['"])([\s\S]*)\1$/

export function toolLabel(tool: string, input: Record<string, unknown>): ToolLabel {
  const subject = subjectOf(input)
  const known = KINDS.find(({ names }) => names.test(tool.toLowerCase()))
  if (known) {
    const { names: _names, ...kind } = known
    const plain = kind.icon === 'terminal' ? (WRAPPED.exec(subject)?.[2] ?? subject) : subject
    return { ...kind, subject: kind.icon === 'queue' ? '' : plain }
  }
  // MCP tools, such as mcp__github__create_issue.
  const name = tool.replace(/^mcp__/, '').replace('__', ': ')
  return { icon: 'settings', action: name, subject, wish: `use ${name}` }
}
