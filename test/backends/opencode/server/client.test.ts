import { expect, it, onTestFinished } from 'vitest'
import { OpenCodeClient } from '../../../../src/backends/opencode/server/client.js'
import { ExternalServer } from '../../../../src/backends/opencode/server/servers.js'
import { FakeOpenCode, promptOf } from './fake-opencode.js'
import { serveHttp } from '../../../kit/loopback.js'

it('creates a session, sends a message and reads both', async () => {
  const server = await FakeOpenCode.start('/')
  onTestFinished(() => server.close())
  const client = new OpenCodeClient(server.endpoint)
  const { id } = await client.createSession({ directory: '/', title: 'A title' })
  const text = promptOf({ do: 'say', texts: ['Hello'] }, { do: 'step', reason: 'stop' })
  const answer = await client.sendMessage(id, { parts: [{ type: 'text', text }] })
  await client.abortSession(id)
  expect([await client.getSession(id), answer, await client.messages(id, 1), await client.statuses('/')]).toMatchObject(
    [
      { id, directory: '/' },
      { info: { role: 'assistant' }, parts: [{ type: 'text', text: 'Hello' }, { type: 'step-finish' }] },
      [answer],
      {},
    ],
  )
})

it.each([
  ['a web page', 200, 'text/html', '<html>', 'strange', /is not an OpenCode server/],
  ['a refusal with words', 500, 'application/json', '{"data":{"message":"It broke"}}', 'status', /^It broke$/],
  ['a refusal with other words', 400, 'application/json', '{"message":"Bad"}', 'status', /^Bad$/],
  ['a refusal without words', 502, 'text/plain', '', 'status', /answered GET \/session\/ses_1 with 502/],
  ['a refusal with a page', 502, 'text/html', '<html>', 'status', /^The OpenCode server answered .+ with 502\.$/],
  ['a page that is not there', 404, 'text/html', '<html>', 'strange', /is not an OpenCode server/],
  ['a redirection', 302, 'text/plain', '', 'status', /with 302/],
  ['an answer that is too large', 200, 'application/json', `"${'x'.repeat(2_000)}"`, 'too_large', /is too large/],
] as const)('reports what is wrong with %s', async (_what, status, type, body, kind, message) => {
  const url = await serveHttp((_request, response) => {
    response.writeHead(status, { 'content-type': type, location: 'http://127.0.0.1:9/' }).end(body)
  })
  const client = new OpenCodeClient({ url, username: 'opencode', password: 'open sesame' }, { maxBytes: 1_000 })
  await expect(client.getSession('ses_1')).rejects.toMatchObject({ kind, message: expect.stringMatching(message) })
})

it.each(['{"status":"ok"}', 'null', '[]', '"healthy"', '{"healthy":false,"version":"1"}'])(
  'takes nothing for a healthy server that does not say so: %s',
  async (body) => {
    const url = await serveHttp((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    )
    const probe = await new ExternalServer({ url, username: 'opencode' }).probe()
    expect(probe).toMatchObject({ isFound: false, problems: [expect.stringMatching(/is not an OpenCode server/)] })
  },
)

it('reports a broken connection', async () => {
  const url = await serveHttp((request) => request.socket.destroy())
  const client = new OpenCodeClient({ url, username: 'opencode' })
  await expect(client.health()).rejects.toMatchObject({ kind: 'unreachable' })
})

it('tries another connection when one breaks, but sends no prompt twice', async () => {
  const paths: string[] = []
  const url = await serveHttp((request, response) => {
    paths.push(request.url ?? '')
    if (paths.length !== 2) request.socket.destroy()
    else response.writeHead(200, { 'content-type': 'application/json' }).end('true')
  })
  const client = new OpenCodeClient({ url, username: 'opencode' })
  await client.abortSession('ses_1')
  await expect(client.sendMessage('ses_1', { parts: [] })).rejects.toMatchObject({ kind: 'unreachable' })
  expect(paths).toEqual(['/session/ses_1/abort', '/session/ses_1/abort', '/session/ses_1/message'])
})

it('takes only events for events', async () => {
  const url = await serveHttp((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
  )
  const client = new OpenCodeClient({ url, username: 'opencode' })
  const events = client.subscribeEvents(new AbortController().signal)
  await expect(events).rejects.toMatchObject({ kind: 'strange' })
})
