// Commands of the agents' own: `/compact`, and `//name`, which reaches the agent as `/name`.

import type { AgentCapabilities, BackendName } from '../backends/types.js'
import type { Message } from '../store/inbox.js'

const COMPACT = /^\/compact(?=\s|$)/i
const PASSED_ON = /^\/\/(?=[a-z])/i

interface AgentCommand {
  /** The line as the agent gets it. */
  line: string
  isCompact: boolean
}

/** Whether a line goes to the agent although it looks like a command of ours. */
export function isAgentCommand(line: string): boolean {
  return COMPACT.test(line) || PASSED_ON.test(line)
}

/** Undefined unless a person wrote it in a chat: a program's prompt reaches the agent to the character. */
export function agentCommandIn({
  kind,
  text,
  options,
}: Pick<Message, 'kind' | 'text' | 'options'>): AgentCommand | undefined {
  if (kind !== 'message' || options?.streamId !== undefined || !isAgentCommand(text)) return undefined
  return { line: text.replace(PASSED_ON, '/').replace(COMPACT, '/compact'), isCompact: COMPACT.test(text) }
}

/** Why the agent does not get it: an answer for the person. */
export function objectionTo(
  { line, isCompact }: AgentCommand,
  backend: BackendName,
  { supportsCommands, supportsCompact }: AgentCapabilities,
  isLimited: boolean,
): string | undefined {
  if (isCompact) {
    if (supportsCompact) return undefined
    return `${backend} has no /compact: it compacts a long conversation by itself. /new begins a fresh session.`
  }
  const [name] = line.split(/\s/, 1)
  if (!supportsCommands) return `${backend} knows no commands in messages, so ${name} was not passed on.`
  if (!isLimited) return undefined
  const why = 'A command of the agent could lift the limits of this project'
  return `${why}, so ${name} was not passed on. It needs an agent that may use all tools without asking, in a trusted project and without a command template.`
}
