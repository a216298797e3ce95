// What happens to a message whose agent pauses, times out or fails for a while, in a whole gateway.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { comeDue } from '../kit/come-due.js'
import { type RunningGateway, Stage } from '../kit/stage.js'
import { STEPS_AGENT, steps } from '../kit/steps-agent.js'
import { until } from '../kit/waiting.js'

const PAUSED = 'Paused after 25 steps, the limit for one message. Use /continue to resume.'

describe.concurrent('an agent that has used up its turns', () => {
  it('answers with what it said, and continues in its session when told to', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const running = await stage.start({ BACKEND_CLI_PATH: STEPS_AGENT })
    const { gateway, channel } = running
    const before = await channel.command('a', '/continue')
    await channel.say('a', steps({ text: 'The half is done.' }, { pause: true }))
    await expect.poll(() => channel.replies.length).toEqual(1)
    const [answer] = channel.replies
    const deadLetters = await gateway.store.inbox.listFailed(10)

    const answers = await Promise.all([channel.command('a', '/continue'), channel.command('a', '/continue')])
    await expect.poll(() => channel.replies.length).toEqual(2)
    const after = await channel.command('a', '/continue')
    const pressedAgain = await channel.host().onButton('continue', answer?.messageId ?? '', 'ann')
    const [first, second] = stage.journal()
    expect({
      before,
      answer: { text: answer?.text, notes: answer?.notes, canContinue: answer?.canContinue, isError: answer?.isError },
      deadLetters,
      answers: answers.toSorted(),
      after,
      pressedAgain,
      journal: stage
        .journal()
        .map(({ prompt, isResumed }) => ({ prompt, isResumed }))
        .slice(1),
      isSameSession: first?.sessionId === second?.sessionId,
      texts: channel.texts().slice(1),
    }).toEqual({
      before: 'Nothing is paused here.',
      answer: { text: 'The half is done.', notes: [PAUSED], canContinue: true, isError: false },
      deadLetters: [],
      answers: ['Continuing.', 'It has already been continued.'],
      after: 'Nothing is paused here.',
      pressedAgain: { text: 'It has already been continued.', isDone: true },
      journal: [{ prompt: 'Continue where you stopped.', isResumed: true }],
      isSameSession: true,
      texts: ['You said: Continue where you stopped.'],
    })
  })

  it('that said nothing is reported, and a newer message replaces continuing it', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished)
    const { channel } = await stage.start({ BACKEND_CLI_PATH: STEPS_AGENT, BACKEND_MAX_TURNS: '1' })
    await channel.say('a', steps({ pause: true }))
    await expect.poll(() => channel.replies.length).toEqual(1)
    const [answer] = channel.replies
    await channel.say('a', 'Something else.')
    await expect.poll(() => channel.replies.length).toEqual(2)
    const pressed = await channel.host().onButton('continue', answer?.messageId ?? '', 'ann')
    expect([answer?.text, answer?.notes, pressed]).toEqual([
      'Paused after 1 step, the limit for one message. Use /continue to resume.',
      [],
      { text: 'The conversation has moved on. Write what the agent should do next.', isDone: true },
    ])
  })

  it('does not continue in another session', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const { channel } = await stage.start({ BACKEND_CLI_PATH: STEPS_AGENT })
    await channel.say('a', steps({ pause: true }))
    await expect.poll(() => channel.replies.length).toEqual(1)
    await channel.command('a', '/new')
    expect(await channel.command('a', '/continue')).toEqual('Nothing is paused here.')
  })
})

/** Pauses twice; then its session is refused, like one in which tools were used, and a fresh one repeats its prompt. */
const FORGETFUL_AGENT = `#!/usr/bin/env node
import { appendFileSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
const isResumed = process.argv.includes('--resume')
const prompt = await text(process.stdin)
appendFileSync('asked', JSON.stringify({ prompt, isResumed }) + '\\n')
const turn = readFileSync('asked', 'utf8').trim().split('\\n').length
const print = (line) => console.log(JSON.stringify(line))
const say = (content) => print({ type: 'message', role: 'assistant', content })
const id = turn < 4 ? '11111111-1111-4111-8111-111111111111' : '22222222-2222-4222-8222-222222222222'
print({ type: 'init', session_id: id, model: 'm' })
if (turn < 3) {
  say(['', 'I looked.', 'I wrote.'][turn])
  print({ type: 'result', status: 'error', error: { type: 'FatalTurnLimitedError', message: 'Reached max session turns' } })
  process.exitCode = 53
} else if (turn === 3) {
  const rule = 'the number of function response parts is equal to the number of function call parts'
  console.error('_ApiError: ' + JSON.stringify({ error: { code: 400, message: 'Please ensure that ' + rule } }))
  print({ type: 'result', status: 'error' })
  process.exitCode = 144
} else {
  say(prompt)
  print({ type: 'result', status: 'success' })
}
`

