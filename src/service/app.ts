// The HTTP API: guards, error format, description and routes. `server.ts` makes it listen.

import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { GatewayError } from '../errors.js'
import { packageVersion } from '../core/package-version.js'
import { adminTokenHash } from './admin-token.js'
import { Authenticator } from './auth.js'
import { registerDashboardRoutes } from './dashboard.js'
import type { App, ServiceDependencies } from './dependencies.js'
import { BODY_LIMIT_BYTES, NOT_JSON, refuseUnfinished, sendError } from './errors.js'
import { addGuards, checkSender, DEFAULT_LIMITS, type Limits, OpenResponses } from './guards.js'
import { LoginCodes } from './login-codes.js'
import { registerLoginRoutes } from './login.js'
import { registerManualRoutes } from './manual/routes.js'
import { describeApi, registerDescriptionRoutes } from './openapi.js'
import { registerPlatformRoutes } from './platform-routes.js'
import { registerRoutes } from './routes/index.js'
import { registerTicketRoute, Tickets } from './tickets.js'

/** Limit for receiving a request. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000
/** How often both are checked, so each may take this much longer. */
const CONNECTION_CHECK_MS = 2_000
/** Limit for answering, except event streams. Cloning a repository may take ten minutes. */
const ANSWER_TIMEOUT_MS = 660_000
const MAX_PARAMETER_CHARACTERS = 300
const FILE_TYPE = 'application/octet-stream'

export async function createApp(
  dependencies: ServiceDependencies,
  limits: Limits = DEFAULT_LIMITS,
  codes: Pick<LoginCodes, 'redeem'> = new LoginCodes(dependencies.now),
): Promise<App> {
  const { config, gateway, log, now, newId } = dependencies
  const { store, scrubber } = gateway
  const app: App = fastify({
    // We log ourselves; the framework would log URLs, which may contain tickets.
    logger: false,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    handlerTimeout: ANSWER_TIMEOUT_MS,
    http: { headersTimeout: HEADERS_TIMEOUT_MS, connectionsCheckingInterval: CONNECTION_CHECK_MS },
    routerOptions: { maxParamLength: MAX_PARAMETER_CHARACTERS },
    exposeHeadRoutes: false,
    genReqId: () => newId(),
    frameworkErrors: (error, request, reply) => {
      let shown: unknown = error
      try {
        checkSender(request, config, app.server.address())
      } catch (refusal) {
        // It comes before every other error, as on every route.
        shown = refusal
      }
      sendError(shown, request, reply, { log, scrubber })
    },
    clientErrorHandler: (error, socket) => {
      const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      refuseUnfinished(socket, isLate ? '408 Request Timeout' : '400 Bad Request')
    },
  }).withTypeProvider<ZodTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  // The door of all JSON except errors, which `sendError` writes: prompts and arguments are also read by clients other
  // than their sender.
  app.setSerializerCompiler((route: Parameters<typeof serializerCompiler>[0]) => {
    const serialize = serializerCompiler(route)
    return (answer) => scrubber.scrubJson(serialize(answer))
  })

  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    // Many libraries always send the header, even without a body.
    if (text === '') return done(null)
    return parseJson(request, text.toString(), (error, body) => {
      const advice = 'Check quotes, commas and line breaks.'
      done(
        error && new GatewayError('request_invalid', `The body is not valid JSON. ${advice}`, { cause: error }),
        body,
      )
    })
  })

  app.addContentTypeParser(FILE_TYPE, (request, body, done) => {
    if (request.routeOptions.config.takesFile) done(null, body)
    else done(new GatewayError('unsupported_media', NOT_JSON))
  })

  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, { log, scrubber }))
  app.addHook('onRequest', async (request, reply) => {
    // On the raw response, where event streams are written.
    reply.raw.setHeader('x-request-id', request.id)
    reply.raw.setHeader('cache-control', 'no-store')
  })
  app.addHook('preParsing', async (request) => {
    if (!request.routeOptions.config.takesFile) return
    request.fileType = request.headers['content-type']
    // An uploaded JSON file is not parsed.
    request.headers['content-type'] = FILE_TYPE
  })
  app.addHook('onResponse', async (request, reply) => logAnswer(request, reply))
  await app.register(helmet, { contentSecurityPolicy: { useDefaults: false, directives: NOTHING }, hsts: false })
  await app.register(rateLimit, { global: false })

  const tickets = new Tickets(now)
  const authenticator = new Authenticator({ tokens: store.tokens, tickets, scrubber, log, now })
  const open = new OpenResponses(limits)
  addGuards(app, { config, authenticator, open, limits })
  app.addHook('preClose', async () => open.endStreams())
  app.setNotFoundHandler((request) => {
    throw new GatewayError(
      'not_found',
      `There is no ${request.method} route on this path. See /docs/api for all routes.`,
    )
  })

  await describeApi(app, packageVersion())
  registerDescriptionRoutes(app)
  registerManualRoutes(app)
  registerDashboardRoutes(app, dependencies.dashboardDirectory)
  registerLoginRoutes(app, { authenticator, codes, linkToken: () => adminTokenHash(dependencies) })
  registerTicketRoute(app, tickets)
  registerRoutes(app, dependencies)
  await registerPlatformRoutes(app, dependencies.endpoints ?? [], config)
  return app

  function logAnswer(request: FastifyRequest, reply: FastifyReply): void {
    const { method, url: route } = request.routeOptions
    const durationMs = Math.round(reply.elapsedTime)
    const tokenId = request.caller?.tokenId
    log.debug('http.answered', { requestId: request.id, method, route, status: reply.statusCode, durationMs, tokenId })
  }
}

const NOTHING = { defaultSrc: ["'none'"], frameAncestors: ["'none'"] }
