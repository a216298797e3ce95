/** The prompt for an agent that goes on with a message it has perhaps begun to work on. `what` happened is a sentence's
 *  beginning, `cause` a name for it. */
export function interruptedPrompt(what: string, cause: string, prompt: string): string {
  return `[${what} while you worked on this message, and your answer was not delivered. Parts of the work may be done \
already: look before you repeat them. Nobody refused or cancelled anything; a tool that seems to have been was cut off \
by ${cause}. The message was:]

${prompt}`
}
