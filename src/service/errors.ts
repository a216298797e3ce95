// One format for all errors: { error: { code, message, problems? } }.

import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors, ResponseSerializationError } from 'fastify-type-provider-zod'
import { ERROR_CODES, type ErrorCode, GatewayError, messageOf } from '../errors.js'
import type { Scrubber } from '../credentials/scrubber.js'
import type { Log } from '../log.js'
import type { ErrorBody } from './api/access.js'
import { describeBytes } from '../media/byte-size.js'

export const BODY_LIMIT_BYTES = 1024 * 1024
const QUEUE_RETRY_S = 5

/** Our codes for the framework's own errors. */
const FRAMEWORK_CODES: Partial<Record<number, ErrorCode>> = {
  404: 'not_found',
  413: 'too_large',
  414: 'request_invalid',
  415: 'unsupported_media',
  503: 'overloaded',
}

export const NOT_JSON = 'The body must be JSON. Send it with "content-type: application/json".'

function tooLarge(limit: number): string {
  const advice = limit < BODY_LIMIT_BYTES ? 'Send less.' : 'Send less, or put long text into a file of the project.'
  return `The body is larger than ${describeBytes(limit)}. ${advice}`
}

/** `bodyLimit`: of the route, in bytes. */
function errorBodyOf(error: unknown, requestId: string, bodyLimit: number): ErrorBody {
  if (error instanceof GatewayError) return body(error.code, error.message)
  if (hasZodFastifySchemaValidationErrors(error)) return invalidBody(error)
  const { statusCode, code } = error as Partial<FastifyError>
  const isFrameworks = code?.startsWith('FST_') && !(error instanceof ResponseSerializationError)
  const known = statusCode === undefined ? undefined : FRAMEWORK_CODES[statusCode]
  if (isFrameworks && known === 'too_large') return body(known, tooLarge(bodyLimit))
  if (isFrameworks && known === 'unsupported_media') return body(known, NOT_JSON)
  if (isFrameworks && known !== undefined) return body(known, messageOf(error))
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return body('request_invalid', messageOf(error))
  return body('internal', `Internal error. Look for request ${requestId} in the log of the gateway.`)
}

/** Contract: logs our own errors, but nothing a user wrote. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { log, scrubber }: { log: Log; scrubber: Pick<Scrubber, 'scrubJson'> },
): FastifyReply {
  const bodyLimit = request.routeOptions.bodyLimit ?? BODY_LIMIT_BYTES
  const errorBody = errorBodyOf(error, request.id, bodyLimit)
  const { code } = errorBody.error
  const { status } = ERROR_CODES[code]
  if (status >= 500 && code !== 'overloaded') {
    const { method, url: route } = request.routeOptions
    const cause = error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : undefined
    log.error('http.failed', { requestId: request.id, method, route, code, error: messageOf(error), cause })
  }
  // Rate limits set the header themselves; a full queue empties sooner or later.
  if (code === 'too_many' && !reply.raw.hasHeader('retry-after')) void reply.header('retry-after', QUEUE_RETRY_S)
  if (code === 'unauthorized') void reply.header('www-authenticate', 'Bearer')
  // Otherwise the connection stays open until the whole unread body has arrived.
  if (hasLongBody(request, bodyLimit)) void reply.header('connection', 'close')
  // Serialised here: response schemas do not cover errors.
  return reply
    .code(status)
    .type('application/json; charset=utf-8')
    .serializer((payload) => scrubber.scrubJson(JSON.stringify(payload)))
    .send(errorBody)
}

function hasLongBody({ headers }: FastifyRequest, bodyLimit: number): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > bodyLimit
}

/** Ends a connection without a complete request. */
export function refuseUnfinished(socket: Socket, status: '400 Bad Request' | '408 Request Timeout'): void {
  if (!socket.writable) return void socket.destroy()
  const text = JSON.stringify(
    body('request_invalid', 'Incomplete or malformed HTTP request. Check what the client sends.'),
  )
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}`
  socket.write(`${head}\r\nconnection: close\r\n\r\n${text}`)
  socket.destroySoon()
}

function body(code: ErrorCode, message: string): ErrorBody {
  return { error: { code, message } }
}

type InvalidRequest = Parameters<typeof problemsOf>[0]

function invalidBody(error: InvalidRequest): ErrorBody {
  const problems = problemsOf(error)
  const sentences = problems.map(({ path, message }) => `${path}: ${message}`)
  const message = `Invalid request. ${sentences.join('; ')}`
  return { error: { code: 'request_invalid', message, problems } }
}

function problemsOf({
  validation,
  validationContext = 'body',
}: Pick<FastifyError, 'validationContext'> & { validation: Array<{ instancePath: string; message?: string }> }): Array<{
  path: string
  message: string
}> {
  return validation.map(({ instancePath, message = 'is not valid' }) => ({
    path: instancePath.slice(1).replaceAll('/', '.') || validationContext,
    message,
  }))
}
