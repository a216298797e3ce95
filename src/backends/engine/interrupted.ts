/** The prompt for an agent that resumes a message it may already have worked on. `what` happened is the start of a
 *  sentence, `cause` a name for it. */
export function interruptedPrompt(what: string, cause: string, prompt: string): string {
  return `[${what} while you worked on this message, and your answer was not delivered. Parts of the work may be done \
already: look before you repeat them. Nobody refused or cancelled anything; a tool that seems to have been was cut off \
by ${cause}. The message was:]

${prompt}`
}
