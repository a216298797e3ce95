import { ChannelType, PermissionFlagsBits } from 'discord.js'
import { describe, it } from 'vitest'
import type { FakeDiscord } from './fake-discord.js'
import { steps } from '../../kit/steps-agent.js'
import { answered, answersIn, beginThread, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

/** The bot's messages in a channel, each with the message it replies to. */
function repliesIn(discord: FakeDiscord, channelId: string) {
  return discord
    .messagesIn(channelId)
    .filter(({ author }) => author.id === discord.bot.id)
    .map(({ content, message_reference }) => [content, message_reference?.message_id])
}

/** A mention being worked on, in an existing thread. */
async function beginHeld({ stage, discord, channel }: Scene): Promise<string> {
  const text = steps({ hold: 'it' }, { text: 'the answer' })
  const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
  await until(() => stage.journal().length === 1 && discord.threadOf(id), 'a turn')
  return id
}

/** A mention being worked on, with a progress message in its thread, and another message waiting there. */
async function beginWithProgress({ discord, channel }: Scene): Promise<string> {
  const text = steps({ text: 'I begin, ' }, { hold: 'it' }, { text: 'I end.' })
  const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
  await until(() => progressIn(discord, id), 'a progress message')
  const next = discord.say(discord.owner, id, 'and next')
  await until(() => discord.reactionsOn(next.id).length > 0, 'the next to be taken')
  return id
}

function notSent({ stage }: Scene): object[] {
  return stage.logsOf('reply.not-sent')
}

describe.concurrent('threads', () => {
  it('opens a thread named after the message', async ({ expect, onTestFinished }) => {
    const { discord, channel } = await openScene(onTestFinished)
    const text = `find out\nwhy the build ${'often '.repeat(20)}fails`
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await answered(discord, id)
    const [thread] = discord.threadsIn(channel.id)
    expect([thread?.id, thread?.name, thread?.thread?.ownerId, answersIn(discord, channel.id)]).toEqual([
      id,
      'find out why the build often often often often often often often often often of…',
      discord.bot.id,
      [],
    ])
  })

  it('answers in the channel, as a reply, if configured to open none', async ({ expect, onTestFinished }) => {
    const { discord, channel } = await openScene(onTestFinished, { discordThreads: false })
    const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, channel.id)
    expect([repliesIn(discord, channel.id), discord.threadsIn(channel.id)]).toEqual([[['You said: hello', id]], []])
  })

  it('answers in the channel, as a reply, if it may open none', async ({ expect, onTestFinished }) => {
    const { discord, channel } = await openScene(onTestFinished, ({ discord, channel }) => {
      discord.deny(channel.id, PermissionFlagsBits.CreatePublicThreads)
      return {}
    })
    const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await expect
      .poll(() => [repliesIn(discord, channel.id), discord.threadsIn(channel.id), discord.reactionsOn(id)])
      .toEqual([[['You said: hello', id]], [], ['✅']])
  })

  it('continues the same session when somebody replies to an answer without a thread', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, discord, channel } = await openScene(onTestFinished, ({ discord, channel }) => {
      discord.deny(channel.id, PermissionFlagsBits.CreatePublicThreads)
      return {}
    })
    discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, channel.id)
    const replyTo = discord.messagesIn(channel.id).at(-1)
    if (!replyTo) throw new Error('There is no answer')
    discord.say(discord.owner, channel.id, 'and now?', { replyTo })
    await answered(discord, channel.id, 2)
    expect(stage.journal().map(({ prompt, isResumed }) => [prompt, isResumed])).toEqual([
      ['hello', false],
      ['and now?', true],
    ])
  })

  it('answers in the channel, as a reply, when it may not write in the thread', async ({ expect, onTestFinished }) => {
    const { discord, channel } = await openScene(onTestFinished, ({ discord, channel }) => {
      discord.deny(channel.id, PermissionFlagsBits.SendMessagesInThreads)
      return {}
    })
    const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, channel.id)
    expect(repliesIn(discord, channel.id)).toEqual([['You said: hello', id]])
  })

  it('answers in channels without threads', async ({ expect, onTestFinished }) => {
    const { discord, guild } = await openScene(onTestFinished)
    const voice = discord.addChannel(guild, { type: ChannelType.GuildVoice })
    const { id } = discord.say(discord.owner, voice.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, voice.id)
    expect(repliesIn(discord, voice.id)).toEqual([['You said: hello', id]])
  })

  it('answers in the post of a forum in which it is mentioned', async ({ expect, onTestFinished }) => {
    const { discord, guild } = await openScene(onTestFinished)
    const forum = discord.addChannel(guild, { type: ChannelType.GuildForum })
    const content = `<@${discord.bot.id}> hello`
    const post = discord.openThread(discord.owner, forum.id, 'a question', { content })
    expect(await answered(discord, post.id)).toEqual(['You said: hello'])
  })

  it('answers without 👀 and without replying if it may not read the history', async ({ expect, onTestFinished }) => {
    const { discord, channel } = await openScene(onTestFinished, ({ discord, channel }) => {
      discord.deny(channel.id, PermissionFlagsBits.ReadMessageHistory)
      return { discordThreads: false }
    })
    discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, channel.id)
    discord.say(discord.owner, channel.id, '/model', { mentions: [discord.bot] })
    await answered(discord, channel.id, 2)
    expect(repliesIn(discord, channel.id)).toEqual([
      ['You said: hello', undefined],
      [expect.stringContaining("The model is the agent's default."), undefined],
    ])
  })

  it('reopens a thread that was deleted before the answer', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const id = await beginHeld(scene)
    discord.deleteChannel(id)
    stage.release('it')
    await answered(discord, id)
    expect([answersIn(discord, id), answersIn(discord, channel.id)]).toEqual([['the answer'], []])
  })

  it('answers in the channel when the thread and its first message were deleted', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const id = await beginHeld(scene)
    const first = discord.message(id)
    discord.deleteChannel(id)
    if (first) discord.delete(first)
    stage.release('it')
    await answered(discord, channel.id)
    expect([repliesIn(discord, channel.id), discord.threadsIn(channel.id)]).toEqual([[['the answer', undefined]], []])
  })

  it('answers in a thread that was archived in the meantime', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const id = await beginHeld(scene)
    discord.archive(id)
    stage.release('it')
    await answered(discord, id)
    expect([answersIn(discord, id), answersIn(discord, channel.id), discord.threadOf(id)?.thread?.isArchived]).toEqual([
      ['the answer'],
      [],
      false,
    ])
  })

  it('answers in the channel, as a reply, if the thread was locked in the meantime', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const id = await beginHeld(scene)
    discord.archive(id, { isLocked: true })
    stage.release('it')
    await answered(discord, channel.id)
    expect([repliesIn(discord, channel.id), answersIn(discord, id)]).toEqual([[['the answer', id]], []])
  })

  it('answers once outside a thread that was locked under a progress message, and continues', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const id = await beginWithProgress(scene)
    discord.archive(id, { isLocked: true })
    stage.release('it')
    await answered(discord, channel.id, 2)
    expect([repliesIn(discord, channel.id), notSent(scene), stage.journal().length]).toEqual([
      [
        ['I begin, I end.', id],
        ['You said: and next', id],
      ],
      [],
      2,
    ])
  })

  it('answers once in the channel if a thread is gone with its first message and a progress message, and continues', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const id = await beginWithProgress(scene)
    const first = discord.message(id)
    discord.deleteChannel(id)
    if (first) discord.delete(first)
    stage.release('it')
    await answered(discord, channel.id, 2)
    expect([answersIn(discord, channel.id), notSent(scene), stage.journal().length]).toEqual([
      ['I begin, I end.', 'You said: and next'],
      [],
      2,
    ])
  })

  it('opens the thread later when Discord fails to open it, instead of giving it up', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { discord, channel } = scene
    // The client retries each three times.
    discord.fail('POST /channels/:id/messages/:id/threads', { kind: 'status', status: 500 }, 8)
    const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, id)
    discord.say(discord.owner, id, 'and now?')
    await answered(discord, id, 2)
    expect([answersIn(discord, id), answersIn(discord, channel.id)]).toEqual([
      ['You said: hello', 'You said: and now?'],
      [],
    ])
  })

  it('takes /stop as a reply beside a thread that could not be opened for the conversation there', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, discord, channel } = await openScene(onTestFinished, ({ discord, channel }) => {
      discord.deny(channel.id, PermissionFlagsBits.CreatePublicThreads)
      return {}
    })
    discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, channel.id)
    const replyTo = discord.messagesIn(channel.id).at(-1)
    if (!replyTo) throw new Error('There is no answer')
    discord.say(discord.owner, channel.id, steps({ hold: 'never' }), { replyTo })
    await until(() => stage.journal().length === 2, 'a turn')
    discord.say(discord.owner, channel.id, '/stop', { replyTo })
    const stopped = await until(
      () => answersIn(discord, channel.id).find((text) => text.startsWith('Stopped') || text.startsWith('Nothing')),
      'the answer to /stop',
    )
    expect([stopped, stage.alive()]).toEqual([expect.stringMatching(/^Stopped claude after \d+ s\.$/), []])
  })

  it('answers in a new thread when the channel of the first one is used again', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    await beginThread(scene)
    await beginThread(scene)
    const sessions = new Set(stage.journal().map(({ sessionId }) => sessionId))
    expect([discord.threadsIn(channel.id).length, sessions.size]).toEqual([2, 2])
  })
})

