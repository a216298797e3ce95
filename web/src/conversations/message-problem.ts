/** As the gateway has it. */
const LONGEST_MESSAGE = 1_000_000

const INSTEAD: Partial<Record<string, string>> = {
  stop: 'Here the button "Stop" does that.',
  new: 'Here the button "New session" does that.',
  backend: 'Here "Agent and session" has the choice.',
  model: 'Here "Agent and session" has the choice.',
}

/** Why a text cannot be sent, in words; none when it can. Contract: what the gateway refuses is never lost for it. */
export function problemOf(text: string): string | undefined {
  if (text.length > LONGEST_MESSAGE)
    return 'This is longer than a million characters. Put it into a file of the project.'
  const [, word = ''] = /^\/([a-z]+)(?:\s|$)/i.exec(text) ?? []
  const name = word.toLowerCase()
  if (name === '' || name === 'ask') return undefined
  const advice = INSTEAD[name] ?? 'To send it to the agent as it is, put a space before it.'
  return `A line that begins with /${word} is a command of chat channels, and no message. ${advice}`
}
