/** What a person is told of a command, and whether it changed anything. */
export interface Answer {
  text: string
  isChange: boolean
  /** What was changed; left out, the conversation. */
  subject?: string
}

export function told(text: string): Answer {
  return { text, isChange: false }
}

export function changed(text: string): Answer {
  return { text, isChange: true }
}
