import { existsSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { ControlClient } from '../../../src/cli/control/client.js'
import type { Handlers, Peer, Push } from '../../../src/cli/control/protocol.js'
import { MAX_REQUEST_BYTES } from '../../../src/cli/control/protocol.js'
import { startControlServer } from '../../../src/cli/control/server.js'
import { GatewayError } from '../../../src/errors.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'
import { recordingLog } from '../../kit/log.js'

const STATUS = { id: 'one', pid: 1, startedAt: 2, backend: 'claude' }

it('answers with the result', async () => {
  const { client } = await setup()
  expect(await client.call('status', {})).toEqual(STATUS)
})

it('answers each of several calls that are under way, in whatever order they end', async () => {
  const gates = new Map<string, () => void>()
  const { client } = await setup({
    'chat.command': ({ line }) =>
      new Promise((resolve) => {
        gates.set(line, () => resolve({ answer: line }))
      }),
  })
  const calls = ['a', 'b'].map((line) => client.call('chat.command', { address: 'x', author: 'y', line }))
  await expect.poll(() => gates.size).toBe(2)
  gates.get('b')?.()
  gates.get('a')?.()
  expect(await Promise.all(calls)).toEqual([{ answer: 'a' }, { answer: 'b' }])
})

it("passes on the caller's mistake", async () => {
  const { client } = await setup({
    'queue.retry': async () => {
      throw new GatewayError('not_found', 'There is no message x.')
    },
  })
  await expect(client.call('queue.retry', { id: 'x' })).rejects.toThrow(
    new GatewayError('not_found', 'There is no message x.'),
  )
})

it('reports an internal error, and logs it', async () => {
  const { client, logged } = await setup({
    status: async () => {
      throw new TypeError('x is undefined')
    },
  })
  const error = await client.call('status', {}).catch((thrown: unknown) => thrown)
  expect([error, logged]).toEqual([
    new GatewayError('internal', 'The gateway failed: x is undefined. See its log.'),
    [['control.failed', { method: 'status', error: 'x is undefined' }]],
  ])
})

it.for<[string, string, string]>([
  ['a method of another version', '{"id":7,"method":"nope"}', 'Unknown method "nope". Known: status'],
  ['a method of every object', '{"id":7,"method":"toString"}', 'Unknown method "toString"'],
  ['parameters that are missing', '{"id":7,"method":"queue.retry"}', 'queue.retry: id: '],
  [
    'a name with control characters',
    '{"id":7,"method":"queue.retry","params":{"id":"a\\u0000"}}',
    'queue.retry: id: must',
  ],
])('refuses %s', async ([, line, message]) => {
  const { path } = await setup({ 'queue.retry': async ({ id }) => ({ id, kind: 'message' }) })
  const [answer] = await exchange(path, `${line}\n`)
  expect(answer).toEqual({ id: 7, error: { code: 'request_invalid', message: expect.stringContaining(message) } })
})

it('ignores unknown fields of a request', async () => {
  const { path } = await setup()
  const answers = await exchange(path, '{"id":"s","method":"status","params":{"verbose":true},"trace":1}\n')
  expect(answers).toEqual([{ id: 's', result: STATUS }])
})

it('answers garbage with an error, and continues', async () => {
  const { path } = await setup()
  const answers = await exchange(path, 'GET / HTTP/1.1\r\n\r\n[]\n{"id":1,"method":"status"}\n')
  const refusal = {
    id: null,
    error: { code: 'request_invalid', message: expect.stringContaining('Invalid request.') },
  }
  expect(answers).toEqual([refusal, refusal, { id: 1, result: STATUS }])
})

it('refuses a line that is too long, and hurts nobody else by it', async () => {
  const { path, client } = await setup()
  const answers = await exchange(path, 'x'.repeat(MAX_REQUEST_BYTES + 1))
  expect([answers, await client.call('status', {})]).toEqual([
    [
      {
        id: null,
        error: { code: 'request_invalid', message: 'The request is too long: more than 8 MiB on one line.' },
      },
    ],
    STATUS,
  ])
})

it('does not send a request that is too long', async () => {
  const { client } = await setup()
  const call = client.call('chat.command', { address: 'x', author: 'y', line: 'x'.repeat(MAX_REQUEST_BYTES) })
  await expect(call).rejects.toThrow('That is longer than 8 MiB. Put it in a file and name the file.')
})

it('pushes to whoever has attached, until they leave', async () => {
  const peers = new Set<Peer>()
  const pushes: Push[] = []
  const { path } = await setup({
    'chat.attach': async (_, peer) => {
      peers.add(peer)
      peer.onClose(() => peers.delete(peer))
      return {}
    },
  })
  const client = await ControlClient.connect(path, (push) => pushes.push(push))
  await client?.call('chat.attach', { address: 'x' })
  const push: Push = {
    kind: 'reply',
    isLast: true,
    idempotencyKey: 'k',
    address: 'x',
    text: 'Hi',
    notes: [],
    isError: false,
    createdAt: 1,
    attempt: 1,
  }
  for (const peer of peers) peer.push(push)
  await expect.poll(() => pushes).toEqual([push])
  await client?.close()
  await expect.poll(() => peers.size).toBe(0)
})

it('lets go of a client that does not read', async () => {
  let peer: Peer | undefined
  const { path, logged } = await setup({
    'chat.attach': async (_, attached) => {
      peer = attached
      return {}
    },
  })
  const socket = open(path)
  socket.write('{"id":1,"method":"chat.attach","params":{"address":"x"}}\n')
  await expect.poll(() => peer).toBeDefined()
  socket.pause()
  const reply = { isLast: true, idempotencyKey: 'k', address: 'x', notes: [], isError: false, createdAt: 1, attempt: 1 }
  for (let count = 0; count < 30; count += 1) peer?.push({ kind: 'reply', ...reply, text: 'x'.repeat(1024 * 1024) })
  expect(logged).toEqual([['control.client-dropped', { unreadBytes: expect.any(Number) }]])
})

it('opens the socket only to its owner', async () => {
  const { path } = await setup()
  expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
})

it('takes the place of a socket that was left', async () => {
  const { path } = await setup({}, (place) => writeFileSync(place, ''))
  const client = await ControlClient.connect(path)
  expect(await client?.call('status', {})).toEqual(STATUS)
  await client?.close()
})

it('says what to do when the path is too long', async () => {
  const start = startControlServer(`/tmp/${'a'.repeat(120)}/gateway.sock`, {}, recordingLog())
  await expect(start).rejects.toThrow(/is too long for a socket: 138 bytes, .*Choose a shorter AETHEEL_HOME\./)
})

it('finds nobody if no gateway listens', async () => {
  const { path, close } = await setup()
  await close()
  expect([await ControlClient.connect(path), existsSync(path)]).toEqual([undefined, false])
})

it('answers pending requests before it closes', async () => {
  let finish = (): void => {}
  const { client, close } = await setup({
    status: () =>
      new Promise((resolve) => {
        finish = () => resolve(STATUS)
      }),
  })
  const call = client.call('status', {})
  await expect.poll(() => finish.toString()).toContain('resolve')
  const closed = close()
  finish()
  expect(await call).toEqual(STATUS)
  await closed
  await client.closed
  await expect(client.call('status', {})).rejects.toThrow('The gateway is no longer connected.')
})

async function setup(handlers: Partial<Handlers> = {}, prepare: (path: string) => void = () => {}) {
  const path = join(temporaryDirectory(), 'gateway.sock')
  prepare(path)
  const log = recordingLog()
  const server = await startControlServer(path, { status: async () => STATUS, ...handlers }, log)
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= server.close())
  const client = await ControlClient.connect(path)
  if (!client) throw new Error('Nobody listens')
  onTestFinished(close)
  return { path, client, logged: log.warnings, close }
}

function open(path: string): Socket {
  const socket = connect(path)
  onTestFinished(() => void socket.destroy())
  return socket.on('error', () => {})
}

/** What is answered to these bytes, up to the end of the connection. */
async function exchange(path: string, request: string): Promise<unknown[]> {
  const socket = open(path)
  socket.end(request)
  const answers = await text(socket)
  return answers
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
}
