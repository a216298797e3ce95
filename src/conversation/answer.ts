/** The answer to a command, and whether it changed anything. */
export interface Answer {
  text: string
  isChange: boolean
  /** What was changed; defaults to the conversation. */
  subject?: string
  /** The id of the message that was sent for the person. */
  messageId?: string
}

export function info(text: string): Answer {
  return { text, isChange: false }
}

export function changed(text: string): Answer {
  return { text, isChange: true }
}
