import {
  type APIMessage,
  MessageFlags,
  type RESTPatchAPIChannelMessageJSONBody,
  type RESTPostAPIChannelMessageJSONBody,
} from 'discord.js'
import { afterEach, beforeEach, describe, expect, it, type TestContext, vi } from 'vitest'
import type { AgentEventBody } from '../../../src/backends/types.js'
import { MISSING_PERMISSIONS, snowflakeAt, UNKNOWN_MESSAGE } from '../../../src/channels/discord/api.js'
import { button } from '../../../src/channels/discord/buttons.js'
import { Destinations } from '../../../src/channels/discord/destinations.js'
import { ProgressMessage, type Posted } from '../../../src/channels/discord/progress-message.js'
import { MESSAGE_CHARACTERS } from '../../../src/channels/discord/outgoing.js'
import { recordingLog } from '../../kit/log.js'
import { hasLoneSurrogate, message, refusal } from './samples.js'

const HOUR_MS = 3_600_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Call =
  | { kind: 'post'; at: number; id: string; body: RESTPostAPIChannelMessageJSONBody }
  | { kind: 'edit'; at: number; id: string; body: RESTPatchAPIChannelMessageJSONBody }
  | { kind: 'remove'; at: number; id: string }

/** Discord, which accepts everything at once unless told otherwise. `typing` is a counter. */
function setup({ onTestFinished }: TestContext, leftover: () => Promise<Posted | undefined> = async () => undefined) {
  const calls: Call[] = []
  const startedAt = performance.now()
  const at = (): number => performance.now() - startedAt
  const clock = { aheadMs: 0 }
  const now = (): number => Date.now() + clock.aheadMs
  const log = recordingLog()
  const typing = { times: 0 }
  const discord = {
    post: async (): Promise<void> => {},
    edit: async (_signal?: AbortSignal): Promise<void> => {},
    remove: async (): Promise<void> => {},
  }
  const post = async (channelId: string, body: RESTPostAPIChannelMessageJSONBody): Promise<APIMessage> => {
    const id = String(BigInt(snowflakeAt(now())) + BigInt(calls.length))
    calls.push({ kind: 'post', at: at(), id, body })
    await discord.post()
    return message({ id, channel_id: channelId })
  }
  const progress = new ProgressMessage({
    api: {
      edit: async (_, id, body, signal) => {
        calls.push({ kind: 'edit', at: at(), id, body })
        await discord.edit(signal)
      },
      remove: async (_, id) => {
        calls.push({ kind: 'remove', at: at(), id })
        await discord.remove()
      },
      type: async () => {
        typing.times += 1
      },
    },
    destinations: new Destinations({ post, openThread: async () => Promise.reject(new Error('No')) }, log),
    address: '10',
    messageId: 'm1',
    leftover,
    log,
    now,
  })
  onTestFinished(() => progress.stop())
  return {
    progress,
    calls,
    clock,
    log,
    typing,
    discord,
    show: (event: AgentEventBody, runId = 'run-1') => progress.show(runId, { ...event, timestamp: 0 }),
    /** The texts as a person sees them, in order. */
    contents: () => calls.flatMap((call) => (call.kind === 'remove' ? [] : [call.body.content ?? ''])),
    kinds: () => calls.map(({ kind }) => kind),
    /** Advances time until there are that many calls. */
    called: async (count: number) => {
      for (let steps = 0; steps < 1_000 && calls.length < count; steps += 1) await pass(10)
      expect(calls.length).toBeGreaterThanOrEqual(count)
    },
  }
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

const output = (content: string): AgentEventBody => ({ type: 'output', content, stream: 'stdout' })
const tool = (toolName: string, toolInput: Record<string, unknown> = {}): AgentEventBody => ({
  type: 'tool_use',
  toolId: 't',
  toolName,
  toolInput,
})
const complete: AgentEventBody = { type: 'complete', result: { isError: false, durationMs: 1 } }

describe('what is shown while an agent works', () => {
  it('is a message after a second, silent and with a button to stop', async (context) => {
    const { show, calls, called } = setup(context)
    show(output('Hello'))
    await called(1)
    expect(calls).toEqual([
      {
        kind: 'post',
        at: 1_000,
        id: expect.any(String),
        body: {
          content: 'Hello\n-# ✍️ writing',
          flags: MessageFlags.SuppressNotifications | MessageFlags.SuppressEmbeds,
          components: [button('stop', 'm1')],
          nonce: expect.stringMatching(/^.{1,25}$/),
          enforce_nonce: true,
        },
      },
    ])
  })

  it('is nothing when the answer comes sooner', async (context) => {
    const { show, progress, calls } = setup(context)
    show(output('Hello'))
    show(complete)
    await progress.remove()
    expect(calls).toEqual([])
  })

  it('says that it works when there is nothing else to say', async (context) => {
    const { show, contents, called } = setup(context)
    show({ type: 'started' })
    await called(1)
    expect(contents()).toEqual(['-# ⏳ working'])
  })

  it('is edited at most every one and a half seconds, and the newest text wins', async (context) => {
    const { show, calls, contents, kinds } = setup(context)
    const words = Array.from({ length: 80 }, (_, index) => `${index} `)
    for (const word of words) {
      show(output(word))
      await pass(50)
    }
    const whole = `${words.join('')}\n-# ✍️ writing`
    await pass(1_500)
    const gaps = calls.slice(1).map(({ at }, index) => at - (calls[index]?.at ?? 0))
    expect([contents().at(-1), kinds(), gaps]).toEqual([whole, ['post', 'edit', 'edit'], [1_500, 1_500]])
  })

  it('is not edited when there is nothing new', async (context) => {
    const { show, called, calls } = setup(context)
    show(output('Hello'))
    await called(1)
    show({ type: 'notice', content: 'Something' })
    await pass(2_000)
    expect(calls.length).toBe(1)
  })

  it('has one edit in flight at a time; the next contains all that came in the meantime', async (context) => {
    const { show, discord, calls, contents, called } = setup(context)
    let arrive = (): void => {}
    discord.edit = () => new Promise((resolve) => (arrive = resolve))
    show(output('One'))
    await called(1)
    show(output(' two'))
    await called(2)
    show(output(' three'))
    await pass(2_000)
    show(output(' four'))
    const onTheWay = calls.length
    arrive()
    await called(3)
    expect([onTheWay, contents()]).toEqual([
      2,
      ['One\n-# ✍️ writing', 'One two\n-# ✍️ writing', 'One two three four\n-# ✍️ writing'],
    ])
    arrive()
  })

  it('is a fresh message when it is so old that Discord would not let it be edited', async (context) => {
    const { show, clock, calls, kinds, called } = setup(context)
    show(output('One'))
    await called(1)
    clock.aheadMs = HOUR_MS
    show(output(' two'))
    await called(3)
    const [first, second, third] = calls
    const nonces = calls.flatMap((call) => (call.kind === 'post' ? [call.body.nonce] : []))
    expect([kinds(), second?.kind === 'post' && second.body.content, third?.id, new Set(nonces).size]).toEqual([
      ['post', 'post', 'remove'],
      'One two\n-# ✍️ writing',
      first?.id,
      2,
    ])
  })

  it('starts over with another run', async (context) => {
    const { show, progress, contents, called } = setup(context)
    show(output('Half of an ans'))
    await called(1)
    show({ type: 'complete', result: { isError: true, durationMs: 1, failure: failure('It *broke*') } })
    await called(2)
    progress.retry({ problem: 'It *broke*', attempt: 2, attempts: 4, startsAt: 1_800_000_000_001 })
    await called(3)
    show(output('A whole answer'), 'run-2')
    await called(4)
    expect(contents()).toEqual([
      'Half of an ans\n-# ✍️ writing',
      'Half of an ans\n-# ⚠️ It \\*broke\\* · retrying',
      'Half of an ans\n-# ⚠️ It \\*broke\\* · attempt 2 of 4 starts <t:1800000001:R>',
      'A whole answer\n-# ✍️ writing',
    ])
  })

  it('reuses at once what an earlier gateway left', async (context) => {
    const left = { id: snowflakeAt(Date.now()), channel_id: '10' }
    const { show, progress, calls, called } = setup(context, async () => left)
    show(output('Hello'))
    await called(1)
    await progress.remove()
    expect(calls).toEqual([
      { kind: 'edit', at: expect.any(Number), id: left.id, body: { content: 'Hello\n-# ✍️ writing' } },
      { kind: 'remove', at: expect.any(Number), id: left.id },
    ])
  })

  it('is given up when Discord refuses it; the answer does not need it', async (context) => {
    const { show, progress, discord, calls, log } = setup(context)
    discord.post = async () => Promise.reject(refusal(MISSING_PERMISSIONS, 403))
    show(output('Hello'))
    await pass(1_000)
    await progress.remove()
    expect([calls.length, log.logged]).toEqual([
      1,
      [['warn', 'discord.live-failed', { messageId: 'm1', error: 'Refused with 50013' }]],
    ])
  })

  it('is tried again under the same nonce when the connection broke', async (context) => {
    const { show, discord, calls, called } = setup(context)
    let isBroken = true
    discord.post = async () => {
      if (isBroken) {
        isBroken = false
        throw new Error('socket hang up')
      }
    }
    show(output('Hello'))
    await called(2)
    const nonces = calls.map((call) => (call.kind === 'post' ? call.body.nonce : undefined))
    expect(nonces).toEqual([expect.any(String), nonces[0]])
  })

  it('is never longer than Discord takes', async (context) => {
    const { show, contents, called } = setup(context)
    show(output(`~~~${'~'.repeat(200)}\n${'x\n'.repeat(2_000)}`))
    show(tool('Bash', { command: '*'.repeat(500) }))
    await called(1)
    expect(contents().map(({ length }) => length <= MESSAGE_CHARACTERS)).toEqual([true])
  })
})

describe('when the answer is there', () => {
  it('the message is removed', async (context) => {
    const { show, progress, calls, kinds, called } = setup(context)
    show(output('Hello'))
    await called(1)
    await progress.remove()
    await progress.remove()
    expect([kinds(), calls[1]?.id === calls[0]?.id]).toEqual([['post', 'remove'], true])
  })

  it('a removal that failed can be repeated', async (context) => {
    const { show, progress, discord, kinds, called } = setup(context)
    show(output('Hello'))
    await called(1)
    discord.remove = async () => Promise.reject(new Error('socket hang up'))
    const failed = await progress.remove().catch(String)
    discord.remove = async () => {}
    await progress.remove()
    expect([failed, kinds()]).toEqual(['Error: socket hang up', ['post', 'remove', 'remove']])
  })

  it('one that somebody has removed already counts as removed', async (context) => {
    const { show, progress, discord, called } = setup(context)
    show(output('Hello'))
    await called(1)
    discord.remove = async () => Promise.reject(refusal(UNKNOWN_MESSAGE, 404))
    await expect(progress.remove()).resolves.toBeUndefined()
  })

  it('an edit that waits for a rate limit keeps nobody waiting', async (context) => {
    const { show, progress, discord, kinds, called } = setup(context)
    const given: Array<AbortSignal | undefined> = []
    discord.edit = (signal) => {
      given.push(signal)
      return new Promise(() => {})
    }
    show(output('Hello'))
    await called(1)
    show(output(' you'))
    await called(2)
    await progress.remove()
    expect([kinds(), given.map((signal) => signal?.aborted)]).toEqual([['post', 'edit', 'remove'], [true]])
  })

  it('a message that is just being posted is waited for and removed', async (context) => {
    const { show, progress, discord, kinds, called } = setup(context)
    let arrive = (): void => {}
    discord.post = () => new Promise((resolve) => (arrive = resolve))
    show(output('Hello'))
    await called(1)
    const removed = progress.remove()
    arrive()
    await removed
    expect(kinds()).toEqual(['post', 'remove'])
  })

  it('nothing more is shown', async (context) => {
    const { show, progress, calls, typing, called } = setup(context)
    show(output('Hello'))
    await called(1)
    await progress.remove()
    const before = typing.times
    show(output('Too late'))
    await pass(1_700)
    expect([calls.length, typing.times - before]).toEqual([2, 0])
  })
})

describe('when there will be no answer', () => {
  it('the message stays as the final one, without the button', async (context) => {
    const { show, progress, calls, called } = setup(context)
    show(output('Half of an ans'))
    await called(1)
    await progress.end('⏹ stopped')
    expect(calls.at(-1)).toEqual({
      kind: 'edit',
      at: expect.any(Number),
      id: calls[0]?.id,
      body: { content: 'Half of an ans\n-# ⏹ stopped', components: [] },
    })
  })

  it('nothing is said about what was never shown', async (context) => {
    const { show, progress, calls } = setup(context)
    show(output('Half of an ans'))
    await progress.end('⏹ stopped')
    expect(calls).toEqual([])
  })
})

describe('the line that says what an agent does', () => {
  it.for<[event: AgentEventBody, line: string]>([
    [{ type: 'thinking', content: 'Hm' }, '💭 thinking'],
    [tool('Bash', { command: 'npm test' }), '🔧 Bash: npm test'],
    [tool('Read', { limit: 5, file: '', path: 'src/a.ts' }), '🔧 Read: src/a.ts'],
    [tool('Plan'), '🔧 Plan'],
    [tool('', { command: 'ls' }), '🔧 ls'],
    [tool('Bash', { command: ' echo a\n\n&& \techo b ' }), '🔧 Bash: echo a && echo b'],
    [tool('Bash', { command: 'x'.repeat(300) }), `🔧 Bash: ${'x'.repeat(113)}…`],
    [{ type: 'tool_result', toolId: 't', toolName: 'Bash', content: '', isError: true }, '🔧 Bash: failed'],
    [{ type: 'tool_result', toolId: 't', toolName: 'Bash', content: '', isError: false }, '⏳ working'],
    [
      tool('mcp__x', { command: '**b** _i_ ~~s~~ ||h|| `c` <@1> [a](http://b) # \\ >' }),
      '🔧 mcp\\_\\_x: \\*\\*b\\*\\* \\_i\\_ \\~\\~s\\~\\~ \\|\\|h\\|\\| \\`c\\` \\<@1\\> \\[a\\](http://b) \\# \\\\ \\>',
    ],
  ])('of %j', async ([event, line], context) => {
    const { show, contents, called } = setup(context)
    show(event)
    await called(1)
    expect(contents()).toEqual([`-# ${line}`])
  })

  it('cuts no character in half', async (context) => {
    const { show, contents, called } = setup(context)
    show(tool('Bash', { command: '🙂'.repeat(100) }))
    await called(1)
    const [first = ''] = contents()
    show(tool('Bash', { command: `x${'🙂'.repeat(100)}` }))
    await called(2)
    expect([first, ...contents()].map(hasLoneSurrogate)).toEqual([false, false, false])
  })
})

describe('typing', () => {
  it('is shown from the first event to the last, and again every eight seconds', async (context) => {
    const { show, typing } = setup(context)
    const counts: number[] = []
    const look = async (advanceMs: number): Promise<void> => {
      await vi.advanceTimersByTimeAsync(advanceMs)
      counts.push(typing.times)
    }
    show({ type: 'started' })
    show(output('Hello'))
    await look(0)
    await look(7_999)
    await look(1)
    await look(8_000)
    show(complete)
    await look(60_000)
    expect(counts).toEqual([1, 1, 2, 3, 3])
  })
})

function failure(text: string) {
  return { reason: 'exit' as const, message: text, report: text }
}
