// What is said while nobody is listening is answered afterwards, once, in order, and before newer messages.

import { describe, it, type TestContext } from 'vitest'
import { createDatabase, postgresUrl } from '../../kit/postgres.js'
import { steps } from '../../kit/steps-agent.js'
import { beginThread, DiscordStage, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

const HOUR_MS = 3_600_000

describe('What is said while the gateway is stopped', { concurrent: true }, () => {
  it('in a thread is answered in order, and before newer messages', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, gateway } = scene
    const { id } = await beginThread(scene)
    await stage.stop(gateway)
    for (const text of ['one', 'two', 'three']) discord.say(discord.owner, id, text)

    // Long enough for new messages to arrive first.
    discord.fail('GET /channels/:id/messages', { kind: 'rate-limit', retryAfterMs: 1_000 })
    await stage.start()
    discord.say(discord.owner, id, 'four')

    await expect.poll(() => discord.textsIn(id)).toEqual(answers('hello', 'one', 'two', 'three', 'four'))
    expect(stage.journal().map(({ prompt }) => prompt)).toEqual(['hello', 'one', 'two', 'three', 'four'])
  })

  it('in a channel is answered in its own thread', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel, gateway } = await openScene(onTestFinished)
    await stage.stop(gateway)
    const ids = ['one', 'two'].map((text) => mention(discord, channel.id, text))
    discord.say(discord.owner, channel.id, 'to somebody else')

    await stage.start()

    await expect
      .poll(() => ids.map((id) => [textsIn(discord, id), discord.reactionsOn(id)]))
      .toEqual([
        [answers('one'), ['✅']],
        [answers('two'), ['✅']],
      ])
    expect(stage.journal()).toHaveLength(2)
  })

  it('behind much talk among others is found', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel, gateway } = await openScene(onTestFinished)
    await stage.stop(gateway)
    for (let count = 0; count < 250; count += 1) discord.say(discord.owner, channel.id, `talk ${count}`)
    const id = mention(discord, channel.id, 'one')

    await stage.start()

    await expect.poll(() => textsIn(discord, id)).toEqual(answers('one'))
  })

  it('in a thread that is archived by then is answered', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, gateway } = scene
    const { id } = await beginThread(scene)
    await stage.stop(gateway)
    discord.say(discord.owner, id, 'one')
    discord.archive(id)

    await stage.start()

    await expect.poll(() => discord.textsIn(id)).toEqual(answers('hello', 'one'))
  })

  it('in direct messages is answered, even if its author never wrote before', async (context) => {
    const { expect, onTestFinished } = context
    const settings = ({ ada }: Pick<Scene, 'ada'>) => ({ discordUsers: [ada.id] })
    const { stage, discord, ada, ben, gateway } = await openScene(onTestFinished, settings)
    const { id: known } = discord.directChannel(discord.owner)
    discord.say(discord.owner, known, 'hello')
    await until(() => discord.textsIn(known).length > 0, 'the first answer')
    await stage.stop(gateway)
    discord.say(discord.owner, known, 'one')
    const { id: unknown } = discord.directChannel(ada)
    discord.say(ada, unknown, 'two')
    const { id: stranger } = discord.directChannel(ben)
    discord.say(ben, stranger, 'three')

    await stage.start({ discordUsers: [ada.id] })

    await expect
      .poll(() => [known, unknown].map((id) => discord.textsIn(id)))
      .toEqual([answers('hello', 'one'), answers('two')])
    expect(discord.textsIn(stranger)).toEqual([])
  })

  it('in a first direct message by the owner is answered', async ({ expect, onTestFinished }) => {
    const { stage, discord, gateway } = await openScene(onTestFinished)
    await stage.stop(gateway)
    const { id } = discord.directChannel(discord.owner)
    discord.say(discord.owner, id, 'one')

    await stage.start()

    await expect.poll(() => discord.textsIn(id)).toEqual(answers('one'))
  })

  it('and edited is answered in its latest form; deleted ones are not', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, gateway } = scene
    const { id } = await beginThread(scene)
    await stage.stop(gateway)
    discord.edit(discord.say(discord.owner, id, 'one'), 'one, or rather two')
    discord.delete(discord.say(discord.owner, id, 'nothing'))
    discord.say(discord.owner, id, 'three')

    await stage.start()

    await expect.poll(() => discord.textsIn(id)).toEqual(answers('hello', 'one, or rather two', 'three'))
  })

  it('as a command is done once, however often the gateway starts', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, gateway } = scene
    const { id } = await beginThread(scene)
    await stage.stop(gateway)
    discord.say(discord.owner, id, '/new')

    const second = await stage.start()
    await until(() => discord.textsIn(id).length === 2, 'the answer to the command')
    await stage.stop(second)
    const { store } = await stage.start()

    discord.say(discord.owner, id, 'last')
    await expect
      .poll(() => discord.textsIn(id))
      .toEqual(['You said: hello', 'The next message starts a fresh session.', 'You said: last'])
    expect(await store.audit.list(10)).toMatchObject([{ action: 'new' }])
  })

  it('by strangers is ignored', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel, ada, gateway } = await openScene(onTestFinished)
    await stage.stop(gateway)
    discord.say(ada, channel.id, 'one', { mentions: [discord.bot] })
    const id = mention(discord, channel.id, 'two')

    await stage.start()

    await expect.poll(() => textsIn(discord, id)).toEqual(answers('two'))
    expect(discord.textsIn(channel.id)).toEqual([])
  })

  it('more than a day ago is not answered', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, gateway } = scene
    const { id } = await beginThread(scene)
    await stage.stop(gateway)
    discord.say(discord.owner, id, 'one')
    discord.advance(25 * HOUR_MS)
    discord.say(discord.owner, id, 'two')

    await stage.start({}, { now: () => Date.now() + 25 * HOUR_MS })

    await expect.poll(() => discord.textsIn(id)).toEqual(answers('hello', 'two'))
    expect(stage.journal().map(({ prompt }) => prompt)).toEqual(['hello', 'two'])
  })

  it('before it was ever started is not answered', async ({ expect, onTestFinished }) => {
    const stage = await DiscordStage.open(onTestFinished)
    const { discord } = stage
    const channel = discord.addChannel(discord.addGuild())
    const early = mention(discord, channel.id, 'early')
    const { id: direct } = discord.directChannel(discord.owner)
    discord.say(discord.owner, direct, 'early')
    // Discord's clock separates the first start from what came before.
    discord.advance(1_000)

    await stage.start({}, { now: () => Date.now() + 1_000 })

    const id = mention(discord, channel.id, 'one')
    await expect.poll(() => textsIn(discord, id)).toEqual(answers('one'))
    expect([textsIn(discord, early), discord.textsIn(direct)]).toEqual([[], []])
  })
})

