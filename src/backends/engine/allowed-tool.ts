// One element of a list of allowed tools: a tool, or some of its calls, as in `Bash(git log:*)`.
//
// Invariant: an element is exactly one tool for every agent. Claude Code splits its `--allowedTools` at spaces and commas
// wherever the last parenthesis was a closing one, nested or not. A second tool split off that way would bypass the
// project's list.

import { GatewayError } from '../../errors.js'

export interface AllowedTool {
  name: string
  /** The text in parentheses: which calls are allowed. If left out, all of them. */
  calls?: string
}

/** Contract: throws `request_invalid` for anything but exactly one tool. */
export function parseTool(text: string): AllowedTool {
  const tool = read(text)
  if (tool) return tool
  throw new GatewayError('request_invalid', `${problemOfTool(text)}.`)
}

/** What is wrong with an element of a list of allowed tools, if anything. */
export function problemOfTool(text: string): string | undefined {
  if (read(text)) return undefined
  const form = 'write one tool per element, such as Read, mcp__server__tool or Bash(git log:*)'
  const rules =
    'Spaces and commas are allowed only inside the parentheses, and not after a nested pair. The parentheses must be balanced and end the element'
  return `invalid tool ${JSON.stringify(text)}: ${form}. ${rules}`
}

/** The first character prevents it from being parsed as an option. */
const ONE_TOOL = /^([\p{L}\p{N}_*][^\s(),\p{Cc}\p{Cs}]*)(?:\(([^\p{Cc}\p{Cs}]+)\))?$/u
const SPLIT_AFTER_NESTED = /\)[^(]*[\s,]/

function read(text: string): AllowedTool | undefined {
  const [, name, calls] = ONE_TOOL.exec(text) ?? []
  if (name === undefined) return undefined
  if (calls === undefined) return { name }
  return isBalanced(calls) && !SPLIT_AFTER_NESTED.test(calls) ? { name, calls } : undefined
}

function isBalanced(text: string): boolean {
  let depth = 0
  for (const character of text) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (depth < 0) return false
  }
  return depth === 0
}
