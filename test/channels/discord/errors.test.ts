import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { timeOfDay } from '../../../src/runtime/time-words.js'
import { comeDue } from '../../kit/come-due.js'
import { steps } from '../../kit/steps-agent.js'
import { answered, answersIn, beginThread, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

/** Sends a message of the owner that starts a conversation. */
function ask({ discord, channel }: Scene, text: string): string {
  return discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] }).id
}

/** Waits until an attempt has failed, and makes the next one the last. */
async function skipRetries(scene: Scene): Promise<void> {
  await until(() => scene.stage.logsOf('turn.failed').length > 0, 'the first failure')
  await comeDue(scene.stage.config(), scene.gateway, 3)
}

function hasRetryButton({ discord }: Scene, channelId: string): boolean[] {
  return discord
    .messagesIn(channelId)
    .filter(({ author }) => author.id === discord.bot.id)
    .map((message) => discord.buttonsOf(message).some((id) => id.startsWith('retry:')))
}

describe.concurrent('what a person is told when something goes wrong', () => {
  it('says how to log in if the agent is not logged in', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const id = ask(scene, steps({ fail: 'Not logged in · Please run /login' }))
    expect([await answered(scene.discord, id), hasRetryButton(scene, id)]).toEqual([
      [
        '⚠️ claude is not logged in where the gateway runs, or its key was rejected. ' +
          'To fix this, run "claude auth login" there, or set ANTHROPIC_API_KEY for the gateway. ' +
          'Then try again.\n\nIt said: Not logged in · Please run /login',
      ],
      [true],
    ])
  })

  it("says until when a limit lasts, in the reader's time zone, and answers after it", async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const end = new Date(Date.now() + 2 * 3_600_000)
    end.setSeconds(0, 0)
    const clock = [end.getHours(), end.getMinutes()].map((part) => String(part).padStart(2, '0')).join(':')
    const fail = `You've hit your limit · resets ${clock}`
    const id = ask(scene, steps({ fail, unless: 'limit' }, { text: 'the answer' }))
    const [waiting] = await answered(discord, id)
    stage.release('limit')
    await comeDue(stage.config(), scene.gateway, 0)
    // A little later: clocks differ.
    const seconds = end.getTime() / 1000 + 5
    expect([waiting, (await answered(discord, id, 2))[1], hasRetryButton(scene, id)]).toEqual([
      `claude has reached its usage limit. Your message is waiting and will be retried at ${timeOfDay(end.getTime(), Date.now())}.\n\n` +
        `-# That is <t:${seconds}:t> your time, <t:${seconds}:R>.`,
      'the answer',
      [false, false],
    ])
  })

  it('says what to do when it took too long, after a retry', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { queryTimeoutMs: 3_000 })
    const { stage, discord } = scene
    const id = ask(scene, steps({ text: 'I begin.' }, { hold: 'never' }))
    const progress = await until(() => {
      const shown = progressIn(discord, id)
      return shown?.content.includes('attempt') && shown
    }, 'the next attempt in the progress message')
    await skipRetries(scene)
    const answers = await answered(discord, id)
    await until(() => progressIn(discord, id) === undefined, 'the end of the progress message')
    expect([progress.content, answers, hasRetryButton(scene, id), stage.alive()]).toEqual([
      expect.stringMatching(/\n-# ⚠️ The agent did not finish within [\d.]+ s\. · attempt 2 of 4 starts <t:\d+:R>$/),
      [
        // Less if the machine was slow to start.
        expect.stringMatching(
          /^⚠️ claude worked for \d s in 2 attempts without finishing and was stopped\. Changes it already made are kept\. Ask for a smaller step, or raise QUERY_TIMEOUT_MS\.$/,
        ),
      ],
      [true],
      [],
    ])
  })

  it('says that the session was lost, with an answer from a fresh one', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    rmSync(join(stage.workingDir, `session-${stage.journal()[0]?.sessionId}`))
    discord.say(discord.owner, thread.id, 'do you remember?')
    const answers = await answered(discord, thread.id, 2)
    expect([answers[1], stage.journal()[1]?.isResumed]).toEqual([
      'You said: do you remember?\n\n' +
        '-# The earlier session was lost; this answer starts a fresh one and remembers nothing from before.',
      false,
    ])
  })

  it('says what to do if the agent is not installed', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { backendCliPath: 'no-such-agent' })
    const id = ask(scene, 'hello')
    const answers = await answered(scene.discord, id)
    await until(() => progressIn(scene.discord, id) === undefined, 'the end of the progress message')
    expect([answers, hasRetryButton(scene, id)]).toEqual([
      [
        expect.stringMatching(
          /^⚠️ claude could not be started where the gateway runs\. Run "aetheel doctor --agent claude" there to see what is missing and how to install it\. Then try again\.\n\nReason: .*no-such-agent/,
        ),
      ],
      [true],
    ])
  })

  it('repeats what the agent said if it fails for another reason', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const id = ask(scene, steps({ fail: 'The disk is full' }))
    await skipRetries(scene)
    const [answer] = await answered(scene.discord, id)
    expect([answer, answersIn(scene.discord, id).length]).toEqual([
      expect.stringMatching(/^⚠️ claude failed\. .*\n\nIt said: The disk is full$/s),
      1,
    ])
  })

  it('refuses one message too many, and accepts the others', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { maxQueueDepth: 1 })
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    discord.say(discord.owner, thread.id, steps({ hold: 'it' }, { text: 'released' }))
    await until(() => stage.journal().length === 2, 'a turn')
    discord.say(discord.owner, thread.id, 'the one that waits')
    discord.say(discord.owner, thread.id, 'one too many')
    await answered(discord, thread.id, 2)
    stage.release('it')
    expect((await answered(discord, thread.id, 4)).slice(1)).toEqual([
      '⚠️ 1 message is already waiting in this conversation, so this one was not accepted. Send it again later.',
      'released',
      'You said: the one that waits',
    ])
  })

  it('continues other conversations when one fails', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    const failed = ask(scene, steps({ fail: 'Not logged in' }))
    const fine = ask(scene, 'hello')
    const [, answers] = await Promise.all([answered(discord, failed), answered(discord, fine)])
    discord.say(discord.owner, failed, 'are you there?')
    expect([answers, (await answered(discord, failed, 2))[1]]).toEqual([
      ['You said: hello'],
      'You said: are you there?',
    ])
  })
})
