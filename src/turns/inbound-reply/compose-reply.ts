import type { AgentCommand, AgentRequest, BackendName } from '../../backends/types.js'
import type { ReplyConfig } from '../../config/inbound.js'
import { expandArguments, hasPlaceholder, parseCommand, type TemplateValues } from './command-template.js'
import { buildPrompt, type RelayedMessage } from './reply-prompt.js'

export interface RelayedTurn {
  /** The agent to use: the person may have chosen another than the configured one. */
  backend: BackendName
  canSendFiles: boolean
  /** The session to resume, if any. */
  sessionId: string | undefined
  newId: () => string
}

/**
 * Builds the prompt and the command for an agent from `inbound.reply`.
 *
 * Contract: throws `request_invalid`, with a sentence for the person, if that is impossible.
 */
export function composeReply(
  reply: ReplyConfig,
  message: RelayedMessage,
  { backend, canSendFiles, sessionId, newId }: RelayedTurn,
): Pick<AgentRequest, 'prompt' | 'command'> {
  const isFirstTurn = sessionId === undefined
  const isConfigured = backend === reply.agent?.kind
  // A template fits the command line of one agent only.
  const template = isConfigured && reply.command ? parseCommand(reply.command) : undefined
  const { sessionArgNew, sessionArgResume } = (isConfigured && reply.session) || {}
  const sessionTemplate = isFirstTurn ? sessionArgNew : sessionArgResume

  const known: TemplateValues = {
    ...message.variables,
    Body: message.body,
    BodyStripped: message.body,
    SessionId: sessionId ?? (hasPlaceholder(sessionTemplate ?? [], 'SessionId') ? newId() : ''),
    IsNewSession: String(isFirstTurn),
  }
  const fullPrompt = buildPrompt(reply, message, { isFirstTurn, canSendFiles, values: known })
  const values: TemplateValues = { ...known, Body: fullPrompt }
  const command: AgentCommand = {
    ...(template && { executable: template.executable }),
    args: expandArguments(template?.args ?? [], values),
    ...(template && { template: [...template.args] }),
    ...(sessionTemplate && { sessionArgs: expandArguments(sessionTemplate, values) }),
    ...(isConfigured && reply.agent?.format !== undefined && { format: reply.agent.format }),
    isReadOnly: true,
  }
  return { prompt: values[template?.prompt ?? 'Body'] ?? '', command }
}
