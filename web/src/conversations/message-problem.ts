/** As the gateway has it. */
const LONGEST_MESSAGE = 1_000_000

/** Why a text cannot be sent, in words; none when it can. Contract: what the gateway refuses is never lost for it. */
export function problemOf(text: string): string | undefined {
  return text.length > LONGEST_MESSAGE
    ? 'Longer than a million characters. Send it as a file, or put it into a file of the project.'
    : undefined
}
