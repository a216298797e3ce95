import type { ErrorCode } from '../errors.js'

/**
 * The codes of docs/errors.md, and two of the client's own:
 *
 * - `unreachable`: there was no answer; `status` is 0
 * - `unexpected_answer`: something else than the gateway answered, such as a proxy
 */
export type ApiErrorCode = ErrorCode | 'unreachable' | 'unexpected_answer'

/** What is wrong with one field of a request. */
export interface FieldProblem {
  path: string
  message: string
}

/** A request that was not answered as hoped. */
export class AetheelApiError extends Error {
  override readonly name = 'AetheelApiError'

  constructor(
    readonly code: ApiErrorCode,
    /** Of the HTTP answer. */
    readonly status: number,
    message: string,
    /** Of `request_invalid`, field by field. */
    readonly problems: FieldProblem[] = [],
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** What an answer that is no success says. */
export function apiErrorOf(status: number, text: string): AetheelApiError {
  const error = errorIn(text)
  if (error) return new AetheelApiError(error.code, status, error.message, error.problems)
  const message = `The answer, with status ${status}, is not one of a gateway. Is the base URL right?`
  return new AetheelApiError('unexpected_answer', status, message)
}

function errorIn(text: string): { code: ErrorCode; message: string; problems?: FieldProblem[] } | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { code: ErrorCode; message: string; problems?: FieldProblem[] } }
    return typeof error?.code === 'string' && typeof error.message === 'string' ? error : undefined
  } catch {
    return undefined // A page of a proxy, most likely.
  }
}
