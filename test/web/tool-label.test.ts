import { expect, it } from 'vitest'
import { toolLabel } from '../../web/src/tool-label.js'

it.each([
  ['Bash', { command: 'npm test', description: 'Runs them' }, 'Run command: npm test'],
  ['bash', { command: 'npm test' }, 'Run command: npm test'],
  ['run_shell_command', { command: 'npm test' }, 'Run command: npm test'],
  ['command_execution', { command: `/bin/bash -lc 'npm test'` }, 'Run command: npm test'],
  ['Edit', { file_path: 'src/a.ts', old_string: 'a', new_string: 'b' }, 'Edit: src/a.ts'],
  ['file_change', { changes: [{ path: 'src/a.ts', kind: 'update' }] }, 'Edit: src/a.ts'],
  ['write_file', { file_path: 'a.md', content: '' }, 'Write: a.md'],
  ['read', { filePath: 'a.md' }, 'Read: a.md'],
  ['TodoWrite', { todos: [] }, 'Update plan: '],
  ['mcp__github__create_issue', { title: 'A bug' }, 'github: create_issue: A bug'],
])('tools of all agents read alike: %s', (tool, input, expected) => {
  const { action, subject } = toolLabel(tool, input)
  expect(`${action}: ${subject}`).toBe(expected)
})
