/** The gateway's limit. */
const LONGEST_MESSAGE = 1_000_000

/** Why a text cannot be sent, if it cannot. Checked before sending, so that a rejected text is not lost. */
export function problemOf(text: string): string | undefined {
  return text.length > LONGEST_MESSAGE
    ? 'Longer than a million characters. Attach it as a file, or save it in the project.'
    : undefined
}
