import { isObject } from '../../engine/jsonl.js'
import { permissionOf } from '../format.js'
import type { Turn } from '../../engine/turn.js'
import type { PermissionRequest, PermissionRule } from './client.js'

/** How a turn is restricted to its tools. */
export interface ToolControl {
  /** For a new session; appended to the rules of an existing one. */
  rules: PermissionRule[]
  /** The same as part of a prompt, where it replaces all previous rules; absent if it cannot express them. */
  tools?: Record<string, boolean>
}

export function toolControl({ allowedTools, isAsking }: Pick<Turn, 'allowedTools' | 'isAsking'>): ToolControl {
  // Nobody could answer questions.
  const every = isAsking ? { '*': 'ask', ...READING, question: 'deny' } : { question: 'deny' }
  const permissions = allowedTools.length === 0 ? every : permissionOf(allowedTools)
  const listed = Object.entries(permissions).flatMap(([permission, actions]) =>
    Object.entries(isObject(actions) ? actions : { '*': actions }).map(
      ([pattern, action]) => ({ permission, pattern, action }) as PermissionRule,
    ),
  )
  const rules = isAsking ? [...listed.map(asking), NO_SUB_AGENTS] : listed
  if (isAsking || rules.some(({ pattern }) => pattern !== '*')) return { rules }
  return { tools: Object.fromEntries(rules.map(({ permission, action }) => [permission, action === 'allow'])), rules }
}

/** Read-only permissions. Files with secrets need approval, as in OpenCode's own defaults. */
const READING = {
  read: { '*': 'allow', '*.env': 'ask', '*.env.*': 'ask', '*.env.example': 'allow' },
  ...{ list: 'allow', glob: 'allow', grep: 'allow', lsp: 'allow', skill: 'allow' },
  ...{ todoread: 'allow', todowrite: 'allow' },
}

/** Subagents would not ask: they inherit only the rules that deny. */
const NO_SUB_AGENTS: PermissionRule = { permission: 'task', pattern: '*', action: 'deny' }

function asking(rule: PermissionRule): PermissionRule {
  return rule.action === 'allow' && !Object.hasOwn(READING, rule.permission) ? { ...rule, action: 'ask' } : rule
}

/** Whether the turn's rules deny the request. */
export function isDenied(
  { permission, patterns }: Pick<PermissionRequest, 'permission' | 'patterns'>,
  rules: PermissionRule[],
): boolean {
  return patterns.some((asked) => {
    const deciding = rules.findLast((rule) => matches(permission, rule.permission) && matches(asked, rule.pattern))
    return deciding?.action === 'deny'
  })
}

export function endsWithRules(present: PermissionRule[], rules: PermissionRule[]): boolean {
  const last = present.slice(-rules.length)
  return rules.every(({ permission, pattern, action }, index) => {
    const other = last[index]
    return other?.permission === permission && other.pattern === pattern && other.action === action
  })
}

function matches(text: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text)
}
