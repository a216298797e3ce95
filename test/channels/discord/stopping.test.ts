// A stop in the middle of something takes a moment, and loses nothing.

import { describe, it } from 'vitest'
import type { FakeDiscord } from './fake-discord.js'
import { answered, openScene } from './stage.js'
import { until } from '../../kit/waiting.js'

const MINUTE_MS = 60_000

function mention(discord: FakeDiscord, channelId: string, text: string): string {
  return discord.say(discord.owner, channelId, text, { mentions: [discord.bot] }).id
}

describe.concurrent('a stop', () => {
  it('while missed messages cannot be read leaves them to the next start', async ({ expect, onTestFinished }) => {
    const { stage, discord, guild, channel, gateway } = await openScene(onTestFinished)
    const other = discord.addChannel(guild)
    await stage.stop(gateway)
    const missed = mention(discord, channel.id, 'missed')
    // Longer than the overlap that is read again anyway.
    discord.advance(10 * MINUTE_MS)
    const reading = `GET /channels/${channel.id}/messages`
    discord.fail(reading, { kind: 'close' }, 1_000)
    const second = await stage.start()
    await until(() => discord.requestsTo(reading).length > 0, 'the reading')
    await answered(discord, mention(discord, other.id, 'new'))
    await stage.stop(second)
    discord.clearFaults()
    const wasAnswered = discord.threadOf(missed) !== undefined

    await stage.start()

    expect([wasAnswered, await answered(discord, missed)]).toEqual([false, ['You said: missed']])
  })

  it.for([
    ['a reaction', 'PUT /channels/:id/messages/:id/reactions/:emoji/@me'],
    ['the opening of a thread', 'POST /channels/:id/messages/:id/threads'],
  ] as const)('does not wait for %s that hangs', async ([, route], { expect, onTestFinished }) => {
    const { stage, discord, channel, gateway } = await openScene(onTestFinished)
    discord.fail(route, { kind: 'hang' }, 10)
    mention(discord, channel.id, 'hello')
    await until(() => discord.requestsTo(route).length > 0, 'the request')
    const startedAt = performance.now()
    await stage.stop(gateway)
    // The client alone would wait 15 s, four times.
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })
})

it('a token that Discord refuses temporarily loses no missed message', async ({ expect, onTestFinished }) => {
  const { stage, discord, channel, gateway } = await openScene(onTestFinished)
  await stage.stop(gateway)
  const id = mention(discord, channel.id, 'missed')
  const reading = `GET /channels/${channel.id}/messages`
  discord.fail(reading, { kind: 'status', status: 401 })
  await stage.start()
  expect([await answered(discord, id), discord.requestsTo(reading).map(({ status }) => status)]).toEqual([
    ['You said: missed'],
    [401, 200],
  ])
})
