/** Every mistake a caller can make. `status` is the HTTP status; docs/errors.md explains each code. */
export const ERROR_CODES = {
  backend_missing: { status: 503 },
  backend_unknown: { status: 404 },
  cluster_unavailable: { status: 503 },
  config_invalid: { status: 500 },
  conflict: { status: 409 },
  forbidden: { status: 403 },
  gateway_running: { status: 409 },
  gateway_unavailable: { status: 503 },
  host_unknown: { status: 421 },
  http_unavailable: { status: 503 },
  internal: { status: 500 },
  not_found: { status: 404 },
  overloaded: { status: 503 },
  request_invalid: { status: 400 },
  store_corrupt: { status: 500 },
  store_full: { status: 507 },
  store_unavailable: { status: 503 },
  too_large: { status: 413 },
  too_many: { status: 429 },
  unauthorized: { status: 401 },
  undeliverable: { status: 502 },
  unsupported_media: { status: 415 },
} as const satisfies Record<string, { status: number }>

export type ErrorCode = keyof typeof ERROR_CODES

/** Thrown for a caller's mistake. An agent's failure is never thrown: it is a value (see `AgentFailure`). */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** The text of a thrown value, to be quoted in a sentence. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
