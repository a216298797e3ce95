import { expect, it } from 'vitest'
import { DiscordStage, steps, until } from './stage.js'

it('answers a mention in a thread', async ({ onTestFinished }) => {
  const stage = await DiscordStage.open(onTestFinished)
  const { discord } = stage
  const guild = discord.addGuild()
  const channel = discord.addChannel(guild)
  await stage.start()
  const message = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
  const thread = await until(() => discord.threadOf(message.id), 'a thread')
  await until(() => discord.textsIn(thread.id).length > 0, 'an answer')
  console.log(discord.textsIn(thread.id), discord.reactionsOn(message.id), discord.requests.map((r) => `${r.method} ${r.route} ${r.status}`), stage.problems())
  discord.say(discord.owner, thread.id, steps({ text: 'one two\n' }, { tool: 'Bash', input: { command: 'npm test' } }, { hold: 'x' }, { text: 'three' }))
  await until(() => discord.textsIn(thread.id).length > 1, 'live')
  console.log(discord.messagesIn(thread.id).map((m) => [m.content, discord.buttonsOf(m)]))
  stage.release('x')
  await until(() => discord.textsIn(thread.id).some((t) => t.includes('three')), 'final')
  await new Promise((r) => setTimeout(r, 500))
  console.log(discord.messagesIn(thread.id).map((m) => [m.content, discord.buttonsOf(m)]))
  console.log(stage.problems())
  const handle = discord.slash(discord.owner, thread.id, 'status')
  console.log(await handle.answer())
  expect(1).toBe(1)
})
