import { cut, printable } from '../core/one-line.js'

const TOOL_CHARACTERS = 100

/** Input fields that say what a tool works on, in the agents' various names. */
const SUBJECTS = ['command', 'file_path', 'filePath', 'path', 'pattern', 'url', 'query']

/** A tool and its subject, on one line. */
export function describeTool({ name, input }: { name: string; input: Record<string, unknown> }): string {
  const field = subjectField(input)
  return cut(printable(field === undefined ? name : `${name}: ${String(input[field])}`), TOOL_CHARACTERS)
}

export function subjectField(input: Record<string, unknown>): string | undefined {
  return SUBJECTS.find((name) => typeof input[name] === 'string')
}
