import { GatewayError } from '../../errors.js'
import type { TokenRecord } from '../../store/tokens.js'
import * as api from '../api/tokens.js'
import { nothingSchema } from '../api/values.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { createToken, revokeToken } from '../tokens.js'
import { toWire } from '../wire.js'
import { auditFor, callerOf } from './changes.js'

export function registerTokenRoutes(app: App, { config, gateway, now, newId }: ServiceDependencies): void {
  const route = routesOf(app, 'tokens')
  const { store } = gateway

  route(
    'GET /tokens',
    { scope: 'admin' },
    'List the tokens, newest first',
    { response: { 200: api.tokenListSchema } },
    async (request) => {
      const caller = callerOf(request)
      return { tokens: (await store.tokens.list()).map((token) => tokenView(token, caller)) }
    },
  )

  route(
    'POST /tokens',
    { scope: 'admin' },
    'Create a token. Only this response shows its value',
    { body: api.newTokenSchema, response: { 201: api.createdTokenSchema } },
    async (request, reply) => {
      const note = auditFor(request, now)
      const { token, record } = await createToken(request.body, { store, now, newId }, note)
      return reply.code(201).send({ ...tokenView(record, callerOf(request)), token })
    },
  )

  route(
    'DELETE /tokens/:id',
    { scope: 'admin' },
    'Revoke a token, and the logins made with it',
    { params: api.tokenParams, response: { 204: nothingSchema } },
    async (request, reply) => {
      const { id } = request.params
      const token = (await store.tokens.list()).find((known) => known.id === id)
      if (!token) throw new GatewayError('not_found', `There is no token ${id}. List them with GET /tokens.`)
      if (token.id === callerOf(request).tokenId) {
        throw new GatewayError('conflict', 'This request uses that token. Revoke it with another one.')
      }
      await revokeToken(token, config.home, store, auditFor(request, now), async (tokens) => {
        if ((await tokens.hashOfAdmin(now())) !== undefined) return
        throw new GatewayError('conflict', `${id} is the last admin token for all projects. Create another one first.`)
      })
      return reply.code(204).send()
    },
  )
}

function tokenView(token: TokenRecord, { tokenId }: Caller): api.Token {
  return toWire(api.tokenSchema, { ...token, lastUsedAt: token.usedAt, isCurrent: token.id === tokenId })
}
