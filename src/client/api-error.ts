import type { ErrorCode } from '../errors.js'

/**
 * The codes of docs/errors.md, and two of the client's own:
 *
 * - `unreachable`: no response; `status` is 0
 * - `unexpected_answer`: something other than the gateway answered, such as a proxy
 */
export type ApiErrorCode = ErrorCode | 'unreachable' | 'unexpected_answer'

/** A problem with one field of a request. */
export interface FieldProblem {
  path: string
  message: string
}

/** A request failed. */
export class AetheelApiError extends Error {
  override readonly name = 'AetheelApiError'

  constructor(
    readonly code: ApiErrorCode,
    /** The HTTP status. */
    readonly status: number,
    message: string,
    /** For `request_invalid`: one per field. */
    readonly problems: FieldProblem[] = [],
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** The error in an unsuccessful response. */
export function apiErrorOf(status: number, text: string): AetheelApiError {
  const error = errorIn(text)
  if (error) return new AetheelApiError(error.code, status, error.message, error.problems)
  const message = `The response with status ${status} is not from a gateway. Check the base URL.`
  return new AetheelApiError('unexpected_answer', status, message)
}

function errorIn(text: string): { code: ErrorCode; message: string; problems?: FieldProblem[] } | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { code: ErrorCode; message: string; problems?: FieldProblem[] } }
    return typeof error?.code === 'string' && typeof error.message === 'string' ? error : undefined
  } catch {
    return undefined // Most likely a proxy's page.
  }
}
