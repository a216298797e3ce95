import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { GatewayError } from '../../src/errors.js'
import type { App } from '../../src/service/dependencies.js'
import { bearer, createStage } from './app-stage.js'

describe('an error', () => {
  it('of a caller has the code, the status and the sentence of its GatewayError', async () => {
    const { app } = await createStage({ addRoutes })
    const response = await app.inject('/fails/conflict')
    expect([response.statusCode, response.headers['content-type'], response.json()]).toEqual([
      409,
      'application/json; charset=utf-8',
      { error: { code: 'conflict', message: 'The id is taken. Choose another.' } },
    ])
  })

  it('of the gateway says only where to look, and the log has it', async () => {
    const { app, logged } = await createStage({ addRoutes })
    const response = await app.inject('/fails/inside')
    const requestId = response.headers['x-request-id']
    const line = logged.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'http.failed')
    expect([response.statusCode, response.json(), line]).toEqual([
      500,
      {
        error: {
          code: 'internal',
          message: `Internal error. Look for request ${String(requestId)} in the log of the gateway.`,
        },
      },
      expect.objectContaining({
        requestId,
        method: 'GET',
        route: '/fails/:how',
        code: 'internal',
        error: 'secret detail',
      }),
    ])
  })

  it('of an answer that breaks its own schema is one of the gateway', async () => {
    const { app } = await createStage({ addRoutes })
    const response = await app.inject('/wrong-answer')
    expect([response.statusCode, response.json().error.code]).toEqual([500, 'internal'])
  })

  it('of a request names each problem by its field', async () => {
    const { app } = await createStage({ addRoutes })
    const response = await app.inject({
      method: 'POST',
      url: '/checked?limit=many',
      payload: { prompt: 7, options: { tools: [1] }, extra: true },
    })
    const query = await app.inject({ method: 'POST', url: '/checked?limit=many', payload: { prompt: 'x' } })
    expect([response.statusCode, response.json(), query.json().error.problems]).toEqual([
      400,
      {
        error: {
          code: 'request_invalid',
          message:
            'Invalid request. prompt: Invalid input: expected string, received number; options.tools.0: Invalid input: expected string, received number; body: Unrecognized key: "extra"',
          problems: [
            { path: 'prompt', message: 'Invalid input: expected string, received number' },
            { path: 'options.tools.0', message: 'Invalid input: expected string, received number' },
            { path: 'body', message: 'Unrecognized key: "extra"' },
          ],
        },
      },
      [{ path: 'limit', message: 'Invalid input: expected number, received NaN' }],
    ])
  })

  it('is in the same shape whatever refuses the request', async () => {
    const { app, tokenWith } = await createStage({ addRoutes })
    const headers = bearer(await tokenWith('admin'))
    const json = { ...headers, 'content-type': 'application/json' }
    const requests = {
      'no such path': { url: '/nowhere' },
      'no such method': { method: 'DELETE', url: '/docs' },
      'a path that cannot be decoded': { url: '/%zz' },
      'a parameter that is too long': { url: `/fails/${'x'.repeat(400)}` },
      'no JSON': { method: 'POST', url: '/checked', headers: json, payload: '{' },
      'no body': { method: 'POST', url: '/checked', headers: json, payload: '' },
      'another type': {
        method: 'POST',
        url: '/checked',
        headers: { ...headers, 'content-type': 'text/xml' },
        payload: '<a/>',
      },
      'a prototype': { method: 'POST', url: '/checked', headers: json, payload: '{"__proto__":{"isAdmin":true}}' },
      'too long': { method: 'POST', url: '/checked', headers: json, payload: `"${'x'.repeat(1024 * 1024)}"` },
    } as const
    const answers = await Promise.all(
      Object.entries(requests).map(async ([name, request]) => {
        const response = await app.inject(request)
        const { code, message } = response.json().error
        return [name, response.statusCode, code, typeof message]
      }),
    )
    expect(answers).toEqual([
      ['no such path', 404, 'not_found', 'string'],
      ['no such method', 404, 'not_found', 'string'],
      ['a path that cannot be decoded', 400, 'request_invalid', 'string'],
      ['a parameter that is too long', 400, 'request_invalid', 'string'],
      ['no JSON', 400, 'request_invalid', 'string'],
      ['no body', 400, 'request_invalid', 'string'],
      ['another type', 415, 'unsupported_media', 'string'],
      ['a prototype', 400, 'request_invalid', 'string'],
      ['too long', 413, 'too_large', 'string'],
    ])
  })
})

describe('an answer', () => {
  it('carries an id of its request, is not kept, and lets a browser do nothing with it', async () => {
    const { app } = await createStage({ addRoutes })
    const { headers } = await app.inject('/public')
    const names = [
      'cache-control',
      'content-security-policy',
      'x-content-type-options',
      'x-frame-options',
      'referrer-policy',
      'cross-origin-resource-policy',
    ]
    expect([headers['x-request-id'], names.map((name) => headers[name])]).toEqual([
      expect.stringMatching(/^[\da-f-]{36}$/),
      ['no-store', "default-src 'none';frame-ancestors 'none'", 'nosniff', 'SAMEORIGIN', 'no-referrer', 'same-origin'],
    ])
  })

  it('is logged by its route, without any of its content', async () => {
    const { app, logged, tokenWith } = await createStage({ addRoutes })
    await app.inject({
      method: 'POST',
      url: '/checked?limit=3&ticket=hidden-query',
      headers: bearer(await tokenWith('admin')),
      payload: { prompt: 'hidden-prompt' },
    })
    const line = logged.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'http.answered')
    expect([line, logged.join('').includes('hidden')]).toEqual([
      expect.objectContaining({ requestId: expect.any(String), method: 'POST', route: '/checked', status: 200 }),
      false,
    ])
  })
})

function addRoutes(app: App): void {
  app.get('/public', { config: { scope: 'public' } }, async () => 'hello')
  app.get('/fails/:how', { config: { scope: 'public' } }, async ({ params }) => {
    const { how } = params as { how: string }
    if (how === 'conflict') throw new GatewayError('conflict', 'The id is taken. Choose another.')
    throw new Error('secret detail')
  })
  app.get(
    '/wrong-answer',
    { config: { scope: 'public' }, schema: { response: { 200: z.object({ count: z.number() }) } } },
    async () => ({ count: 'many' }) as unknown as { count: number },
  )
  app.post(
    '/checked',
    {
      config: { scope: 'public' },
      schema: {
        querystring: z.object({ limit: z.coerce.number().default(1) }),
        body: z.strictObject({
          prompt: z.string(),
          options: z.strictObject({ tools: z.array(z.string()) }).optional(),
        }),
      },
    },
    async ({ query }) => query,
  )
}
