// The limits of a message in the queue, and of the turn that answers it. How many messages may wait is configured:
// MAX_QUEUE_DEPTH and MAX_WAITING_COMMANDS.

import { parseTool } from '../backends/engine/allowed-tool.js'
import { requireEnforceable } from '../backends/engine/refusals.js'
import type { AgentCapabilities } from '../backends/types.js'
import type { ChannelMessage, MessageOptions } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import type { Message } from '../store/inbox.js'
import type { Project } from '../store/projects.js'
import type { Tables } from '../store/store.js'

/** No agent accepts more in one message, and no chat allows longer ones. */
export const MAX_MESSAGE_CHARACTERS = 1_000_000
/** How much of a refused message is kept: enough to recognise it. */
export const REFUSED_TEXT_CHARACTERS = 1_000
/** A message interrupted more often is given up: it may be what crashes the gateways. */
export const MAX_INTERRUPTIONS = 10
/** The longest value that fits a PostgreSQL index. */
const MAX_NAME_CHARACTERS = 500

/** Contract: throws `request_invalid` for names that the store cannot hold. */
export function requireNames({ address, platformId, author }: ChannelMessage): void {
  if ([address, platformId, author].every((name) => name !== '' && name.length <= MAX_NAME_CHARACTERS)) return
  const rule = `must have 1 to ${MAX_NAME_CHARACTERS} characters each`
  throw new GatewayError('request_invalid', `The address, the id and the author of a message ${rule}.`)
}

/** Why a text is refused, if it is. */
export function problemOf(text: string): string | undefined {
  if (text.trim() === '') return 'The message is empty. Write what the agent should do.'
  if (text.length <= MAX_MESSAGE_CHARACTERS) return undefined
  const size = `${text.length} characters, at most ${MAX_MESSAGE_CHARACTERS} are allowed`
  return `The message is too long: ${size}. Put it in a file and name the file.`
}

/** Why a message is refused behind others that wait, if it is. */
export function problemOfDepth(waiting: number, most: number): string | undefined {
  if (waiting < most) return undefined
  const already = `${waitingText(waiting, 'message')} in this conversation`
  return `${already}, so this one was not accepted. Send it again later.`
}

/** Contract: throws `too_many` if `most` commands wait in the project, whose addresses begin with the prefix. */
export async function requireRoom(
  { inbox }: Pick<Tables, 'inbox'>,
  { channel, prefix, projectId }: { channel: string; prefix: string; projectId: string },
  most: number,
): Promise<void> {
  if (!(await inbox.haveWaitingUnder(channel, prefix, most))) return
  const already = `${waitingText(most, 'command')} in the project ${projectId}`
  throw new GatewayError('too_many', `${already}. Send it again when some have finished.`)
}

/** Characters left in the prompt that answers these messages together. */
export function remainingRoom(messages: Message[]): number {
  return messages.reduce((room, { text }) => room - text.length, MAX_MESSAGE_CHARACTERS)
}

interface TurnLimits {
  /** Defaults to the configuration's. */
  allowedTools?: string[]
  timeoutMs: number
}

type RequestedLimits = Pick<MessageOptions, 'allowedTools' | 'timeoutMs'>
type Config = Pick<GatewayConfig, 'allowedTools' | 'queryTimeoutMs'>

/**
 * A request can only narrow the limits of its project or, if that has none, of the configuration: whoever may run
 * something in a project must not lift its limits.
 *
 * Contract: throws `request_invalid` for tools that are not allowed, and for limits that the agent cannot enforce.
 */
export function limitTurn(
  asked: RequestedLimits,
  project: Project | undefined,
  config: Config,
  agent: AgentCapabilities,
): TurnLimits {
  const allowed = project?.allowedTools ?? config.allowedTools
  const beyond = allowed.length === 0 ? [] : (asked.allowedTools ?? []).filter((tool) => !isWithin(tool, allowed))
  if (beyond.length > 0) {
    const advice = `Allowed: ${allowed.join(', ')}.`
    throw new GatewayError('request_invalid', `These tools are not allowed here: ${beyond.join(', ')}. ${advice}`)
  }
  const allowedTools = asked.allowedTools ?? project?.allowedTools
  requireEnforceable({ allowedTools, maxTurns: project?.maxTurns }, agent)
  return { ...(allowedTools && { allowedTools }), timeoutMs: limitTime(asked, project, config) }
}

export function limitTime(
  { timeoutMs = Infinity }: RequestedLimits,
  project: Pick<Project, 'queryTimeoutMs'> | undefined,
  config: Pick<Config, 'queryTimeoutMs'>,
): number {
  return Math.min(timeoutMs, project?.queryTimeoutMs ?? config.queryTimeoutMs)
}

function waitingText(count: number, noun: string): string {
  return count === 1 ? `1 ${noun} is already waiting` : `${count} ${noun}s are already waiting`
}

/** The tool itself, or a subset of its calls, as in `Bash(git log:*)`. */
function isWithin(tool: string, allowed: string[]): boolean {
  return allowed.includes(tool) || allowed.includes(parseTool(tool).name)
}
