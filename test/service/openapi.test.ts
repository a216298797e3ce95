import { describe, expect, it } from 'vitest'
import { allRoutes, createStage } from './app-stage.js'

interface Operation {
  security: unknown
  parameters?: Array<{ name: string; in: string }>
  responses: Record<string, { content?: object }>
}

type Paths = Record<string, Record<string, Operation>>

describe('/openapi.json', () => {
  it('is OpenAPI 3.1 with every route and its scope', async () => {
    const { app, dependencies } = await createStage()
    const { openapi, paths } = (await app.inject('/openapi.json')).json() as { openapi: string; paths: Paths }
    const described = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { security }]) => [`${method.toUpperCase()} ${path}`, security]),
    )
    const expected = allRoutes(dependencies)
      .filter(({ url }) => !['/', '/assets/:name', '/docs', '/docs/*', '/docs/api', '/openapi.json'].includes(url))
      .map(({ method, url, scope }) => [
        `${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`,
        scope === 'public' ? [] : [{ token: [scope] }, { cookie: [scope], pageKey: [scope] }],
      ])
    expect([openapi, Object.fromEntries(described)]).toEqual(['3.1.0', Object.fromEntries(expected)])
  })

  it('declares the parameters of every path, and how it fails', async () => {
    const { app } = await createStage()
    const { paths } = (await app.inject('/openapi.json')).json() as { paths: Paths }
    const lacking = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).flatMap(([method, { parameters = [], responses }]) => {
        const declared = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
        const needed = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
        const isWhole = needed.every((name) => declared.includes(name)) && responses['default']?.content !== undefined
        return isWhole ? [] : [`${method} ${path}`]
      }),
    )
    expect(lacking).toEqual([])
  })

  it('says that streams are streams, and errors JSON', async () => {
    const { app } = await createStage()
    const { paths } = (await app.inject({ url: '/openapi.json', headers: { host: 'localhost' } })).json()
    const contents = ['/projects/{id}/commands/{commandId}/events', '/metrics'].map((path) => {
      const { responses, parameters = [] } = paths[path].get
      const kinds = Object.entries(responses as Record<string, { content?: object }>)
      const named = (parameters as Array<{ in: string; name: string }>).filter((parameter) => parameter.in === 'header')
      return [kinds.map(([code, { content }]) => [code, Object.keys(content ?? {})]), named.map(({ name }) => name)]
    })
    expect(contents).toEqual([
      [
        [
          ['200', ['text/event-stream']],
          ['204', []],
          ['default', ['application/json']],
        ],
        ['last-event-id'],
      ],
      [
        [
          ['200', ['text/plain']],
          ['default', ['application/json']],
        ],
        [],
      ],
    ])
  })

  it('refers to nothing that is not in it', async () => {
    const { app } = await createStage()
    const document = (await app.inject('/openapi.json')).json() as object
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference)
    const missing = references.filter((reference = '') => {
      const steps = reference.replace(/^#\//, '').split('/')
      return (
        steps.reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], document) === undefined
      )
    })
    expect(missing).toEqual([])
  })
})

describe('/docs/api', () => {
  it('shows every operation, without a script, under a policy that allows only its style', async () => {
    const { app } = await createStage()
    const { paths } = (await app.inject('/openapi.json')).json() as { paths: Paths }
    const { headers, body } = await app.inject('/docs/api')
    const shown = [...body.matchAll(/<b>([A-Z]+)<\/b> <code>([^<]+)<\/code>/g)].map(
      ([, method, path]) => `${method} ${path}`,
    )
    const described = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect([
      new Set(shown),
      /<script|\son\w+=|https?:/i.test(body),
      headers['content-type'],
      headers['content-security-policy'],
    ]).toEqual([
      new Set(described),
      false,
      'text/html; charset=utf-8',
      expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[\w+/=]+'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
      ),
    ])
  })
})
