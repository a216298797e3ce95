// The gateway's messages get lost, or only Discord's responses to them. People see each message once, complete and in
// order.

import { describe, it, type TestContext } from 'vitest'
import type { FakeChannel } from './fake-discord-records.js'
import type { Fault } from './fake-discord-faults.js'
import { steps } from '../../kit/steps-agent.js'
import { answersIn, beginThread, DiscordStage, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

const POST = 'POST /channels/:id/messages'
const PATCH = 'PATCH /channels/:id/messages/:id'
const PARTS = ['one', 'two', 'three'].map((word) => `${word} `.repeat(300).trim())
const THREE_PARTS = steps({ text: PARTS.join('\n\n') })
const MINUTE_MS = 60_000

describe('An answer', { concurrent: true }, () => {
  it.for<[string, Fault, number]>([
    // These take longest: a client waits 15 s.
    ['is not answered', { kind: 'hang' }, 1],
    ['is not answered when it was taken', { kind: 'hang', hasEffect: true }, 1],
    ['is limited', { kind: 'rate-limit', retryAfterMs: 700 }, 3],
    ['is limited like everything else', { kind: 'rate-limit', retryAfterMs: 700, isGlobal: true }, 3],
    ['fails at the server', { kind: 'status', status: 500 }, 2],
    ['fails at the server again and again', { kind: 'status', status: 500 }, 9],
    ['fails at the server that has taken it', { kind: 'status', status: 502, hasEffect: true }, 9],
    ['is reset', { kind: 'reset' }, 9],
    ['is reset when it was taken', { kind: 'reset', hasEffect: true }, 9],
    ['is closed', { kind: 'close' }, 3],
    ['is closed when it was taken', { kind: 'close', hasEffect: true }, 3],
    ['is refused by mistake', { kind: 'status', status: 401 }, 1],
  ])('whose way %s comes once, and all its parts in order', async ([, fault, times], { expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.fail(POST, fault, times)
    discord.say(discord.owner, thread.id, THREE_PARTS)

    discord.say(discord.owner, thread.id, 'last')
    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', ...PARTS, 'You said: last'])
    expect(discord.faultCount).toEqual(times)
  })

  it('that is continued when Discord has forgotten its first part continues after it', async (context) => {
    const { expect, onTestFinished } = context
    const { discord, thread, clock } = await openConversationWithClock(onTestFinished)

    discord.fail(POST, { kind: 'close', hasEffect: true })
    discord.fail(POST, { kind: 'close' }, 2)
    discord.say(discord.owner, thread.id, THREE_PARTS)
    await until(() => discord.faultCount === 2, 'the second attempt')
    clock.passes(6 * MINUTE_MS)

    discord.say(discord.owner, thread.id, 'last')
    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', ...PARTS, 'You said: last'])
  })

  it('that is the same as the one before is not taken for it', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.say(discord.owner, thread.id, steps({ text: 'Done.' }))
    await until(() => answersIn(discord, thread.id).includes('Done.'), 'the first of the two')
    discord.fail(POST, { kind: 'close' })
    discord.say(discord.owner, thread.id, steps({ text: 'Done.' }))

    discord.say(discord.owner, thread.id, 'last')
    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'Done.', 'Done.', 'You said: last'])
  })

  it('comes in its thread when opening that was not answered', async ({ expect, onTestFinished }) => {
    const { discord, channel } = await openScene(onTestFinished)
    const route = 'POST /channels/:id/messages/:id/threads'
    const faults: Fault[] = [{ kind: 'close' }, { kind: 'close', hasEffect: true }, { kind: 'reset', hasEffect: true }]
    const ids: string[] = []
    for (const fault of faults) {
      discord.fail(route, fault)
      const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
      await until(() => discord.threadOf(id) && discord.textsIn(id).length > 0, 'an answer')
      ids.push(id)
    }

    expect({ inThreads: ids.map((id) => discord.textsIn(id)), beside: discord.textsIn(channel.id) }).toEqual({
      inThreads: faults.map(() => ['You said: hello']),
      beside: [],
    })
  })

  it('needs neither the reaction nor the typing before it', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)
    discord.fail('PUT /channels/:id/messages/:id/reactions/:emoji/@me', { kind: 'close' }, 100)
    discord.fail('POST /channels/:id/typing', { kind: 'close' }, 100)

    discord.say(discord.owner, thread.id, 'last')

    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'You said: last'])
  })

  it.for<[string, Fault]>([
    ['the network', { kind: 'close' }],
    ['Discord', { kind: 'close', hasEffect: true }],
  ])('to a command that is lost by %s comes once', async ([, fault], { expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.fail(POST, fault)
    discord.say(discord.owner, thread.id, '/new')

    discord.say(discord.owner, thread.id, 'last')
    await expect
      .poll(() => discord.textsIn(thread.id).toSorted())
      .toEqual(['The next message starts a fresh session.', 'You said: hello', 'You said: last'])
  })

  it.for<[string, Fault]>([
    ['lost', { kind: 'reset' }],
    ['taken and lost', { kind: 'reset', hasEffect: true }],
  ])('to a slash command comes when the first word to it is %s', async ([, fault], { expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.fail('POST /interactions/:id/:token/callback', fault)

    expect(await discord.slash(discord.owner, thread.id, 'status').answer()).toContain('agent: claude')
  })
})

