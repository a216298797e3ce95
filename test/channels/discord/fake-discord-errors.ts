// Discord's error responses: an HTTP status, a code of its own and a sentence.

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: number,
    message: string,
    /** More of the body, such as the `errors` of an invalid form. */
    readonly details: Record<string, unknown> = {},
    readonly headers: Record<string, string> = {},
  ) {
    super(message)
  }
}

export const refusals = {
  notFound: () => new ApiError(404, 0, '404: Not Found'),
  unauthorized: () => new ApiError(401, 0, '401: Unauthorized'),
  unknownChannel: () => new ApiError(404, 10003, 'Unknown Channel'),
  unknownGuild: () => new ApiError(404, 10004, 'Unknown Guild'),
  unknownMember: () => new ApiError(404, 10007, 'Unknown Member'),
  unknownMessage: () => new ApiError(404, 10008, 'Unknown Message'),
  unknownUser: () => new ApiError(404, 10013, 'Unknown User'),
  unknownEmoji: () => new ApiError(400, 10014, 'Unknown Emoji'),
  unknownWebhook: () => new ApiError(404, 10015, 'Unknown Webhook'),
  unknownInteraction: () => new ApiError(404, 10062, 'Unknown interaction'),
  wrongApplication: () => new ApiError(403, 20012, 'You are not authorized to perform this action on this application'),
  tooManyAttachments: () => new ApiError(400, 30015, 'Maximum number of attachments in a message reached (10)'),
  tooLarge: () => new ApiError(413, 40005, 'Request entity too large'),
  alreadyAcknowledged: () => new ApiError(400, 40060, 'Interaction has already been acknowledged.'),
  missingAccess: () => new ApiError(403, 50001, 'Missing Access'),
  notTheAuthor: () => new ApiError(403, 50005, 'Cannot edit a message authored by another user'),
  emptyMessage: () => new ApiError(400, 50006, 'Cannot send an empty message'),
  notText: () => new ApiError(400, 50008, 'Cannot send messages in a non-text channel'),
  missingPermissions: () => new ApiError(403, 50013, 'Missing Permissions'),
  systemMessage: () => new ApiError(403, 50021, 'Cannot execute action on a system message'),
  wrongChannelType: () => new ApiError(400, 50024, 'Cannot execute action on this channel type'),
  invalidWebhookToken: () => new ApiError(401, 50027, 'Invalid Webhook Token'),
  threadArchived: () => new ApiError(400, 50083, 'Thread is archived'),
  invalidJson: () => new ApiError(400, 50109, 'The request body contains invalid JSON.'),
  cannotReply: () => new ApiError(400, 160002, 'You cannot reply without permission to read message history'),
  threadExists: () => new ApiError(400, 160004, 'A thread has already been created for this message'),
}

/** An invalid form; `path` says where, such as `content` or `components.0`. */
export function invalidForm(path: string, code: string, message: string): ApiError {
  let errors: Record<string, unknown> = { _errors: [{ code, message }] }
  for (const part of path.split('.').toReversed()) errors = { [part]: errors }
  return new ApiError(400, 50035, 'Invalid Form Body', { errors })
}
