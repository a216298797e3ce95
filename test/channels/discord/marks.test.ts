// The reaction that shows the outcome of a message, and the line below its answer.

import { describe, it } from 'vitest'
import { steps } from '../../kit/steps-agent.js'
import { until } from '../../kit/waiting.js'
import { answered, answersIn, openScene, progressIn, type Scene } from './stage.js'

const REACTION = 'PUT /channels/:id/messages/:id/reactions/:emoji/@me'

function say({ discord, channel }: Scene, text: string): string {
  return discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] }).id
}

describe.concurrent('a message', () => {
  it('gets ✅ for its 👀 when it is answered, in a channel and in its thread', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    const id = say(scene, 'hello')
    await expect.poll(() => discord.reactionsOn(id)).toEqual(['✅'])
    const next = discord.say(discord.owner, id, 'and this?')
    await expect.poll(() => discord.reactionsOn(next.id)).toEqual(['✅'])
  })

  it('gets ❌ when it failed, and ✅ once it was queued again and answered', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const id = say(scene, steps({ unless: 'fixed', fail: 'Not logged in · Please run /login' }))
    await expect.poll(() => discord.reactionsOn(id)).toEqual(['❌'])
    const failure = await until(
      () =>
        discord.messagesIn(id).find((message) => discord.buttonsOf(message).some((name) => name.startsWith('retry:'))),
      'the failure',
    )
    stage.release('fixed')
    discord.press(discord.owner, failure, discord.buttonsOf(failure)[0] ?? '')
    await expect.poll(() => discord.reactionsOn(id)).toEqual(['✅'])
  })

  it('gets ⏹️ when it was stopped, at work or waiting', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    const id = say(scene, steps({ hold: 'it' }))
    await until(() => progressIn(discord, id), 'a progress message')
    const waiting = discord.say(discord.owner, id, steps({ hold: 'more' }))
    await expect.poll(() => discord.reactionsOn(waiting.id)).toEqual(['👀'])
    for (let count = 0; count < 2; count += 1) await discord.slash(discord.owner, id, 'stop').answer()
    await expect.poll(() => discord.reactionsOn(id)).toEqual(['⏹️'])
    await expect.poll(() => discord.reactionsOn(waiting.id)).toEqual(['⏹️'])
  })

  it('gets ✅ also when the answer to another one answers it', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { queueMode: 'collect' })
    const { stage, discord } = scene
    const id = say(scene, steps({ hold: 'it' }))
    await until(() => progressIn(discord, id), 'a progress message')
    const ids = ['two', 'three'].map((text) => discord.say(discord.owner, id, text).id)
    for (const one of ids) await expect.poll(() => discord.reactionsOn(one)).toEqual(['👀'])
    stage.release('it')
    for (const one of [id, ...ids]) await expect.poll(() => discord.reactionsOn(one)).toEqual(['✅'])
  })

  it('is answered in time even if no reaction gets through', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    discord.fail(REACTION, { kind: 'close' }, 100)
    const id = say(scene, 'hello')
    expect([await answered(discord, id), discord.reactionsOn(id)]).toEqual([['You said: hello'], []])
  })
})

describe.concurrent('the line below an answer', () => {
  it('tells model, time and cost in its last message, unless it is turned off', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { discordFooter: true })
    const { discord, channel } = scene
    const long = Array.from({ length: 3 }, (_, index) => `${index} `.repeat(500).trim())
    const id = say(scene, steps({ text: long.join('\n\n') }))
    const answers = await answered(discord, id, 2)
    const failing = say(scene, steps({ fail: 'Not logged in · Please run /login' }))
    const [failure] = await answered(discord, failing)
    const footer = /\n\n-# [^\n]+ · \d+ s · \$0\.25$/
    const { content = '' } = discord.messagesIn(id).at(-1) ?? {}
    expect([
      answers.join('\n\n').replace(footer, ''),
      answers.map((text) => footer.test(text)),
      content.match(footer)?.[0].split(' · ')[0]?.trim(),
      failure?.includes('-#'),
      answersIn(discord, channel.id),
    ]).toEqual([long.join('\n\n'), [false, true], '-# none', false, []])
  })
})
