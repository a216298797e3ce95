/** The answer to a command that failed unexpectedly. */
export const COMMAND_FAILED = 'That failed. The gateway log says why. Try again.'
