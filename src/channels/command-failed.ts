/** What a person reads when a command of theirs could not be done. */
export const COMMAND_FAILED = 'That failed, and the log of the gateway says why. Try it again.'
