// Login for pages in a browser.

import { SCOPES } from '../store/tokens.js'
import type { Authenticator } from './auth.js'
import { loginBodySchema, loginSchema, type Me, meSchema } from './api/access.js'
import { nothingSchema } from './api/values.js'
import { setCookie } from './cookie.js'
import type { App, Caller } from './dependencies.js'
import { callerOf } from './routes/changes.js'
import { routesOf } from './route.js'

/** The rate limit applies only after the body is read, so it must be cheap to read. */
const LOGIN_BYTES = 1024

export function registerLoginRoutes(app: App, authenticator: Pick<Authenticator, 'login' | 'logout'>): void {
  const route = routesOf(app, 'login')
  app.route({
    method: 'POST',
    url: '/login',
    config: { scope: 'public', isLogin: true },
    bodyLimit: LOGIN_BYTES,
    schema: {
      summary: 'Log in a page in a browser, by a cookie and a key',
      tags: ['login'],
      body: loginBodySchema,
      response: { 200: loginSchema },
    },
    handler: async (request, reply) => {
      const { caller, pageKey, ...login } = await authenticator.login(request.body.token)
      await authenticator.logout(request)
      return reply.header('set-cookie', setCookie(request, login)).send({ ...meView(caller), page_key: pageKey })
    },
  })

  route(
    'POST /logout',
    { scope: 'public' },
    'End the login; the token stays good',
    { response: { 204: nothingSchema } },
    async (request, reply) => {
      await authenticator.logout(request)
      return reply.header('set-cookie', setCookie(request)).code(204).send()
    },
  )

  route(
    'GET /me',
    { scope: 'read', allowsProjectTokens: true },
    'What the token of this request allows',
    { response: { 200: meSchema } },
    async (request) => meView(callerOf(request)),
  )
}

function meView({ name, scope, projects }: Caller): Me {
  return { name, scopes: SCOPES.slice(0, SCOPES.indexOf(scope) + 1), projects: projects ?? null }
}
