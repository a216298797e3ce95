// Builds the prompt for messages from a channel with `inbound.reply`.

import type { MessageVariables } from '../../channels/types.js'
import type { ReplyConfig } from '../../config/inbound.js'
import { expandText, type TemplateValues } from './command-template.js'

export interface RelayedMessage {
  /** What the person wrote. */
  body: string
  /** One line per attached file. */
  fileLines: string[]
  variables: MessageVariables
}

export interface PromptOptions {
  /** Whether this is the first turn of the session. */
  isFirstTurn: boolean
  /** Whether files can be sent with the answer. */
  canSendFiles: boolean
  /** Values for templates within the prompt. */
  values: TemplateValues
}

type PromptConfig = Pick<ReplyConfig, 'agent' | 'bodyPrefix' | 'session'>

/** As written by `saveIncomingFiles`. */
const FILE_LINE = /^Attached file: /

const SENDING_BACK = 'To send a file back, write a line of its own into your answer: MEDIA: <path or https URL>'

/** Splits the person's words from the file lines that follow them. */
export function readMessage(text: string, variables: MessageVariables = {}): RelayedMessage {
  if (variables.MediaPath === undefined) return { body: text, fileLines: [], variables }
  const lines = text.split('\n')
  const first = lines.findLastIndex((line) => !FILE_LINE.test(line)) + 1
  return { body: lines.slice(0, first).join('\n'), fileLines: lines.slice(first), variables }
}

/** Contract: throws `request_invalid` if a template uses an unknown name. */
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
    // For a voice message the transcript already is the body.
    transcript.trim() === body.trim() || transcript.trim() === '' ? '' : `Transcript:\n${transcript}`,
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}
