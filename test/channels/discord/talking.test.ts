import { describe, it } from 'vitest'
import { steps } from '../../kit/steps-agent.js'
import { answered, answersIn, beginThread, openScene } from './stage.js'
import { until } from '../../kit/waiting.js'

describe.concurrent('what is said to the bot', () => {
  it('answers a mention, which is not part of the prompt', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel } = await openScene(onTestFinished)
    const { id } = discord.say(discord.owner, channel.id, `what is <@${discord.bot.id}> doing?`)
    const answers = await answered(discord, id)
    expect([answers, stage.journal().map(({ prompt }) => prompt), stage.problems()]).toEqual([
      ['You said: what is doing?'],
      ['what is doing?'],
      [],
    ])
  })

  it('answers a mention of the role that Discord made for the bot', async ({ expect, onTestFinished }) => {
    const { discord, guild, channel } = await openScene(onTestFinished)
    const role = [...guild.roles.values()].find(({ tags }) => tags?.bot_id === discord.bot.id)
    const { id } = discord.say(discord.owner, channel.id, `<@&${role?.id}> hello`)
    await answered(discord, id)
    expect(answersIn(discord, id)).toEqual(['You said: hello'])
  })

  it('answers a reply to its own message, without a mention, in the same session', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, discord, channel } = await openScene(onTestFinished, { discordThreads: false })
    discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, channel.id, 1)
    const replyTo = discord.messagesIn(channel.id).at(-1)
    if (!replyTo) throw new Error('There is no answer')
    discord.say(discord.owner, channel.id, 'and again', { replyTo, isReplyPinged: false })
    await answered(discord, channel.id, 2)
    const [first, second] = stage.journal()
    expect([answersIn(discord, channel.id), second]).toEqual([
      ['You said: hello', 'You said: and again'],
      { prompt: 'and again', sessionId: first?.sessionId, isResumed: true, model: 'none' },
    ])
  })

  it('answers everything that the owner says in a direct message', async ({ expect, onTestFinished }) => {
    const { stage, discord } = await openScene(onTestFinished)
    const { id } = discord.directChannel(discord.owner)
    for (const text of ['one', 'two']) discord.say(discord.owner, id, text)
    await answered(discord, id, 2)
    expect([answersIn(discord, id), stage.journal().map(({ isResumed }) => isResumed)]).toEqual([
      ['You said: one', 'You said: two'],
      [false, true],
    ])
  })

  it('answers everything in its own thread, in one session', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    discord.say(discord.owner, thread.id, 'go on')
    await answered(discord, thread.id, 2)
    const [first, second] = stage.journal()
    expect([answersIn(discord, thread.id), first?.isResumed, second]).toEqual([
      ['You said: hello', 'You said: go on'],
      false,
      { prompt: 'go on', sessionId: first?.sessionId, isResumed: true, model: 'none' },
    ])
  })

  it('answers in the thread of a person only when it is mentioned', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel } = await openScene(onTestFinished)
    const thread = discord.openThread(discord.owner, channel.id, 'our talk')
    discord.say(discord.owner, thread.id, 'nobody is asked')
    discord.say(discord.owner, thread.id, 'the bot is', { mentions: [discord.bot] })
    await answered(discord, thread.id)
    expect([answersIn(discord, thread.id), stage.journal().length, discord.threadsIn(channel.id).length]).toEqual([
      ['You said: the bot is'],
      1,
      1,
    ])
  })

  it('ignores what is not meant for it, and other bots', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ guild }) => ({ discordGuilds: [guild.id] }))
    const { stage, discord, guild, channel, ada } = scene
    const robot = discord.addUser('robot', { isBot: true })
    const said = discord.say(ada, channel.id, 'only people here')
    discord.say(discord.owner, channel.id, 'a reply to a person', { replyTo: said })
    discord.say(ada, channel.id, `I mean <@${robot.id}>, @aetheel, and <@&${guild.id}>`)
    discord.say(robot, channel.id, 'from a bot', { mentions: [discord.bot] })
    const { id } = discord.say(ada, channel.id, 'at last', { mentions: [discord.bot] })
    await answered(discord, id)
    discord.say(robot, id, 'from a bot in our thread')
    discord.say(ada, id, 'and last')
    await answered(discord, id, 2)
    const asked = stage.journal().map(({ prompt }) => prompt)
    expect([asked, answersIn(discord, channel.id), discord.threadsIn(channel.id).length]).toEqual([
      ['at last', 'and last'],
      [],
      1,
    ])
  })

  it('passes the names of mentioned people to the agent', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, ada } = scene
    const thread = await beginThread(scene)
    discord.say(discord.owner, thread.id, `tell <@${ada.id}> about it`)
    await answered(discord, thread.id, 2)
    expect(stage.journal()[1]?.prompt).toBe('tell @ada about it')
  })

  it('quotes the message of another person to which the bot is called', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel, ada } = await openScene(onTestFinished)
    const replyTo = discord.say(ada, channel.id, 'the build fails\nsince noon')
    const { id } = discord.say(discord.owner, channel.id, 'why?', { mentions: [discord.bot], replyTo })
    await answered(discord, id)
    expect(stage.journal()[0]?.prompt).toBe('@ada wrote:\n> the build fails\n> since noon\n\nwhy?')
  })

  it('answers two people in one thread one after the other', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ guild }) => ({ discordGuilds: [guild.id] }))
    const { stage, discord, ada, ben } = scene
    const thread = await beginThread(scene)
    discord.say(ada, thread.id, steps({ hold: 'first' }, { text: 'for ada' }))
    await until(() => stage.journal().length === 2, 'the first of them being worked on')
    discord.say(ben, thread.id, 'ben one')
    discord.say(ada, thread.id, 'ada two')
    discord.say(ben, thread.id, 'ben three')
    stage.release('first')
    await answered(discord, thread.id, 5)
    const sessions = new Set(stage.journal().map(({ sessionId }) => sessionId))
    expect([answersIn(discord, thread.id).slice(1), sessions.size]).toEqual([
      ['for ada', 'You said: ben one', 'You said: ada two', 'You said: ben three'],
      1,
    ])
  })

  it('answers several threads at the same time', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel } = await openScene(onTestFinished)
    const waiting = discord.say(discord.owner, channel.id, steps({ hold: 'it' }, { text: 'late' }), {
      mentions: [discord.bot],
    })
    await until(() => stage.journal().length === 1, 'the first being worked on')
    const { id } = discord.say(discord.owner, channel.id, 'quick', { mentions: [discord.bot] })
    await answered(discord, id)
    stage.release('it')
    await answered(discord, waiting.id)
    expect([answersIn(discord, id), answersIn(discord, waiting.id)]).toEqual([['You said: quick'], ['late']])
  })

  it('stores messages while the thread of another waits for Discord', async ({ expect, onTestFinished }) => {
    const { discord, channel, gateway } = await openScene(onTestFinished)
    const opening = 'POST /channels/:id/messages/:id/threads'
    discord.fail(opening, { kind: 'rate-limit', retryAfterMs: 60_000 })
    const first = discord.say(discord.owner, channel.id, 'one', { mentions: [discord.bot] })
    await until(() => discord.requestsTo(opening).length > 0, 'the thread to wait')
    const second = discord.say(discord.owner, channel.id, 'two', { mentions: [discord.bot] })
    await expect.poll(async () => (await gateway.store.inbox.findByPlatformId('discord', second.id))?.text).toBe('two')
    expect(discord.threadOf(first.id)).toBeUndefined()
  })

  it('answers a bare mention with the help, in place', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel } = await openScene(onTestFinished)
    const message = discord.say(discord.owner, channel.id, '', { mentions: [discord.bot] })
    await answered(discord, channel.id)
    const [, help] = discord.messagesIn(channel.id)
    expect([help?.content, help?.message_reference?.message_id, discord.threadOf(message.id), stage.journal()]).toEqual(
      [expect.stringMatching(/^\/ask <text>: .*\/help: show this list$/s), message.id, undefined, []],
    )
  })

  it('takes /ask before a text as the text', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel } = await openScene(onTestFinished)
    const { id } = discord.say(discord.owner, channel.id, '/ask what is this?', { mentions: [discord.bot] })
    await answered(discord, id)
    expect(stage.journal()[0]?.prompt).toBe('what is this?')
  })

  it('passes a text that begins with a slash but is no command to the agent', async ({ expect, onTestFinished }) => {
    const { discord } = await openScene(onTestFinished)
    const { id } = discord.directChannel(discord.owner)
    discord.say(discord.owner, id, '/etc/hosts is empty')
    await answered(discord, id)
    expect(answersIn(discord, id)).toEqual(['You said:  /etc/hosts is empty'])
  })
})
