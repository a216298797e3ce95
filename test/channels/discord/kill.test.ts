// The gateway, in its own process, is killed on the way from a message to its answer. The next one delivers the rest:
// every part of the answer once, in order, and nothing else.

import type { APIMessage } from 'discord.js'
import { describe, it, type TestContext } from 'vitest'
import type { Step } from '../../../src/turns/types.js'
import type { FakeChannel } from './fake-discord-records.js'
import { steps } from '../../kit/steps-agent.js'
import { DiscordStage, progressIn } from './stage.js'
import { until } from '../../kit/waiting.js'
import { GatewayStarter, type KillableGateway } from '../../kit/killable-gateway.js'

const POST = 'POST /channels/:id/messages'
const DELETE = 'DELETE /channels/:id/messages/:id'
const STEPS: Step[] = ['accepted', 'claimed', 'streaming', 'finished', 'committed', 'sent']
const PARTS = ['one', 'two', 'three'].map((word) => `${word} `.repeat(300).trim())
const THREE_PARTS = PARTS.join('\n\n')
/** When the next gateway starts: while Discord still knows the nonces, or after it forgot them. */
const MOMENTS = [
  ['at once', 0],
  ['six minutes later', 6 * 60_000],
] as const

describe('A gateway that is killed', { concurrent: true }, () => {
  it.for(STEPS)('when a message is %s answers it once after the restart', async (step, { onTestFinished, expect }) => {
    const { discord, channel, start } = await openStage(onTestFinished)
    const killed = start({ fatalStep: step })
    await until(() => discord.isConnected, 'the connection')
    const { id } = mention({ discord, channel }, steps({ text: THREE_PARTS }))
    const end = await killed.ended

    start()
    await until(() => discord.threadOf(id) && discord.textsIn(id).includes(PARTS[2] ?? ''), 'the answer')
    discord.say(discord.owner, id, 'last')

    await expect.poll(() => discord.textsIn(id)).toEqual([...PARTS, 'You said: last'])
    expect({ end, beside: discord.textsIn(channel.id) }).toEqual({ end: 'SIGKILL', beside: [] })
  })

  it('when Continue was pressed lets the agent go on once', async ({ onTestFinished, expect }) => {
    const { stage, discord, channel, start } = await openStage(onTestFinished)
    const first = start()
    await until(() => discord.isConnected, 'the connection')
    const { id } = mention({ discord, channel }, steps({ text: 'Half of it.' }, { pause: true }))
    const [message, customId] = await until(() => continueButton(discord, id), 'the button')
    await first.kill()
    const second = start({ fatalStep: 'claimed' })
    await second.started
    await until(() => discord.isConnected, 'the connection')
    discord.press(discord.owner, message, customId)
    await second.ended

    const third = start()
    await third.started
    await until(() => discord.isConnected, 'the connection')
    const again = await discord.press(discord.owner, message, customId).answer()
    await until(() => discord.textsIn(id).length > 1, 'the answer')
    discord.say(discord.owner, id, 'last')
    await until(() => discord.textsIn(id).includes('You said: last'), 'the last answer')
    expect([again, stage.journal().map(({ prompt }) => prompt)]).toEqual([
      'It has already been continued.',
      [expect.any(String), expect.stringMatching(/Continue where you stopped\.$/), 'last'],
    ])
  })

  it('while an agent works continues with the existing progress message', async ({ onTestFinished, expect }) => {
    const { stage, discord, channel, start } = await openStage(onTestFinished)
    const killed = start()
    await until(() => discord.isConnected, 'the connection')
    const { id } = mention({ discord, channel }, steps({ text: 'one ' }, { hold: 'a' }, { text: 'two' }, { hold: 'b' }))
    const progress = await until(() => progressIn(discord, id), 'the progress message')
    await killed.kill()

    start()
    await until(() => stage.journal().length === 2, 'the second attempt')
    stage.release('a')
    const after = await until(() => {
      const found = progressIn(discord, id)
      return found?.content.includes('two') && found
    }, 'more of it')
    stage.release('b')

    await expect.poll(() => discord.textsIn(id)).toEqual(['one two'])
    expect({ progressId: after.id, isResumed: stage.journal().map(({ isResumed }) => isResumed) }).toEqual({
      progressId: progress.id,
      isResumed: [false, true],
    })
  })

  it.for(MOMENTS)(
    'when the first of three parts was posted posts the others %s',
    async ([, laterMs], { onTestFinished, expect }) => {
      const { stage, discord, channel, start } = await openStage(onTestFinished)
      const killed = start()
      await until(() => discord.isConnected, 'the connection')
      const { id } = mention({ discord, channel }, steps({ hold: 'a' }, { text: THREE_PARTS }))
      await until(() => progressIn(discord, id), 'the progress message')
      discord.fail(POST, { kind: 'hang', hasEffect: true })
      stage.release('a')
      await until(() => discord.faultCount === 1, 'the first part')
      const early = discord.textsIn(id).filter((text) => text === PARTS[0])
      await killed.kill()
      discord.advance(laterMs)

      start({ aheadMs: laterMs })
      await until(() => discord.textsIn(id).includes(PARTS[2] ?? ''), 'the answer')
      discord.say(discord.owner, id, 'last')

      await expect.poll(() => discord.textsIn(id)).toEqual([...PARTS, 'You said: last'])
      expect(early).toEqual([PARTS[0]])
    },
  )

  it.for(MOMENTS)(
    'when all was posted takes the progress message away %s',
    async ([, laterMs], { onTestFinished, expect }) => {
      const { stage, discord, channel, start } = await openStage(onTestFinished)
      const killed = start()
      await until(() => discord.isConnected, 'the connection')
      const { id } = mention({ discord, channel }, steps({ hold: 'a' }, { text: THREE_PARTS }))
      await until(() => progressIn(discord, id), 'the progress message')
      discord.fail(DELETE, { kind: 'hang' })
      stage.release('a')
      await until(() => discord.faultCount === 1, 'the attempt to take it away')
      const early = discord.textsIn(id)
      await killed.kill()
      discord.advance(laterMs)

      start({ aheadMs: laterMs })
      await until(() => !progressIn(discord, id), 'the progress message to go')
      discord.say(discord.owner, id, 'last')

      await expect.poll(() => discord.textsIn(id)).toEqual([...PARTS, 'You said: last'])
      expect(early).toEqual([expect.stringContaining('working'), ...PARTS])
    },
  )
})