describe.concurrent('an agent that does not remember the turn in which it paused', () => {
  it('is told of it when it continues, in its session or a fresh one', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const settings = { AGENT_BACKEND: 'gemini', BACKEND_CLI_PATH: stage.executable('gemini', FORGETFUL_AGENT) }
    const { channel, config } = await stage.start({ ...settings, AGENT_MODE: 'oneshot' })
    await channel.say('a', 'Tidy up.')
    for (const replies of [1, 2]) {
      await expect.poll(() => channel.replies.length).toEqual(replies)
      await channel.command('a', '/continue')
    }
    await expect.poll(() => channel.replies.length).toEqual(3)
    const asked = readFileSync(join(config.workingDir, 'asked'), 'utf8').trim().split('\n')
    const retold = (said: string): string =>
      `[You worked on this message until you had used up the steps of one turn, and do not remember it. Parts of the work are done already: look before you repeat them, and go on from there. The message was:]\n\nTidy up.\n\n[What you had said by then:]\n\n${said}`
    const both = retold('I looked.\n\nI wrote.')
    expect([asked.map((line) => JSON.parse(line)), channel.texts()[2], channel.replies[2]?.notes]).toEqual([
      [
        { prompt: 'Tidy up.', isResumed: false },
        { prompt: retold('I looked.'), isResumed: true },
        { prompt: both, isResumed: true },
        { prompt: both, isResumed: false },
      ],
      both,
      ['The earlier session was lost; this answer starts a fresh one and remembers nothing from before.'],
    ])
  })
})

describe.concurrent('a message that is retried', () => {
  it('keeps its agent and its model, whatever is chosen meanwhile', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    stage.executable('codex', '#!/bin/sh\necho "codex-cli 0.166.0"\n')
    const { gateway, channel, config } = await stage.start({ BACKEND_CLI_PATH: STEPS_AGENT })
    await channel.command('a', '/model small')
    const { messageId } = await channel.say('a', steps({ fail: 'Overloaded', unless: 'calm' }, { text: 'Done.' }))
    await expect.poll(() => stage.logsOf('turn.failed').length).toEqual(1)
    const chosen = await channel.command('a', '/backend codex')
    stage.release('calm')
    await comeDue(config, gateway)
    await expect.poll(() => channel.texts()).toEqual(['Done.'])
    const runs = await gateway.store.runs.ofMessage(messageId)
    expect([chosen, runs.map(({ backend, model }) => [backend, model])]).toEqual([
      'The next message goes to codex, in a fresh session.',
      [
        ['claude', 'small'],
        ['claude', 'small'],
      ],
    ])
  })

  it('because it took too long resumes its session, as often as the settings allow', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished)
    const { gateway, channel, config } = await hangs(stage, 'turn.failed', { QUERY_TIMEOUT_RETRIES: '1' })
    await comeDue(config, gateway)
    await expect.poll(() => channel.replies.length).toEqual(1)
    const [first, second] = stage.journal()
    expect([channel.texts(), second?.isResumed, first?.sessionId === second?.sessionId]).toEqual([
      [expect.stringMatching(/^claude worked for \d+ s in 2 attempts without finishing and was stopped\./)],
      true,
      true,
    ])
  })

  it('is not retried once its attempts have taken as long as a message may', async ({ expect, onTestFinished }) => {
    const { channel } = await hangs(new Stage(onTestFinished), 'message.failed', { MESSAGE_TIMEOUT_MS: '1' })
    await expect.poll(() => channel.replies.length).toEqual(1)
    expect(channel.texts()).toEqual([expect.stringMatching(/^claude worked for \d+ s, the limit for one turn,/)])
  })

  it('can be stopped while it waits, and what it said stays readable', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const { gateway, channel } = await stage.start({ BACKEND_CLI_PATH: STEPS_AGENT })
    const { messageId } = await channel.say('a', steps({ text: 'I begin.' }, { fail: 'Overloaded' }))
    await expect.poll(() => stage.logsOf('turn.failed').length).toEqual(1)
    const answer = await channel.command('a', '/stop')
    await channel.say('a', 'And now?')
    await expect.poll(() => channel.texts()).toEqual(['You said: And now?'])
    const message = await gateway.store.inbox.get(messageId)
    const [run, ...more] = await gateway.store.runs.ofMessage(messageId)
    const { events } = await gateway.store.events.page(run?.id ?? '', 0, { events: 100, bytes: 100_000 })
    const said = events.map(({ event }) => (event.type === 'output' ? event.content : '')).join('')
    expect([answer, message?.state, more, said]).toEqual(['Dropped the waiting message.', 'dropped', [], 'I begin.'])
  })
})

/** A gateway whose agent has timed out on a message, up to the log entry. */
async function hangs(stage: Stage, logged: string, settings: NodeJS.ProcessEnv): Promise<RunningGateway> {
  const running = await stage.start({ BACKEND_CLI_PATH: STEPS_AGENT, QUERY_TIMEOUT_MS: '5000', ...settings })
  await running.channel.say('a', steps({ hold: 'never' }))
  await until(() => stage.logsOf(logged).length > 0, logged)
  return running
}
