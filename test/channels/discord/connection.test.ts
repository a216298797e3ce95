// Breaks the connection in all the ways Discord does. Whatever is said in the meantime is answered once and in order.

import { describe, it, type TestContext } from 'vitest'
import { openDiscord } from '../../../src/channels/configured-channels.js'
import { startGateway } from '../../../src/gateway.js'
import type { FakeChannel } from './fake-discord-records.js'
import { answersIn, beginThread, DiscordStage, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

/** Far below any time-out involved. */
const QUICKLY_MS = 10_000

describe('A connection to Discord', { concurrent: true }, () => {
  it('that cannot be established at the start is established later; the gateway starts anyway', async (context) => {
    const { expect, onTestFinished } = context
    const stage = await DiscordStage.open(onTestFinished)
    const { discord } = stage
    const channel = discord.addChannel(discord.addGuild())
    discord.goOffline()

    await stage.start()
    const requests = discord.requests.length
    discord.comeOnline()
    await discord.waitFor(() => discord.isConnected, 60_000)

    const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await expect.poll(() => discord.threadOf(id) && answersIn(discord, id)).toEqual(answers('hello'))
    expect(requests).toEqual(0)
  })

  it('that breaks is resumed, with what was said in the meantime', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.dropSocket()
    say(discord, thread, 'one', 'two', 'three')

    await until(() => discord.resumes === 1, 'a resumed session')
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'two', 'three', 'last'))
    expect(discord.identifies).toEqual(1)
  })

  it('that Discord asks to reconnect is resumed', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.requestReconnect()
    say(discord, thread, 'one', 'two')

    await until(() => discord.resumes === 1, 'a resumed session')
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'two', 'last'))
    expect(discord.identifies).toEqual(1)
  })

  it('whose session is invalid but can be resumed is resumed', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.invalidateSession({ isResumable: true })
    say(discord, thread, 'one', 'two')

    await until(() => discord.resumes === 1, 'a resumed session')
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'two', 'last'))
    expect(discord.identifies).toEqual(1)
  })

  it('whose session is gone begins another one, and fetches what it missed', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.invalidateSession()
    say(discord, thread, 'one', 'two')

    await until(() => discord.identifies === 2, 'a new session')
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'two', 'last'))
    expect(discord.resumes).toEqual(0)
  })

  it('whose session is gone right after it was resumed begins another one', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)
    discord.pauseDelivery()
    discord.dropSocket()
    await until(() => discord.resumes === 1, 'a resumed session')

    discord.resumeDelivery()
    discord.invalidateSession()
    say(discord, thread, 'one')

    await until(() => discord.identifies === 2, 'a new session')
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'last'))
  })

  it('that may not be resumed begins another session', async ({ expect, onTestFinished }) => {
    const { discord, thread } = await openConversation(onTestFinished)

    discord.refuseResume()
    discord.dropSocket()
    say(discord, thread, 'one', 'two')

    await until(() => discord.identifies === 2, 'a new session')
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'two', 'last'))
    expect(discord.resumes).toEqual(0)
  })

  it('on which no heartbeat is answered is re-established', async ({ expect, onTestFinished }) => {
    const stage = await DiscordStage.open(onTestFinished)
    const { discord } = stage
    const channel = discord.addChannel(discord.addGuild())
    discord.settings.heartbeatIntervalMs = 300
    await stage.start()
    const thread = await beginThread({ discord, channel })

    discord.settings.acknowledgesHeartbeats = false
    discord.pauseDelivery()
    say(discord, thread, 'one')

    await until(() => discord.resumes > 0, 'a resumed session')
    discord.settings.acknowledgesHeartbeats = true
    discord.resumeDelivery()
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'last'))
    expect(discord.identifies).toEqual(1)
  })

  it('through which messages come before READY and before their server has them answered once', async (context) => {
    const { expect, onTestFinished } = context
    const stage = await DiscordStage.open(onTestFinished)
    const { discord } = stage
    const channel = discord.addChannel(discord.addGuild())
    const mention = { mentions: [discord.bot] }
    const ids: string[] = []
    discord.beforeReady(() => {
      ids.push(discord.say(discord.owner, channel.id, 'before READY', mention).id)
      discord.say(discord.owner, channel.id, '/new', mention)
    })
    discord.beforeGuilds(() => {
      ids.push(discord.say(discord.owner, channel.id, 'before the server', mention).id)
    })

    const { store } = await stage.start()

    ids.push(discord.say(discord.owner, channel.id, 'after all', mention).id)
    const threads = () => ids.map((id) => (discord.threadOf(id) ? answersIn(discord, id) : []))
    await expect.poll(threads).toEqual([answers('before READY'), answers('before the server'), answers('after all')])
    expect({
      asked: stage
        .journal()
        .map(({ prompt }) => prompt)
        .toSorted(),
      commands: await store.audit.list(10),
    }).toMatchObject({
      asked: ['after all', 'before READY', 'before the server'],
      commands: [{ action: 'new' }],
    })
  })

  it('that brings messages twice has each answered once', async ({ expect, onTestFinished }) => {
    const { discord, thread, gateway } = await openConversation(onTestFinished)

    discord.duplicateNextMessage(2)
    say(discord, thread, 'one', '/new')

    say(discord, thread, 'last')
    // A command does not wait for the agent.
    await expect
      .poll(() => answersIn(discord, thread.id).toSorted())
      .toEqual(['The next message starts a fresh session.', ...answers('hello', 'last', 'one')])
    expect(await gateway.store.audit.list(10)).toMatchObject([{ action: 'new' }])
  })

  it('with a wrong token fails the start, and says where to get a right one', async ({ expect, onTestFinished }) => {
    const stage = await DiscordStage.open(onTestFinished)

    const started = stage.start({ discordBotToken: 'MTIzNDU2.Gwrong.abcdefghijklmnopqrstuvwxyz' })

    await expect(started).rejects.toMatchObject({
      name: 'GatewayError',
      code: 'config_invalid',
      message: expect.stringMatching(/^DISCORD_BOT_TOKEN: .*get a new one on the Bot page/),
    })
  })

  it('without the message content intent fails the start, and says where to enable it', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await DiscordStage.open(onTestFinished)
    stage.discord.applicationFlags = 0

    await expect(stage.start()).rejects.toMatchObject({
      name: 'GatewayError',
      code: 'config_invalid',
      message: expect.stringContaining('Turn on "Message Content Intent"'),
    })
  })

  it('whose token is refused later is retried until it is accepted', async ({ expect, onTestFinished }) => {
    const { stage, discord, thread } = await openConversation(onTestFinished)

    discord.fail('GET /gateway/bot', { kind: 'status', status: 401 }, 1_000)
    discord.dropSocket(4004)
    say(discord, thread, 'one')
    await until(() => stage.logsOf('discord.disconnected').at(-1)?.['code'] === 4004, 'a word about the code')
    await until(() => stage.logsOf('discord.not-connected').at(-1), 'an attempt')
    discord.clearFaults()

    await until(() => discord.identifies === 2, 'a new session')
    say(discord, thread, 'last')
    await expect.poll(() => answersIn(discord, thread.id)).toEqual(answers('hello', 'one', 'last'))
  })

  it('whose token is refused permanently does not keep the gateway from stopping', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, discord, gateway } = await openScene(onTestFinished)
    discord.fail('GET /gateway/bot', { kind: 'status', status: 401 }, 1_000)
    discord.dropSocket(4004)
    await until(() => stage.logsOf('discord.not-connected').at(-1), 'an attempt')

    expect(await durationOf(stage.stop(gateway))).toBeLessThan(QUICKLY_MS)
  })

  it('that is being re-established does not keep the gateway from stopping', async ({ expect, onTestFinished }) => {
    const { stage, discord, gateway } = await openScene(onTestFinished)
    discord.refuseResume()
    discord.pauseDelivery()
    discord.dropSocket()
    await until(() => discord.identifies === 2, 'a session without READY')

    expect(await durationOf(stage.stop(gateway))).toBeLessThan(QUICKLY_MS)
  })

  it('to an unreachable Discord does not keep the gateway from stopping', async ({ expect, onTestFinished }) => {
    const { stage, discord, gateway } = await openScene(onTestFinished)
    discord.goOffline()
    await until(() => stage.logsOf('discord.reconnecting').at(-1), 'the line to be down')

    expect(await durationOf(stage.stop(gateway))).toBeLessThan(QUICKLY_MS)
  })

  it.for([
    ['who the bot is', 'GET /users/@me'],
    ['where the gateway is', 'GET /gateway/bot'],
    ['READY', undefined],
  ] as const)('that waits to hear %s can be given up', async ([, hang], { expect, onTestFinished }) => {
    const stage = await DiscordStage.open(onTestFinished)
    const { discord, log } = stage
    const config = stage.config()
    const gateway = await startGateway(config, { environment: {}, log, channels: [] })
    onTestFinished(() => gateway.stop())
    const channel = await openDiscord(config, log)
    if (hang === undefined) discord.pauseDelivery()
    else discord.fail(hang, { kind: 'hang' }, 1_000)

    void channel?.start(gateway.hostOf('discord')).catch(() => {})
    await until(() => (hang === undefined ? discord.identifies === 1 : discord.faultCount === 1), 'the wait')

    const stopped = channel?.stop().then(() => channel.close())
    expect(await durationOf(stopped)).toBeLessThan(QUICKLY_MS)
  })
})

interface Conversation extends Scene {
  /** A thread in which a first message has been answered. */
  thread: FakeChannel
}

async function openConversation(onTestFinished: TestContext['onTestFinished']): Promise<Conversation> {
  const scene = await openScene(onTestFinished)
  return { ...scene, thread: await beginThread(scene) }
}

function say(discord: Scene['discord'], { id }: FakeChannel, ...texts: string[]): void {
  for (const text of texts) discord.say(discord.owner, id, text)
}

function answers(...texts: string[]): string[] {
  return texts.map((text) => `You said: ${text}`)
}

async function durationOf(work: Promise<unknown> | undefined): Promise<number> {
  const since = performance.now()
  await work
  return performance.now() - since
}
