import { describe, it } from 'vitest'
import { steps } from '../../kit/steps-agent.js'
import { answered, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

/** A task from the scheduler, a heartbeat or a hook, with the output channel for its answer. */
async function give(
  { gateway, channel }: Scene,
  kind: 'cron' | 'heartbeat',
  text: string,
  address = channel.id,
): Promise<void> {
  const platformId = `event:${kind}:${text}`
  await gateway.hostOf('discord').onMessage({ address, platformId, author: kind, kind, text })
}

describe.concurrent('the output channel', () => {
  it('gets the answer to scheduled work at its top level, with a sound', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ channel }) => ({ outputChannelId: channel.id }))
    const { stage, discord, channel } = scene
    await give(scene, 'cron', 'look at the logs')
    await answered(discord, channel.id)
    const messages = discord.messagesIn(channel.id)
    expect([
      messages.map(({ content, flags, message_reference }) => [content, flags, message_reference]),
      discord.threadsIn(channel.id),
      stage.problems(),
    ]).toEqual([[['You said: look at the logs', 0, undefined]], [], []])
  })

  it('continues the same session when somebody replies there', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ channel }) => ({ outputChannelId: channel.id }))
    const { stage, discord, channel } = scene
    await give(scene, 'heartbeat', 'is all well?')
    await answered(discord, channel.id)
    const [replyTo] = discord.messagesIn(channel.id)
    if (!replyTo) throw new Error('There is no answer')
    const reply = discord.say(discord.owner, channel.id, 'tell me more', { replyTo })
    await answered(discord, channel.id, 2)
    const [first, second] = stage.journal()
    const last = discord.messagesIn(channel.id).at(-1)
    expect([second?.isResumed, second?.sessionId, last?.content, last?.message_reference?.message_id]).toEqual([
      true,
      first?.sessionId,
      'You said: tell me more',
      reply.id,
    ])
  })

  it('keeps scheduled work apart from the threads of the channel', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ channel }) => ({ outputChannelId: channel.id }))
    const { stage, discord, channel } = scene
    await give(scene, 'cron', 'one')
    const { id } = discord.say(discord.owner, channel.id, 'two', { mentions: [discord.bot] })
    await Promise.all([answered(discord, channel.id), answered(discord, id)])
    await give(scene, 'cron', 'three')
    await answered(discord, channel.id, 2)
    const sessionOf = (prompt: string) => stage.journal().find((asked) => asked.prompt === prompt)?.sessionId
    expect([sessionOf('one') === sessionOf('three'), sessionOf('one') === sessionOf('two')]).toEqual([true, false])
  })

  it('stays private when it is a direct message', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ guild }) => ({ discordGuilds: [guild.id] }))
    const { discord, channel, ada } = scene
    const { id } = discord.directChannel(discord.owner)
    discord.say(discord.owner, id, 'between us')
    await answered(discord, id)
    await give(scene, 'cron', 'look at the logs', id)
    await answered(discord, id, 2)
    const listed = await discord.slash(ada, channel.id, 'sessions').answer()
    const suggested = await discord.autocomplete(ada, channel.id, 'resume', 'session', '')
    const own = await discord.slash(discord.owner, id, 'sessions').answer()
    expect([listed, suggested, own]).toEqual([
      'There are no sessions yet.',
      [],
      expect.stringMatching(/^1\. claude, \d+ s ago: look at the logs \(/),
    ])
  })

  it('shows what the agent does, and the work can be stopped there', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ channel }) => ({ outputChannelId: channel.id }))
    const { stage, discord, channel } = scene
    await give(scene, 'cron', steps({ text: 'I begin.' }, { hold: 'never' }))
    const progress = await until(() => progressIn(discord, channel.id), 'a progress message')
    const answer = await discord.press(discord.owner, progress, discord.buttonsOf(progress)[0] ?? '').answer()
    expect([answer, stage.alive()]).toEqual([expect.stringMatching(/^Stopped claude after \d+ s\.$/), []])
  })
})
