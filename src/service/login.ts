// Login for pages in a browser.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { SCOPES } from '../store/tokens.js'
import { GatewayError } from '../errors.js'
import type { Authenticator, NewLogin } from './auth.js'
import { codeBodySchema, loginBodySchema, type Login, loginSchema, type Me, meSchema } from './api/access.js'
import { nothingSchema } from './api/values.js'
import { setCookie } from './cookie.js'
import type { App, Caller } from './dependencies.js'
import type { LoginCodes } from './login-codes.js'
import { callerOf } from './routes/changes.js'
import { routesOf } from './route.js'

/** The rate limit applies only after the body is read, so it must be cheap to read. */
const LOGIN_BYTES = 1024

interface LoginDependencies {
  authenticator: Pick<Authenticator, 'login' | 'loginAs' | 'logout'>
  codes: Pick<LoginCodes, 'redeem'>
  /** The hash of the token for browsers that log in with a link. */
  linkToken(): Promise<string>
}

export function registerLoginRoutes(app: App, { authenticator, codes, linkToken }: LoginDependencies): void {
  const route = routesOf(app, 'login')
  const answer = async (request: FastifyRequest, reply: FastifyReply, newLogin: NewLogin): Promise<Login> => {
    const { caller, pageKey, ...login } = newLogin
    await authenticator.logout(request)
    reply.header('set-cookie', setCookie(request, login))
    return { ...meView(caller), page_key: pageKey }
  }

  app.route({
    method: 'POST',
    url: '/login',
    config: { scope: 'public', isLogin: true },
    bodyLimit: LOGIN_BYTES,
    schema: {
      summary: 'Log a browser in with a token: sets a cookie and returns a page key',
      tags: ['login'],
      body: loginBodySchema,
      response: { 200: loginSchema },
    },
    handler: async (request, reply) => answer(request, reply, await authenticator.login(request.body.token)),
  })

  app.route({
    method: 'POST',
    url: '/login/code',
    config: { scope: 'public', isLogin: true },
    bodyLimit: LOGIN_BYTES,
    schema: {
      summary: 'Log a browser in with the code of a link: sets a cookie and returns a page key',
      tags: ['login'],
      body: codeBodySchema,
      response: { 200: loginSchema },
    },
    handler: async (request, reply) => {
      if (!codes.redeem(request.body.code)) {
        const advice = 'Get a new one with "aetheel dashboard".'
        throw new GatewayError('unauthorized', `This link was already used or has expired. ${advice}`)
      }
      return answer(request, reply, await authenticator.loginAs(await linkToken()))
    },
  })

  route(
    'POST /logout',
    { scope: 'public' },
    'Log the browser out; the token stays valid',
    { response: { 204: nothingSchema } },
    async (request, reply) => {
      await authenticator.logout(request)
      return reply.header('set-cookie', setCookie(request)).code(204).send()
    },
  )

  route(
    'GET /me',
    { scope: 'read', allowsProjectTokens: true },
    'Show what the token allows',
    { response: { 200: meSchema } },
    async (request) => meView(callerOf(request)),
  )
}

function meView({ name, scope, projects }: Caller): Me {
  return { name, scopes: SCOPES.slice(0, SCOPES.indexOf(scope) + 1), projects: projects ?? null }
}
