/** Cases for an agent that is a server: it outlives turns, can be lost, and asks questions. */
import assert from 'node:assert/strict'
import { access } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import type { OpenCodeEndpoint } from '../../src/backends/opencode/server/servers.js'
import { asks } from '../asking-case.js'
import type { Case } from '../case.js'
import { assertFailure, continuationOf, lastUserText, textOf } from '../checks.js'
import { callShell, say } from '../model-replies.js'
import { Sleeper } from '../sleeper.js'
import type { Stage, Turn } from '../stage.js'
import { connectionCases } from './connection-cases.js'
import { isServer, openExternal, openManaged } from './server-place.js'

const prompt = 'Please do something.'
const answer = 'Something, said by the scripted model.'

const abort: Case = {
  name: 'server-abort',
  title: 'Abort during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const stage = await open((_request, index) => (index === 0 ? callShell(agent, sleeper.command) : say(answer)))
    const controller = new AbortController()
    const asked = stage.ask({ prompt }, { signal: controller.signal })
    await stage.gateway.until('the tool runs', () => sleeper.isRunning())
    const before = await serverOf(stage)
    controller.abort()
    const cancelled = await asked
    assertFailure(stage, cancelled.result, { reason: 'cancelled', message: 'Cancelled', report: 'Cancelled' })
    assert.equal(await sleeper.isRunning(), false, 'the tool is gone')

    const next = await stage.ask({ prompt: 'And now?', ...continuationOf(cancelled) })
    assert.equal(next.result.finalOutput, answer)
    assert.deepEqual(await serverOf(stage), before, 'the same server')
    return 'the tool is gone, and the same server goes on with the same session'
  },
}

const permission: Case = {
  name: 'server-permission',
  title: 'Permission asked',
  async run({ agent, open }) {
    const [listed, unlisted, delegated] = ['made-by-tool', 'made-by-unlisted', 'made-by-sub-agent']
    const orders: Record<string, string> = { One: listed, Two: unlisted, Three: delegated }
    const stage = await open(
      (request) => {
        if (request.messages.at(-1)?.role !== 'user') return say(answer)
        const order = lastUserText(request)
        if (order === 'Delegate') {
          const input = { description: 'Some work', prompt: 'Three', subagent_type: 'general' }
          return { type: 'tool', name: 'task', input }
        }
        return callShell(agent, `touch ${orders[order]}`)
      },
      openManaged({ permission: { bash: 'ask' } }),
    )
    const first = await stage.ask({ prompt: 'One' })
    const harmless = { allowedTools: [agent.harmlessTool] }
    const second = await stage.ask({ prompt: 'Two', ...harmless, ...continuationOf(first) })
    const third = await stage.ask({ prompt: 'Delegate', ...continuationOf(first) })
    assert.deepEqual([first, second, third].map(outcome), [answer, answer, answer])
    const made = await Promise.all(
      [listed, unlisted, delegated].map((file) => exists(join(stage.sandbox.workspace, file))),
    )
    assert.deepEqual(made, [true, false, true], 'what is not listed did not run')
    return 'given at once, to a sub-agent as well; not for a tool that is not listed'
  },
}

const question: Case = {
  name: 'server-question',
  title: 'Question asked',
  async run({ open }) {
    const options = [
      { label: 'Red', description: 'Like fire' },
      { label: 'Blue', description: 'Like water' },
    ]
    const input = { questions: [{ question: 'Which colour?', header: 'Colour', options }] }
    const stage = await open((_request, index) =>
      index === 0 ? { type: 'tool', name: 'question', input } : say(answer),
    )
    const turn = await stage.ask({ prompt })
    assert.equal(outcome(turn), answer)
    assert.equal(stage.model.requests[0]?.body.includes('"name":"question"'), false, 'it is not offered to the model')
    const results = turn.events.flatMap((event) => (event.type === 'tool_result' ? [event.isError] : []))
    assert.deepEqual(results, [true], 'the model hears that it cannot ask')
    return 'the tool for it is not offered; asked all the same, the model hears so and goes on'
  },
}

const killed: Case = {
  name: 'server-killed',
  title: 'Server killed during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const stage = await open((_request, index) => (index === 1 ? callShell(agent, sleeper.command) : say(answer)))
    const first = await stage.ask({ prompt })
    const asked = stage.ask({ prompt, ...continuationOf(first) })
    await stage.gateway.until('the tool runs', () => sleeper.isRunning())
    const before = await serverOf(stage)
    process.kill(before.pid, 'SIGKILL')
    const { result } = await asked
    const advice = 'The next turn starts another one.'
    const message = `The OpenCode server at ${before.url} went away during the turn. ${advice}`
    assertFailure(stage, result, { reason: 'exit', message, report: message })
    assert.equal(await sleeper.isRunning(), false, 'the tool is gone')

    const next = await stage.ask({ prompt: 'And now?', ...continuationOf(first) })
    assert.equal(outcome(next), answer)
    assert.equal(next.result.sessionId, first.result.sessionId)
    return 'exit: it went away during the turn; the tool is gone, another server goes on with the session'
  },
}