describe('A progress message', { concurrent: true }, () => {
  it.for<[string, string, Fault, number]>([
    ['was shown but not answered for', POST, { kind: 'close', hasEffect: true }, 1],
    ['could not be shown at first', POST, { kind: 'close' }, 1],
    ['could not be changed at first', PATCH, { kind: 'close' }, 1],
    ['could not be changed at first for the server', PATCH, { kind: 'status', status: 500 }, 5],
  ])('that %s goes on, and goes', async ([, route, fault, times], { expect, onTestFinished }) => {
    const { stage, discord, thread } = await openConversation(onTestFinished)

    discord.fail(route, fault, times)
    discord.say(discord.owner, thread.id, steps({ text: 'one ' }, { hold: 'a' }, { text: 'two ' }, { hold: 'b' }))
    await until(() => progressIn(discord, thread.id)?.content.includes('one'), 'the progress message')
    stage.release('a')
    await until(() => progressIn(discord, thread.id)?.content.includes('two'), 'the progress message with more')
    const texts = discord.textsIn(thread.id).length
    stage.release('b')

    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'one two'])
    expect({ texts, faults: discord.faultCount }).toEqual({ texts: 2, faults: times })
  })

  it('whose creation was not confirmed when the answer comes is removed, too', async ({ expect, onTestFinished }) => {
    const { stage, discord, thread } = await openConversation(onTestFinished)

    discord.fail(POST, { kind: 'close', hasEffect: true })
    discord.say(discord.owner, thread.id, steps({ text: 'one' }, { hold: 'a' }))
    await until(() => discord.faultCount === 1, 'the progress message')
    stage.release('a')

    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'one'])
  })

  it.for<[string, Fault, number]>([
    ['the network fails', { kind: 'close' }, 1],
    ['the network fails afterwards', { kind: 'close', hasEffect: true }, 1],
    ['the server fails', { kind: 'status', status: 500 }, 5],
    ['the server fails afterwards', { kind: 'status', status: 500, hasEffect: true }, 5],
  ])('is removed even if %s', async ([, fault, times], { expect, onTestFinished }) => {
    const { stage, discord, thread } = await openConversation(onTestFinished)
    await showProgress({ discord, thread }, steps({ text: 'one' }, { hold: 'a' }))

    discord.fail('DELETE /channels/:id/messages/:id', fault, times)
    stage.release('a')

    await until(
      () => !progressIn(discord, thread.id) && answersIn(discord, thread.id).includes('one'),
      'the answer alone',
    )
    discord.say(discord.owner, thread.id, 'last')
    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'one', 'You said: last'])
  })

  it('that somebody deletes is missed by nobody', async ({ expect, onTestFinished }) => {
    const { stage, discord, thread } = await openConversation(onTestFinished)
    const progress = await showProgress(
      { discord, thread },
      steps({ text: 'one ' }, { hold: 'a' }, { text: 'two' }, { hold: 'b' }),
    )

    discord.delete(progress)
    stage.release('a')
    await until(() => discord.requestsTo(PATCH).length > 0, 'an edit of what is gone')
    stage.release('b')

    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'one two'])
  })

  it('that gets old is followed by a new one', async ({ expect, onTestFinished }) => {
    const { stage, discord, thread, clock } = await openConversationWithClock(onTestFinished)
    discord.settings.oldMessageEdits = { limit: 0, perMs: 10 * MINUTE_MS }
    const progress = await showProgress(
      { discord, thread },
      steps({ text: 'one ' }, { hold: 'a' }, { text: 'two ' }, { hold: 'b' }, { text: 'three' }, { hold: 'c' }),
    )

    clock.passes(61 * MINUTE_MS)
    stage.release('a')
    const next = await until(() => {
      const found = progressIn(discord, thread.id)
      return found?.id !== progress.id && found
    }, 'a new progress message')
    await until(() => discord.message(progress.id) === undefined, 'the old one to go')
    stage.release('b')
    await until(() => discord.message(next.id)?.content.includes('three'), 'an edit of the new one')
    stage.release('c')

    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'one two three'])
  })

  it.for<[string, (discord: Scene['discord']) => void]>([
    [
      'because it is old',
      ({ settings }) =>
        Object.assign(settings, { oldMessageMs: 0, oldMessageEdits: { limit: 0, perMs: 10 * MINUTE_MS } }),
    ],
    [
      'because there are too many',
      ({ limits }) => {
        limits.editMessage = { limit: 1, perMs: 10 * MINUTE_MS }
      },
    ],
    ['for another reason', (discord) => discord.fail(PATCH, { kind: 'rate-limit', retryAfterMs: 10 * MINUTE_MS }, 100)],
  ])('whose edits are limited %s does not hold the answer up', async ([, limit], { expect, onTestFinished }) => {
    const { stage, discord, thread } = await openConversation(onTestFinished)
    const asked = ['a', 'b', 'c', 'd'].flatMap((name) => [{ text: `${name} ` }, { hold: name }])
    await showProgress({ discord, thread }, steps(...asked))
    stage.release('a')
    // The first one teaches discord.js that edits and posts share a bucket.
    await until(() => discord.requestsTo(PATCH).some(({ status }) => status === 200), 'an edit')
    limit(discord)
    stage.release('b')
    await until(() => discord.requestsTo(PATCH).length > 1, 'one more edit')
    stage.release('c')
    await until(() => discord.requestsTo(PATCH).some(({ status }) => status === 429), 'an edit too many')
    stage.release('d')

    await expect.poll(() => discord.textsIn(thread.id)).toEqual(['You said: hello', 'a b c d'])
  })
})

