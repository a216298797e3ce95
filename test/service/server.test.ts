import { once } from 'node:events'
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startHttpServer } from '../../src/service/server.js'
import { createStage } from './app-stage.js'
import { listen } from '../kit/loopback.js'

describe('startHttpServer', () => {
  it('creates the first token in a private file, and accepts it', async () => {
    const { dependencies, home } = await createStage()
    const { url, newTokenFile, close } = await startHttpServer(dependencies)
    onTestFinished(close)
    const file = join(home, 'http-token')
    const token = readFileSync(file, 'utf8').trim()
    const response = await fetch(`${url}/tickets`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ path: '/projects/x/streams/y' }),
    })
    expect([newTokenFile, statSync(file).mode & 0o777, response.status]).toEqual([file, 0o600, 201])
  })

  it('puts the first token on record', async () => {
    const { dependencies, store } = await createStage()
    onTestFinished((await startHttpServer(dependencies)).close)
    const [token] = await store.tokens.list()
    expect(await store.audit.list(10)).toEqual([
      {
        id: expect.any(String),
        at: token?.createdAt,
        actor: 'gateway',
        action: 'token.create',
        subject: token?.id,
        detail: 'first: admin, all projects',
      },
    ])
  })

  it('makes no second one', async () => {
    const { dependencies, store } = await createStage()
    await (await startHttpServer(dependencies)).close()
    const { newTokenFile, close } = await startHttpServer(dependencies)
    onTestFinished(close)
    expect([newTokenFile, (await store.tokens.list()).map(({ name, scope }) => ({ name, scope }))]).toEqual([
      undefined,
      [{ name: 'first', scope: 'admin' }],
    ])
  })

  it('writes the token in place, not where a link leads', async () => {
    const { dependencies, home } = await createStage()
    const elsewhere = join(home, 'elsewhere')
    writeFileSync(elsewhere, 'untouched')
    symlinkSync(elsewhere, join(home, 'http-token'))
    onTestFinished((await startHttpServer(dependencies)).close)
    expect([readFileSync(elsewhere, 'utf8'), readFileSync(join(home, 'http-token'), 'utf8')]).toEqual([
      'untouched',
      expect.stringMatching(/^aet_[\w-]{43}\n$/),
    ])
  })

  it('refuses to be open to other machines without a token, and creates none', async () => {
    const { dependencies, store } = await createStage({ environment: { HTTP_HOST: '0.0.0.0' } })
    await expect(startHttpServer(dependencies)).rejects.toMatchObject({
      code: 'http_unavailable',
      message:
        'HTTP_HOST=0.0.0.0 opens the HTTP API to other machines, but there is no token. Create one first with "aetheel tokens create", or set HTTP_HOST=127.0.0.1.',
    })
    expect(await store.tokens.list()).toEqual([])
  })

  it('is open to other machines with one', async () => {
    const { dependencies, tokenWith } = await createStage({ environment: { HTTP_HOST: '0.0.0.0' } })
    await tokenWith('read')
    const { url, close } = await startHttpServer(dependencies)
    onTestFinished(close)
    expect(url).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/)
  })

  it('says which port is taken, and what to do', async () => {
    const port = await listen(createServer())
    const { dependencies } = await createStage({ environment: { HTTP_PORT: String(port) } })
    await expect(startHttpServer(dependencies)).rejects.toMatchObject({
      code: 'http_unavailable',
      message: `Another program already listens on port ${port} of 127.0.0.1. Set HTTP_PORT to another port, or set HTTP_ENABLED=false.`,
    })
  })
})

describe('the end of the server', () => {
  it('ends event streams completely, even one that is being written to', async () => {
    const { app, tokenWith } = await createStage({
      addRoutes: (added) => {
        added.get('/stream', { config: { scope: 'read', isStream: true } }, async (_request, reply) => {
          reply.hijack()
          reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
          const timer = setInterval(() => reply.raw.write(': tick\n\n'), 1)
          reply.raw.once('close', () => clearInterval(timer))
        })
      },
    })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const headers = { authorization: `Bearer ${await tokenWith('read')}` }
    const response = await fetch(`${url}/stream`, { headers })
    const read = response.text()
    await app.close()
    expect([response.status, await read]).toEqual([200, expect.stringMatching(/^(: tick\n\n)*$/)])
  })

  it('does not wait for ever for a client that never ends its request', async () => {
    const { dependencies, tokenWith } = await createStage()
    const token = await tokenWith('read')
    const { url, close } = await startHttpServer(dependencies)
    const { host, port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    const ended = once(socket, 'close')
    const head = ['POST /tickets HTTP/1.1', `host: ${host}`, `authorization: Bearer ${token}`, 'content-length: 100']
    // The answer to the first request says that the second one has been seen, too.
    socket.write(`GET /openapi.json HTTP/1.1\r\nhost: ${host}\r\n\r\n${head.join('\r\n')}\r\n\r\n{`)
    await once(socket, 'data')
    await close()
    expect(await ended).toEqual([expect.any(Boolean)])
  })
})
