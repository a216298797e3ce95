import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import type { HookConfig } from '../../src/config/schema.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { HookManager, MAX_WAITING_CALLS } from '../../src/runtime/hook-manager.js'
import { livingProcesses } from '../kit/living-processes.js'
import { freePort, serveHttp } from '../kit/loopback.js'
import { processDirectory } from '../kit/temporary-directory.js'
import { recordingLog } from '../kit/log.js'

const AT = '2026-01-02T03:04:05.000Z'
const SECRET = 'sk-0123456789'

describe('a hook that is a command', () => {
  it('gets what happened as JSON on stdin, and the name of the hook', async () => {
    const { create, read } = setup()
    const { hooks, warnings } = create([shell('cat > told; echo $AETHEEL_HOOK > name')])
    hooks.fire('run-finished', { runId: 'r1', nested: { text: 'a "b"\n🦆' } })
    await hooks.drained()
    expect({ told: JSON.parse(read('told')), name: read('name'), warnings }).toEqual({
      told: { hook: 'run-finished', at: AT, runId: 'r1', nested: { text: 'a "b"\n🦆' } },
      name: 'run-finished\n',
      warnings: [],
    })
  })

  it('is told no known secret', async () => {
    const { create, read } = setup()
    const { hooks } = create([shell('cat > told', { on: ['error'] })])
    hooks.fire('error', { runId: 'r1', message: `401 for ${SECRET}` })
    await hooks.drained()
    expect(JSON.parse(read('told'))).toEqual({ hook: 'error', at: AT, runId: 'r1', message: '401 for [secret]' })
  })

  it('sees the environment that an agent would, and no secret of the gateway', async () => {
    const { create, read } = setup()
    const environment = {
      PATH: '/usr/bin:/bin',
      LANG: 'C.UTF-8',
      GH_TOKEN: 'asked for',
      ANTHROPIC_API_KEY: 'private',
      DISCORD_BOT_TOKEN: 'private',
      AETHEEL_HOME: 'private',
      OTHER: 'private',
    }
    const { hooks } = create([shell('env > variables')], { environment, passVariables: ['GH_TOKEN', 'DISCORD_*'] })
    hooks.fire('run-finished', {})
    await hooks.drained()
    const set = /^(?:AETHEEL_RUN_ID|PWD|OLDPWD|_|SHLVL)=/
    const variables = read('variables').trim().split('\n')
    expect(variables.filter((variable) => !set.test(variable)).toSorted()).toEqual([
      'AETHEEL_HOOK=run-finished',
      'GH_TOKEN=asked for',
      'LANG=C.UTF-8',
      'PATH=/usr/bin:/bin',
    ])
  })

  it('is told only what it asked for', async () => {
    const { create, read } = setup()
    const { hooks } = create([
      shell('echo one $AETHEEL_HOOK >> one', { on: ['run-started', 'error'] }),
      shell('echo two $AETHEEL_HOOK >> two', { on: ['error'] }),
    ])
    for (const hook of ['message-received', 'run-started', 'reply-sent', 'error'] as const) hooks.fire(hook, {})
    await hooks.drained()
    expect([read('one'), read('two')]).toEqual(['one run-started\none error\n', 'two error\n'])
  })

  it('gets its calls one at a time and in order, however fast they come', async () => {
    const { create, read } = setup()
    const { hooks } = create([shell('mkdir busy && cat >> order && echo >> order && rmdir busy')])
    for (let index = 0; index < 10; index += 1) hooks.fire('run-finished', { index })
    await hooks.drained()
    const lines = read('order').trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('does not wait for another hook', async () => {
    const { create, exists } = setup()
    const { hooks } = create([shell('sleep 1000'), shell('touch quick')])
    hooks.fire('run-finished', {})
    await expect.poll(() => exists('quick')).toEqual(true)
    await hooks.stop()
  })

  it.each<[string, HookConfig, string]>([
    ['fails', shell('echo no such host >&2; exit 4'), 'sh ended with exit code 4: no such host'],
    ['takes too long', shell('sleep 1000', { timeoutMs: 300 }), 'sh did not finish within 300 ms'],
    [
      'does not exist',
      { on: ['run-finished'], command: ['aetheel-no-such-command', '--token=secret'], timeoutMs: 1000 },
      'aetheel-no-such-command was not found, or is not executable',
    ],
  ])('that %s is logged, and leaves nothing behind', async (_, definition, reason) => {
    const { create, alive } = setup()
    const { hooks, warnings } = create([definition])
    hooks.fire('run-finished', { text: 'private' })
    await hooks.drained()
    expect({ warnings, alive: alive() }).toEqual({
      warnings: [['hook.failed', { hook: 'run-finished', reason }]],
      alive: [],
    })
  })

  it('continues with the next call after one has failed', async () => {
    const { create, exists } = setup()
    const { hooks } = create([shell('test -e failed && touch worked; touch failed; exit 1')])
    hooks.fire('run-finished', {})
    hooks.fire('run-finished', {})
    await hooks.drained()
    expect(exists('worked')).toEqual(true)
  })

  it('loses calls if too many wait, and says so once until the queue is empty', async () => {
    const { create, read } = setup()
    const { hooks, warnings } = create([shell('echo x >> calls')])
    for (let round = 0; round < 2; round += 1) {
      for (let index = 0; index < MAX_WAITING_CALLS + 5; index += 1) hooks.fire('run-finished', {})
      await hooks.drained()
    }
    const dropped = ['hook.dropped', { hook: 'run-finished', target: 'sh', reason: '100 calls are already waiting' }]
    expect({ calls: read('calls').length / 2, warnings }).toEqual({
      calls: 2 * MAX_WAITING_CALLS,
      warnings: [dropped, dropped],
    })
  })

  it('is ended by a stop, and waiting or later calls do not begin', async () => {
    const { create, read, exists, alive } = setup()
    const { hooks, warnings } = create([shell('echo x >> calls; setsid sleep 1000')])
    for (let index = 0; index < 3; index += 1) hooks.fire('run-finished', {})
    await expect.poll(() => exists('calls')).toEqual(true)
    await hooks.stop()
    hooks.fire('run-finished', {})
    await hooks.drained()
    expect({ calls: read('calls'), alive: alive(), warnings }).toEqual({
      calls: 'x\n',
      alive: [],
      warnings: [
        [
          'hook.dropped',
          { hook: 'run-finished', target: 'sh', reason: 'the gateway stopped while 2 calls were waiting' },
        ],
        ['hook.failed', { hook: 'run-finished', reason: 'sh was stopped' }],
      ],
    })
  })
})

describe('a hook that is a URL', () => {
  it('gets what happened as a POST of JSON', async () => {
    const received: unknown[] = []
    const url = await serve(({ method, url, headers }, response, body) => {
      received.push({ method, url, type: headers['content-type'], body: JSON.parse(body) })
      response.writeHead(204).end()
    })
    const { hooks, warnings } = setup().create([post(`${url}/told?by=aetheel`)])
    hooks.fire('reply-sent', { messageId: 'm1' })
    await hooks.drained()
    expect({ received, warnings }).toEqual({
      received: [
        {
          method: 'POST',
          url: '/told?by=aetheel',
          type: 'application/json',
          body: { hook: 'reply-sent', at: AT, messageId: 'm1' },
        },
      ],
      warnings: [],
    })
  })

  it('gets the user and password of its address as a header', async () => {
    const received: unknown[] = []
    const url = await serve((request, response) => {
      received.push(request.headers.authorization)
      response.end()
    })
    const { hooks, warnings } = setup().create([post(url.replace('://', '://ann:p%40ss@'))])
    hooks.fire('reply-sent', {})
    await hooks.drained()
    expect({ received, warnings }).toEqual({
      received: [`Basic ${Buffer.from('ann:p@ss').toString('base64')}`],
      warnings: [],
    })
  })

  it.each<[string, Listener, string, number?]>([
    ['refuses', (_, response) => response.writeHead(500).end('private'), 'answered with status 500'],
    [
      'sends elsewhere',
      (_, response) => response.writeHead(307, { location: '/other' }).end(),
      'could not be reached: unexpected redirect',
    ],
    ['hangs up', (request) => request.socket.destroy(), 'could not be reached: other side closed'],
    ['never answers', () => {}, 'did not answer within 300 ms', 300],
  ])('that %s is logged', async (_, listener, reason, timeoutMs) => {
    const url = await serve(listener)
    const { hooks, warnings } = setup().create([post(`${url}/?token=secret`, timeoutMs)])
    hooks.fire('reply-sent', { text: 'private' })
    await hooks.drained()
    expect(warnings).toEqual([['hook.failed', { hook: 'reply-sent', reason: `${new URL(url).host} ${reason}` }]])
  })

  it('where nobody listens is logged', async () => {
    const host = `127.0.0.1:${await freePort()}`
    const { hooks, warnings } = setup().create([post(`http://ann:secret@${host}/?token=secret`)])
    hooks.fire('reply-sent', {})
    await hooks.drained()
    const reason = `${host} could not be reached: connect ECONNREFUSED ${host}`
    expect(warnings).toEqual([['hook.failed', { hook: 'reply-sent', reason }]])
  })

  it('is not waited for when its answer has no end', async () => {
    const url = await serve((_, response) => {
      const timer = setInterval(() => response.write('x'.repeat(1000)), 5)
      response.on('close', () => clearInterval(timer))
    })
    const { hooks, warnings } = setup().create([post(url)])
    hooks.fire('reply-sent', {})
    await hooks.drained()
    expect(warnings).toEqual([])
  })

  it('is ended by a stop', async () => {
    let isAsked = false
    const url = await serve(() => {
      isAsked = true
    })
    const { hooks, warnings } = setup().create([post(url)])
    hooks.fire('reply-sent', {})
    await expect.poll(() => isAsked).toEqual(true)
    await hooks.stop()
    expect(warnings).toEqual([['hook.failed', { hook: 'reply-sent', reason: `${new URL(url).host} was stopped` }]])
  })
})

describe('fire', () => {
  it('takes the payload as it is at that moment', async () => {
    const { create, read } = setup()
    const { hooks } = create([shell('cat > told')])
    const payload = { text: 'before' }
    hooks.fire('run-finished', payload)
    payload.text = 'after'
    await hooks.drained()
    expect(JSON.parse(read('told')).text).toEqual('before')
  })

  it('does not throw if the payload is not JSON', async () => {
    const { create, exists } = setup()
    const { hooks, warnings } = create([shell('touch told')])
    hooks.fire('run-finished', { big: 1n })
    await hooks.drained()
    expect({ isTold: exists('told'), warnings }).toEqual({
      isTold: false,
      warnings: [['hook.failed', { hook: 'run-finished', reason: expect.stringContaining('BigInt') }]],
    })
  })

  it('does nothing when no hook is there', async () => {
    const { hooks, warnings } = setup().create([])
    hooks.fire('error', { big: 1n })
    await hooks.drained()
    await hooks.stop()
    expect(warnings).toEqual([])
  })
})

function shell(script: string, options: Partial<HookConfig> = {}): HookConfig {
  return { on: ['run-finished'], command: ['sh', '-c', script], timeoutMs: 30_000, ...options }
}

function post(url: string, timeoutMs = 30_000): HookConfig {
  return { on: ['reply-sent'], url, timeoutMs }
}

type Listener = (request: IncomingMessage, response: ServerResponse, body: string) => void

async function serve(listener: Listener): Promise<string> {
  return serveHttp((request, response) => {
    void text(request).then((body) => listener(request, response, body))
  })
}

function setup() {
  const directory = processDirectory()
  const read = (file: string) => readFileSync(join(directory, file), 'utf8')
  return {
    read,
    exists: (file: string) => existsSync(join(directory, file)),
    alive: () => livingProcesses(directory),
    create(
      definitions: HookConfig[],
      { environment = { PATH: '/usr/bin:/bin' }, passVariables = [] as string[] } = {},
    ) {
      const log = recordingLog()
      const now = () => Date.parse(AT)
      const scrubber = createScrubber([SECRET])
      const dependencies = { log, environment, passVariables, workingDir: () => directory, now, scrubber }
      return { hooks: new HookManager(definitions, dependencies), warnings: log.warnings }
    },
  }
}