describe('What is said while Discord cannot be reached', { concurrent: true }, () => {
  it('is answered in order when the connection is back, and so is what was asked before', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const { id } = await beginThread(scene)
    discord.say(discord.owner, id, steps({ hold: 'a' }, { text: 'held' }))
    await until(() => stage.journal().length === 2, 'the agent')

    discord.refuseResume()
    discord.goOffline()
    stage.release('a')
    discord.say(discord.owner, id, 'one')
    await until(() => stage.alive().length === 0, 'the end of the turn')
    discord.comeOnline()

    await until(() => discord.identifies === 2, 'a new session')
    discord.say(discord.owner, id, 'two')
    await expect.poll(() => discord.textsIn(id)).toEqual(['You said: hello', 'held', ...answers('one', 'two')])
  })
})

describe.skipIf(postgresUrl() === undefined)('Two gateways on one PostgreSQL', { concurrent: true }, () => {
  it('answer every message once, and leave no progress message', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel } = await openTwo(onTestFinished)

    const ids = ['one', 'two', 'three', 'four'].map((text) => mention(discord, channel.id, text))
    const slow = ['a', 'b', 'c', 'd'].map((text) =>
      mention(discord, channel.id, steps({ text }, { hold: 'slow' }, { text: '!' })),
    )
    await until(() => slow.every((id) => discord.threadOf(id) && progressIn(discord, id)), 'all progress messages')
    stage.release('slow')

    await expect
      .poll(() => [...ids, ...slow].map((id) => textsIn(discord, id)))
      .toEqual([...['one', 'two', 'three', 'four'].map((text) => answers(text)), ['a!'], ['b!'], ['c!'], ['d!']])
    expect({ turns: stage.journal().length, beside: discord.textsIn(channel.id) }).toEqual({ turns: 8, beside: [] })
  })

  it('do a command once, written or chosen', async ({ expect, onTestFinished }) => {
    const { discord, channel, gateways } = await openTwo(onTestFinished)
    const { id } = await beginThread({ discord, channel })

    discord.say(discord.owner, id, '/new')
    await until(() => discord.textsIn(id).length === 2, 'the answer to the written one')
    await discord.slash(discord.owner, id, 'new').answer()

    discord.say(discord.owner, id, 'last')
    await expect
      .poll(() => discord.textsIn(id))
      .toEqual([
        'You said: hello',
        'The next message starts a fresh session.',
        'There is no session yet; the next message starts one.',
        'You said: last',
      ])
    expect(await gateways[0]?.store.audit.list(10)).toMatchObject([{ action: 'new' }, { action: 'new' }])
  })

  it('answer once what was said while both were stopped', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel, gateways, databaseUrl } = await openTwo(onTestFinished)
    const { id } = await beginThread({ discord, channel })
    for (const gateway of gateways) await stage.stop(gateway)
    discord.say(discord.owner, id, 'one')
    discord.say(discord.owner, id, '/new')
    discord.say(discord.owner, id, 'two')

    const [{ store }] = await Promise.all([stage.start({ databaseUrl }), stage.start({ databaseUrl })])

    discord.say(discord.owner, id, 'last')
    await expect
      .poll(() => discord.textsIn(id).toSorted())
      .toEqual(['The next message starts a fresh session.', ...answers('hello', 'last', 'one', 'two')])
    expect({
      turns: stage.journal().map(({ prompt }) => prompt),
      commands: await store.audit.list(10),
    }).toMatchObject({ turns: ['hello', 'one', 'two', 'last'], commands: [{ action: 'new' }] })
  })
})

/** Two gateways with the same token, and a server with one channel. */
async function openTwo(onTestFinished: TestContext['onTestFinished']) {
  const { url: databaseUrl, drop } = await createDatabase()
  onTestFinished(drop)
  const stage = await DiscordStage.open(onTestFinished)
  const { discord } = stage
  const channel = discord.addChannel(discord.addGuild())
  const gateways = [await stage.start({ databaseUrl }), await stage.start({ databaseUrl })]
  return { stage, discord, channel, gateways, databaseUrl }
}

function mention(discord: Scene['discord'], channelId: string, text: string): string {
  return discord.say(discord.owner, channelId, text, { mentions: [discord.bot] }).id
}

/** Everything the bot said in a thread, if there is one. */
function textsIn(discord: Scene['discord'], threadId: string): string[] {
  return discord.threadOf(threadId) ? discord.textsIn(threadId) : []
}

function answers(...texts: string[]): string[] {
  return texts.map((text) => `You said: ${text}`)
}
