import { oneLine } from '../one-line.js'

const TOOL_CHARACTERS = 100

/** What a tool works on, by the names that the agents have for it. */
const SUBJECTS = ['command', 'file_path', 'filePath', 'path', 'pattern', 'url', 'query']

/** A tool and what it works on, in one line. */
export function describeTool({ name, input }: { name: string; input: Record<string, unknown> }): string {
  const subject = SUBJECTS.map((key) => input[key]).find((value) => typeof value === 'string')
  return oneLine(subject === undefined ? name : `${name}: ${subject}`, TOOL_CHARACTERS)
}
