// What the agent is asked for a message of a channel that `inbound.reply` is about.

import type { MessageVariables } from '../../channels/types.js'
import type { ReplyConfig } from '../../config/inbound.js'
import { expandText, type TemplateValues } from './command-template.js'

export interface RelayedMessage {
  /** What the person wrote. */
  body: string
  /** One for each file that came with it. */
  fileLines: string[]
  variables: MessageVariables
}

export interface PromptOptions {
  /** Whether the agent is asked for the first time in its session. */
  isFirstTurn: boolean
  /** Whether files can go with the answer. */
  canSendFiles: boolean
  /** For what is templated in the prompt itself. */
  values: TemplateValues
}

type PromptConfig = Pick<ReplyConfig, 'agent' | 'bodyPrefix' | 'session'>

/** As `saveIncomingFiles` names a file. */
const FILE_LINE = /^Attached file: /

const SENDING_BACK = 'To send a file back, write a line of its own into your answer: MEDIA: <path or https URL>'

/** Tells the person's words from the lines for their files, which stand after them. */
export function readMessage(text: string, variables: MessageVariables = {}): RelayedMessage {
  if (variables.MediaPath === undefined) return { body: text, fileLines: [], variables }
  const lines = text.split('\n')
  const first = lines.findLastIndex((line) => !FILE_LINE.test(line)) + 1
  return { body: lines.slice(0, first).join('\n'), fileLines: lines.slice(first), variables }
}

/** Contract: throws `request_invalid` when a template names what is not there. */
export function buildPrompt(
  { agent, bodyPrefix = '', session }: PromptConfig,
  { body, fileLines, variables: { Transcript: transcript = '' } }: RelayedMessage,
  { isFirstTurn, canSendFiles, values }: PromptOptions,
): string {
  const isIntroduced = isFirstTurn || session?.sendSystemOnce !== true
  const parts = [
    fileLines.join('\n'),
    canSendFiles && fileLines.length > 0 ? SENDING_BACK : '',
    isFirstTurn && session?.sessionIntro !== undefined ? expandText(session.sessionIntro, values) : '',
    isIntroduced ? (agent?.identityPrefix ?? '') : '',
    (isIntroduced ? expandText(bodyPrefix, values) : '') + body,
    // Of a voice message it is the body already.
    transcript.trim() === body.trim() || transcript.trim() === '' ? '' : `Transcript:\n${transcript}`,
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}
