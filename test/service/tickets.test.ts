import { describe, expect, it } from 'vitest'
import { hashOf } from '../../src/service/auth.js'
import type { App } from '../../src/service/dependencies.js'
import { bearer, createStage, type Stage, START_AT } from './app-stage.js'

const PATH = '/projects/site/feed/1'

describe('POST /tickets', () => {
  it('gives a ticket for one path, and says until when and how', async () => {
    const stage = await createStage({ addRoutes })
    const response = await askTicket(stage, PATH, await stage.tokenWith('read'))
    const { ticket } = response.json()
    expect([response.statusCode, response.json()]).toEqual([
      201,
      {
        ticket: expect.stringMatching(/^[\w-]{43}$/),
        expires_at: new Date(START_AT + 30_000).toISOString(),
        url: `${PATH}?ticket=${ticket}`,
      },
    ])
  })

  it('refuses an invalid path', async () => {
    const stage = await createStage({ addRoutes })
    const token = await stage.tokenWith('read')
    const paths = ['events', 'https://evil.example/', `${PATH}?ticket=x`, `${PATH}\r\n`, '']
    const statuses = await Promise.all(paths.map(async (path) => (await askTicket(stage, path, token)).statusCode))
    expect(statuses).toEqual(paths.map(() => 400))
  })
})

describe('a ticket', () => {
  it('opens its stream once', async () => {
    const stage = await createStage({ addRoutes })
    const { url } = (await askTicket(stage, PATH, await stage.tokenWith('read'))).json()
    const [first, second] = [await stage.app.inject(url), await stage.app.inject(url)]
    expect([first.statusCode, first.json(), second.statusCode, second.json().error.message]).toEqual([
      200,
      expect.objectContaining({ name: 'read' }),
      401,
      'The ticket was used, has expired or is for another path. Get a new one with POST /tickets.',
    ])
  })

  it('opens no other stream, and is used up by the attempt', async () => {
    const stage = await createStage({ addRoutes })
    const { ticket } = (await askTicket(stage, PATH, await stage.tokenWith('read'))).json()
    const other = await stage.app.inject(`/projects/site/feed/2?ticket=${ticket}`)
    const own = await stage.app.inject(`${PATH}?ticket=${ticket}`)
    expect([other.statusCode, own.statusCode]).toEqual([401, 401])
  })

  it('opens only event streams', async () => {
    const stage = await createStage({ addRoutes })
    const token = await stage.tokenWith('admin')
    const { ticket } = (await askTicket(stage, PATH, token)).json()
    const used = await stage.app.inject(`/plain?ticket=${ticket}`)
    expect([used.statusCode, (await askTicket(stage, '/plain', token)).statusCode]).toEqual([401, 400])
  })

  it('is too old after 30 seconds', async () => {
    const stage = await createStage({ addRoutes })
    const { url } = (await askTicket(stage, PATH, await stage.tokenWith('read'))).json()
    stage.clock.now += 30_000
    expect((await stage.app.inject(url)).statusCode).toBe(401)
  })

  it('is worth no more than its token, when it is used', async () => {
    const stage = await createStage({ addRoutes })
    const [revoked, foreign] = [await stage.tokenWith('read'), await stage.tokenWith('read', { projects: ['other'] })]
    const [first, second] = [await askTicket(stage, PATH, revoked), await askTicket(stage, PATH, foreign)]
    await stage.store.tokens.remove((await stage.store.tokens.find(hashOf(revoked)))?.id ?? '')
    const answers = await Promise.all([stage.app.inject(first.json().url), stage.app.inject(second.json().url)])
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 403])
  })
})

function askTicket({ app }: Stage, path: string, token: string) {
  return app.inject({ method: 'POST', url: '/tickets', headers: bearer(token), payload: { path } })
}

function addRoutes(app: App): void {
  const config = { scope: 'read', isStream: true } as const
  app.get('/projects/:id/feed/:number', { config }, async ({ caller }) => caller)
  app.get('/plain', { config: { scope: 'read' } }, async ({ caller }) => caller)
}
