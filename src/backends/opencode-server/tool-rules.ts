import { isObject } from '../jsonl.js'
import { permissionOf } from '../opencode-format.js'
import type { PermissionRequest, PermissionRule } from './client.js'

/** How a turn is kept to its tools. */
export interface ToolControl {
  /** For a new session. In one that has others, they come after those. */
  rules: PermissionRule[]
  /** The same for the prompt, where it takes the place of all rules before; absent where it cannot say so much. */
  tools?: Record<string, boolean>
}

export function toolControl(allowedTools: string[]): ToolControl {
  // Nobody could answer a question.
  const permissions = allowedTools.length === 0 ? { question: 'deny' } : permissionOf(allowedTools)
  const rules = Object.entries(permissions).flatMap(([permission, actions]) =>
    Object.entries(isObject(actions) ? actions : { '*': actions }).map(
      ([pattern, action]) => ({ permission, pattern, action }) as PermissionRule,
    ),
  )
  if (rules.some(({ pattern }) => pattern !== '*')) return { rules }
  return { tools: Object.fromEntries(rules.map(({ permission, action }) => [permission, action === 'allow'])), rules }
}

/** Whether the rules of the turn speak against what the agent asks for. */
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