const killedUnderGateway: Case = {
  name: 'server-gateway',
  title: 'Server of a gateway killed during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const stage = await open((_request, index) => (index === 2 ? callShell(agent, sleeper.command) : say(answer)))
    const { gateway } = stage
    await gateway.start()
    gateway.say('One?')
    await gateway.untilReplies(1)
    const before = await serverOf(stage)
    gateway.say('Two?')
    await gateway.untilReplies(2)
    assert.deepEqual(await serverOf(stage), before, 'one server for both turns')
    gateway.say('Three?')
    await gateway.until('the tool runs', () => sleeper.isRunning())
    process.kill(before.pid, 'SIGKILL')
    await gateway.untilReplies(3)
    assert.equal(await sleeper.isRunning(), false, 'the tool is gone')
    assert.deepEqual(
      gateway.replies(),
      Array.from({ length: 3 }, () => ({ text: answer, notes: [], isError: false })),
    )
    assert.equal(new Set(gateway.sessions()).size, 1, 'the same session')
    assert.notEqual((await serverOf(stage)).pid, before.pid, 'another server')
    await gateway.stop()
    return 'one server for all turns; when it is gone, the turn is taken again on another, in the same session'
  },
}

const busy: Case = {
  name: 'server-busy',
  title: 'Three prompts at once in one session',
  async run({ open }) {
    let speak = () => {}
    const allAsked = new Promise<void>((resolve) => (speak = resolve))
    async function* speakLate(text: string) {
      await allAsked
      yield text
    }
    const stage = await open((request, index) =>
      index === 0 ? say(answer) : { type: 'text', deltas: speakLate(`To ${lastUserText(request)}`) },
    )
    const session = continuationOf(await stage.ask({ prompt }))
    const one = stage.ask({ prompt: 'one', ...session })
    await stage.gateway.until('the model is asked', () => stage.model.requests.length === 2)
    const controller = new AbortController()
    const two = stage.ask({ prompt: 'two', ...session }, { signal: controller.signal })
    const three = stage.ask({ prompt: 'three', ...session })
    controller.abort()
    assert.equal((await two).result.failure?.reason, 'cancelled')
    speak()
    const turns = [await one, await three]
    assert.deepEqual(turns.map(outcome), ['To one', 'To three'])
    assert.deepEqual(turns.map(textOf), ['To one', 'To three'])
    assert.deepEqual(stage.model.requests.map(lastUserText), [prompt, 'one', 'three'])
    return 'answered one after the other; the one cancelled while it waited never reached the model'
  },
}

const wrongPassword: Case = {
  name: 'server-password',
  title: 'Wrong password',
  async run({ open }) {
    let url = ''
    const reach = async (endpoint: OpenCodeEndpoint): Promise<OpenCodeEndpoint> => {
      url = endpoint.url
      return { ...endpoint, password: 'wrong' }
    }
    const stage = await open(() => say(answer), openExternal({ reach }))
    const { result } = await stage.ask({ prompt })
    const message = [
      `The OpenCode server at ${url} rejected the user name or password (401).`,
      'Set OPENCODE_USERNAME and OPENCODE_PASSWORD to the values it was started with.',
    ].join(' ')
    assertFailure(stage, result, { reason: 'spawn', message, report: message })
    assert.equal(stage.model.requests.length, 0, 'the model is not asked')
    return 'spawn: it says what to set'
  },
}

const mute: Case = {
  name: 'server-mute',
  title: 'Server that never answers',
  async run({ open }) {
    const sockets = new Set<Socket>()
    const listener = createServer((socket) => {
      sockets.add(socket.resume())
      socket.on('error', () => {})
    })
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
    try {
      const reach = async (endpoint: OpenCodeEndpoint): Promise<OpenCodeEndpoint> => ({ ...endpoint, url })
      const stage = await open(() => say(answer), openExternal({ reach }))
      const { result } = await stage.ask({ prompt })
      const message = [
        `The OpenCode server at ${url} accepts connections but does not answer (GET /global/event).`,
        'Check its log, or restart it.',
      ].join(' ')
      assertFailure(stage, result, { reason: 'spawn', message, report: message })
      return 'spawn: it accepts connections but does not answer'
    } finally {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    }
  },
}

export const serverCases: Case[] = [
  abort,
  permission,
  asks,
  question,
  killed,
  killedUnderGateway,
  busy,
  wrongPassword,
  mute,
  ...connectionCases,
]

function outcome({ result }: Turn): string | undefined {
  return result.failure?.message ?? result.finalOutput
}

async function serverOf({ sandbox }: Stage): Promise<{ pid: number; url: string }> {
  const [server, ...others] = (await sandbox.processes()).filter(({ command }) => isServer(command))
  assert.ok(server && others.length === 0, 'one server')
  const [, port] = / --port (\d+)/.exec(server.command) ?? []
  return { pid: server.pid, url: `http://127.0.0.1:${port}` }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
