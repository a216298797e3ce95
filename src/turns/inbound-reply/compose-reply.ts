import type { AgentCommand, AgentRequest, BackendName } from '../../backends/types.js'
import type { ReplyConfig } from '../../config/inbound.js'
import { expandArguments, names, parseCommand, type TemplateValues } from './command-template.js'
import { buildPrompt, type RelayedMessage } from './reply-prompt.js'

export interface RelayedTurn {
  /** Which agent is asked: the person may have chosen another than the configured one. */
  backend: BackendName
  canSendFiles: boolean
  /** The session that is continued, if one is. */
  sessionId: string | undefined
  newId: () => string
}

/**
 * What an agent is asked, and how it is started, as `inbound.reply` says.
 *
 * Contract: throws `request_invalid`, with a sentence for the person, when it cannot be asked.
 */
export function composeReply(
  reply: ReplyConfig,
  message: RelayedMessage,
  { backend, canSendFiles, sessionId, newId }: RelayedTurn,
): Pick<AgentRequest, 'prompt' | 'command'> {
  const isFirstTurn = sessionId === undefined
  const isConfigured = backend === reply.agent?.kind
  // A template is written for the command line of one agent.
  const template = isConfigured && reply.command ? parseCommand(reply.command) : undefined
  const { sessionArgNew, sessionArgResume } = (isConfigured && reply.session) || {}
  const sessionTemplate = isFirstTurn ? sessionArgNew : sessionArgResume

  const known: TemplateValues = {
    ...message.variables,
    Body: message.body,
    BodyStripped: message.body,
    SessionId: sessionId ?? (names(sessionTemplate ?? [], 'SessionId') ? newId() : ''),
    IsNewSession: String(isFirstTurn),
  }
  const whole = buildPrompt(reply, message, { isFirstTurn, canSendFiles, values: known })
  const values: TemplateValues = { ...known, Body: whole }
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