describe.concurrent('a channel is a project', () => {
  it('works in the directory of the project, with its model', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ stage, channel }) => ({
      projects: {
        site: { directory: stage.makeDirectory('site'), model: 'opus', discordChannels: [channel.id] },
      },
    }))
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    const status = await discord.slash(discord.owner, thread.id, 'status').answer()
    const site = `${stage.directory}/site`
    expect([stage.journal(), stage.journal(site), status]).toEqual([
      [],
      [{ prompt: 'hello', sessionId: expect.any(String), isResumed: false, model: 'opus' }],
      expect.stringContaining(`model: opus\nproject: site\ndirectory: ${site}\n`),
    ])
  })

  it('works without a project in the other channels', async ({ expect, onTestFinished }) => {
    const { stage, discord, guild } = await openScene(onTestFinished, ({ stage, channel }) => ({
      projects: { site: { directory: stage.makeDirectory('site'), discordChannels: [channel.id] } },
    }))
    const other = discord.addChannel(guild)
    const { id } = discord.say(discord.owner, other.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, id)
    expect([stage.journal().length, stage.journal(`${stage.directory}/site`).length]).toEqual([1, 0])
  })

  it("applies a channel's choices to its threads, new and old", async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ stage }) => ({
      projects: { site: { directory: stage.makeDirectory('site') } },
    }))
    const { stage, discord, channel } = scene
    const old = await beginThread(scene)
    await discord.slash(discord.owner, channel.id, 'project', { id: 'site' }).answer()
    await discord.slash(discord.owner, channel.id, 'model', { name: 'opus' }).answer()
    await beginThread(scene)
    discord.say(discord.owner, old.id, 'go on')
    await answered(discord, old.id, 2)
    const inSite = stage.journal(`${stage.directory}/site`).map(({ prompt, model }) => [prompt, model])
    expect([stage.journal().map(({ model }) => model), inSite]).toEqual([
      ['none'],
      [
        ['hello', 'opus'],
        ['go on', 'opus'],
      ],
    ])
  })

  it("applies a thread's choices to that thread only", async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const thread = await beginThread(scene)
    await discord.slash(discord.owner, channel.id, 'model', { name: 'opus' }).answer()
    await discord.slash(discord.owner, thread.id, 'model', { name: 'haiku' }).answer()
    discord.say(discord.owner, thread.id, 'go on')
    // One of them is the answer to /model.
    await answered(discord, thread.id, 3)
    await beginThread(scene)
    expect(stage.journal().map(({ model }) => model)).toEqual(['none', 'haiku', 'opus'])
  })
})