interface StartOptions {
  fatalStep?: Step
  aheadMs?: number
}

interface KillStage {
  stage: DiscordStage
  discord: DiscordStage['discord']
  channel: FakeChannel
  start(options?: StartOptions): KillableGateway
}

async function openStage(onTestFinished: TestContext['onTestFinished']): Promise<KillStage> {
  const stage = await DiscordStage.open(onTestFinished)
  const { discord, directory } = stage
  // This tests the path to the answer, not its speed.
  discord.limits.postMessage.limit = 100
  const { configFile = '', home } = stage.config()
  const gateways = new GatewayStarter(directory, 'channels/discord', { AETHEEL_HOME: home }, onTestFinished)
  const start = ({ fatalStep, aheadMs = 0 }: StartOptions = {}): KillableGateway =>
    gateways.start([configFile, String(aheadMs), ...(fatalStep ? [fatalStep] : [])])
  return { stage, discord, channel: discord.addChannel(discord.addGuild()), start }
}

function mention({ discord, channel }: Pick<KillStage, 'discord' | 'channel'>, text: string) {
  return discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
}

function continueButton(
  discord: KillStage['discord'],
  channelId: string,
): [message: APIMessage, id: string] | undefined {
  if (!discord.threadOf(channelId)) return undefined
  for (const message of discord.messagesIn(channelId)) {
    const id = discord.buttonsOf(message).find((one) => one.startsWith('continue:'))
    if (id !== undefined) return [message, id]
  }
  return undefined
}