interface Conversation extends Pick<Scene, 'stage' | 'discord' | 'channel'> {
  /** A thread in which a first message has been answered. */
  thread: FakeChannel
}

async function openConversation(onTestFinished: TestContext['onTestFinished']): Promise<Conversation> {
  const scene = await openScene(onTestFinished)
  // Failed requests count too, and would have to be waited out.
  scene.discord.limits.postMessage.limit = 100
  return { ...scene, thread: await beginThread(scene) }
}

/** With a clock that advances for both Discord and the gateway. */
async function openConversationWithClock(
  onTestFinished: TestContext['onTestFinished'],
): Promise<Conversation & { clock: { passes(ms: number): void } }> {
  const stage = await DiscordStage.open(onTestFinished)
  const { discord } = stage
  const channel = discord.addChannel(discord.addGuild())
  let aheadMs = 0
  await stage.start({}, { now: () => Date.now() + aheadMs })
  const passes = (ms: number): void => {
    aheadMs += ms
    discord.advance(ms)
  }
  return { stage, discord, channel, thread: await beginThread({ discord, channel }), clock: { passes } }
}

async function showProgress({ discord, thread }: Pick<Conversation, 'discord' | 'thread'>, asked: string) {
  discord.say(discord.owner, thread.id, asked)
  return until(() => progressIn(discord, thread.id), 'the progress message')
}
