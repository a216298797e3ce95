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

/** Why it is not passed on: an answer for the person. */
export function objectionTo(
  { line, isCompact }: AgentCommand,
  backend: BackendName,
  { supportsCommands, supportsCompact }: AgentCapabilities,
  isLimited: boolean,
): string | undefined {
  if (isCompact) {
    if (supportsCompact) return undefined
    return `${backend} does not support /compact: it compacts long conversations itself. Use /new to start a fresh session.`
  }
  const [name] = line.split(/\s/, 1)
  if (!supportsCommands) return `${backend} does not accept commands in messages, so ${name} was not passed on.`
  if (!isLimited) return undefined
  const why = `${name} was not passed on, because an agent's own commands could bypass the limits of this project.`
  return `${why} They need an agent that may use all tools without asking, a trusted project and no command template.`
}
