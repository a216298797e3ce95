/** What a person sees when their command failed. */
export const COMMAND_FAILED = 'That failed, and the log of the gateway says why. Try it again.'
