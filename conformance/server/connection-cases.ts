/** A server started by an operator, and a connection to it that breaks. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenCodeEndpoint } from '../../src/backends/opencode/server/servers.js'
import type { Case, Scene } from '../case.js'
import { assertFailure, continuationOf, textOf } from '../checks.js'
import { callShell, say } from '../model-replies.js'
import type { Script } from '../scripted-model.js'
import type { Stage } from '../stage.js'
import { openExternal } from './server-place.js'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.js'

const prompt = 'Please do something.'
const answer = 'Something, said by the scripted model.'
const pollMs = 50

interface Line {
  stage: Stage
  /** The server itself. */
  endpoint: OpenCodeEndpoint
  /** The proxy through which the backend reaches it. */
  proxy: TcpProxy
}

/** The script gets the proxy, so that it can cut it. */
async function withLine(
  open: Scene['open'],
  script: (line: () => Line) => Script,
  play: (line: Line) => Promise<string>,
): Promise<string> {
  const ends: Array<() => Promise<void>> = []
  const made: Partial<Line> = {}
  const line = (): Line => made as Line
  const reach = async (endpoint: OpenCodeEndpoint): Promise<OpenCodeEndpoint> => {
    const proxy = await startTcpProxy(endpoint.url)
    ends.push(() => proxy.close())
    Object.assign(made, { endpoint, proxy })
    return { ...endpoint, url: proxy.url }
  }
  try {
    made.stage = await open(script(line), openExternal({ reach }))
    return await play(line())
  } finally {
    for (const end of ends) await end()
  }
}

const cutDuringAnswer: Case = {
  name: 'server-reconnect',
  title: 'Connection cut during an answer',
  run({ open }) {
    const deltas = ['One, ', 'two, ', 'three.']
    const heard: string[] = []
    async function* speak({ stage, proxy }: Line) {
      yield 'One, '
      await stage.gateway.until('the beginning is heard', () => heard.length > 0)
      proxy.cut()
      yield 'two, '
      proxy.mend()
      await stage.gateway.until('the events are listened to again', () => proxy.streams() > 0)
      yield 'three.'
    }
    const script = (line: () => Line) => () => ({ type: 'text' as const, deltas: speak(line()) })
    return withLine(open, script, async ({ stage }) => {
      const onEvent = (event: { type: string; content?: string }): void => {
        if (event.type === 'output') heard.push(event.content ?? '')
      }
      const turn = await stage.ask({ prompt }, { onEvent })
      assert.deepEqual([turn.result.failure, turn.result.finalOutput], [undefined, deltas.join('')])
      assert.equal(textOf(turn), deltas.join(''), 'every word once and in order')
      assert.equal(stage.model.requests.length, 1, 'the model is asked once')
      return 'every word once and in order'
    })
  },
}

const cutUntilTheEnd: Case = {
  name: 'server-missed-end',
  title: 'Connection cut until the turn is over',
  run({ agent, open }) {
    const script = (line: () => Line) => (_request: unknown, index: number) => {
      // Longer than the backend waits for a lost server.
      if (index === 0) return callShell(agent, 'sleep 5; pwd')
      void mendWhenIdle(line())
      return say(answer)
    }
    return withLine(open, script, async ({ stage, proxy }) => {
      const turn = await stage.ask({ prompt }, { onEvent: (event) => event.type === 'tool_use' && proxy.cut() })
      assert.deepEqual([turn.result.failure, turn.result.finalOutput], [undefined, answer])
      const seen = turn.events.flatMap((event) => {
        if (event.type === 'output' || event.type === 'tool_result') return [event.content.trim()]
        return event.type === 'tool_use' ? [event.toolName] : []
      })
      assert.deepEqual(seen, [agent.shellTool.name, stage.sandbox.workspace, answer])
      assert.equal(turn.result.usage?.totalTokens, 260, 'the usage of both requests')
      return 'the result of the tool and the answer are read afterwards'
    })
  },
}

const cutForGood: Case = {
  name: 'server-lost',
  title: 'Connection cut for good',
  run({ open }) {
    let isHeard = false
    async function* speak({ stage, proxy }: Line) {
      yield 'One, '
      await stage.gateway.until('the beginning is heard', () => isHeard)
      proxy.cut()
      yield 'two.'
    }
    const script = (line: () => Line) => (_request: unknown, index: number) =>
      index === 0 ? { type: 'text' as const, deltas: speak(line()) } : say(answer)
    return withLine(open, script, async ({ stage, proxy }) => {
      const first = await stage.ask({ prompt }, { onEvent: (event) => event.type === 'output' && (isHeard = true) })
      const message = `The OpenCode server at ${proxy.url} went away during the turn. Check its log, or restart it.`
      assertFailure(stage, first.result, { reason: 'exit', message, report: message })
      proxy.mend()
      const next = await stage.ask({ prompt: 'And now?', ...continuationOf(first) })
      assert.deepEqual([next.result.failure, next.result.finalOutput, textOf(next)], [undefined, answer, answer])
      return 'exit: it went away during the turn; once it is back, the same session goes on'
    })
  },
}

export const connectionCases: Case[] = [cutDuringAnswer, cutUntilTheEnd, cutForGood]

async function mendWhenIdle({ stage, endpoint, proxy }: Line): Promise<void> {
  const { url, username, password } = endpoint
  const query = new URLSearchParams({ directory: stage.sandbox.workspace })
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  for (;;) {
    const response = await fetch(`${url}/session/status?${query.toString()}`, { headers: { authorization } })
    if (Object.keys((await response.json()) as object).length === 0) break
    await sleep(pollMs)
  }
  proxy.mend()
}
