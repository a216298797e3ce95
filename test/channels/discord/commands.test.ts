import { type APIMessage, PermissionFlagsBits } from 'discord.js'
import { describe, it } from 'vitest'
import { COMMANDS, HELP_TEXT } from '../../../src/conversation/command-descriptions.js'
import { GatewayError } from '../../../src/errors.js'
import { databaseFile } from '../../../src/gateway.js'
import { openSqlite } from '../../../src/store/sqlite.js'
import { storeOn } from '../../../src/store/store.js'
import type { FakeDiscord } from './fake-discord.js'
import { steps } from '../../kit/steps-agent.js'
import { answered, answersIn, beginThread, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

const ANY_ID = '[0-9a-f-]{36}'

/** The owner's view after a slash command. */
async function slash({ discord }: Scene, channelId: string, name: string, options: Record<string, string> = {}) {
  const handle = discord.slash(discord.owner, channelId, name, options)
  return { answer: await handle.answer(), isPrivate: handle.isEphemeral }
}

/** The owner's view after a line in a channel. */
async function say({ discord }: Scene, channelId: string, line: string): Promise<string> {
  const { id } = discord.say(discord.owner, channelId, line)
  const isAnswer = (message: APIMessage): boolean => message.message_reference?.message_id === id
  const answer = await until(() => discord.messagesIn(channelId).find(isAnswer), `an answer to ${line}`)
  return answer.content
}

async function goOn({ discord }: Scene, channelId: string, text: string): Promise<string | undefined> {
  const before = answersIn(discord, channelId).length
  discord.say(discord.owner, channelId, text)
  return (await answered(discord, channelId, before + 1)).at(-1)
}

/** A turn in a thread that runs until released. */
async function beginWork(scene: Scene, channelId: string, ...before: object[]): Promise<void> {
  const { stage, discord } = scene
  const { length } = stage.journal()
  discord.say(discord.owner, channelId, steps(...before, { hold: 'it' }, { text: 'released' }))
  await until(() => stage.journal().length > length, 'a turn')
}

function findButton(discord: FakeDiscord, channelId: string, action: string) {
  for (const message of discord.messagesIn(channelId)) {
    const customId = discord.buttonsOf(message).find((id) => id.startsWith(`${action}:`))
    if (customId !== undefined) return { message, customId }
  }
  return undefined
}

async function press({ discord }: Scene, channelId: string, action: string): Promise<string> {
  const { message, customId } = await until(() => findButton(discord, channelId, action), `the button ${action}`)
  return discord.press(discord.owner, message, customId).answer()
}

describe.concurrent('commands', () => {
  it('are known to Discord, with what can be typed after them', async ({ expect, onTestFinished }) => {
    const { discord } = await openScene(onTestFinished)
    const known = discord.commands.map(({ name, description, options = [] }) => ({
      name,
      description,
      options: options.map((option) => [option.name, option.required, 'autocomplete' in option]),
    }))
    const expected = COMMANDS.map((command) => ({
      name: command.name,
      description: command.meaning,
      options:
        'argument' in command
          ? [[command.argument.name, command.argument.isRequired, command.argument.hasSuggestions]]
          : [],
    }))
    expect([known, known.map(({ name }) => name)]).toEqual([
      expected,
      // In this order.
      'ask new compact stop continue approve deny status queue model backend sessions resume project allow disallow usage help'.split(
        ' ',
      ),
    ])
  })

  it('answer the same to a slash and to a line, privately what changes nothing', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    discord.limits.postMessage = { limit: 100, perMs: 1_000 }
    const thread = await beginThread(scene)
    const { workingDir } = stage
    const usage = String.raw`1 turn, \d+ s of work; 100 tokens in, 20 out, cache 0 read and 0 written; \$0\.25`
    const expected: Record<string, { words: RegExp; isPrivate: boolean }> = {
      status: {
        words: new RegExp(
          `^agent: claude\nmodel: the agent's default\ndirectory: ${workingDir}\nsession: ${ANY_ID}, used \\d+ s ago\n` +
            `queue: 0 waiting\nqueue mode: followup: each message waits for its own turn\nusage today: ${usage}$`,
        ),
        isPrivate: true,
      },
      queue: { words: /^Nothing is running or waiting here\.\nMode followup: .*\.$/, isPrivate: false },
      sessions: {
        words: /^1\. claude, \d+ s ago: hello \([0-9a-f-]{12}, current\)\nUse \/resume <number> .*\.$/,
        isPrivate: true,
      },
      usage: {
        words: new RegExp(`^here today \\(UTC\\): ${usage}\nhere, last 30 days: ${usage}\n.*${usage}$`),
        isPrivate: true,
      },
      help: { words: new RegExp(`^${escaped(HELP_TEXT)}$`), isPrivate: true },
      model: { words: /^The model is the agent's default\.\n/, isPrivate: false },
      backend: { words: /^The agent is claude\.$/, isPrivate: false },
      project: { words: new RegExp(`^No project: claude works in ${workingDir}\\.$`), isPrivate: false },
      stop: { words: /^Nothing is running here\.$/, isPrivate: false },
    }
    for (const [name, { words, isPrivate }] of Object.entries(expected)) {
      const bySlash = await slash(scene, thread.id, name)
      const byLine = await say(scene, thread.id, `/${name}`)
      expect({ name, bySlash, byLine }).toEqual({
        name,
        bySlash: { answer: expect.stringMatching(words), isPrivate },
        byLine: expect.stringMatching(words),
      })
    }
  })

  it('work after a mention in a channel, and are answered there', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel } = await openScene(onTestFinished)
    const { id } = discord.say(discord.owner, channel.id, '/status', { mentions: [discord.bot] })
    const [answer] = await answered(discord, channel.id)
    expect([answer, discord.threadOf(id), stage.journal()]).toEqual([
      expect.stringContaining('session: none yet'),
      undefined,
      [],
    ])
  })

  it('list the existing ones if there is none of that name', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    const direct = discord.directChannel(discord.owner)
    expect(await say(scene, direct.id, '/restart now')).toBe(
      'Unknown command /restart. /help lists the commands; //restart sends /restart to the agent.',
    )
  })

  it('say so when they fail', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage } = scene
    const thread = await beginThread(scene)
    const { db, close } = storeOn(await openSqlite(databaseFile(stage.config())))
    await db.schema.alterTable('audit').renameTo('hidden').execute()
    const failed = await say(scene, thread.id, '/new')
    const failedSlash = await slash(scene, thread.id, 'new')
    await db.schema.alterTable('hidden').renameTo('audit').execute()
    await close()
    const words = 'That failed. The gateway log says why. Try again.'
    expect([failed, failedSlash.answer]).toEqual([words, words])
  })

  it('/new begins a fresh session', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage } = scene
    const thread = await beginThread(scene)
    const { answer } = await slash(scene, thread.id, 'new')
    await goOn(scene, thread.id, 'one')
    await say(scene, thread.id, '/new')
    await goOn(scene, thread.id, 'two')
    expect([answer, stage.journal().map(({ isResumed }) => isResumed)]).toEqual([
      'The next message starts a fresh session.',
      [false, false, false],
    ])
  })

  it('/model chooses the model of the next messages', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage } = scene
    const thread = await beginThread(scene)
    const { answer } = await slash(scene, thread.id, 'model', { name: 'opus' })
    await goOn(scene, thread.id, 'one')
    await say(scene, thread.id, '/model haiku')
    await goOn(scene, thread.id, 'two')
    await slash(scene, thread.id, 'model', { name: 'default' })
    await goOn(scene, thread.id, 'three')
    expect([answer, stage.journal().map(({ model }) => model)]).toEqual([
      'The next message uses the model opus.',
      ['none', 'opus', 'haiku', 'none'],
    ])
  })

  it('/backend chooses the agent, and knows which there are', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage } = scene
    const thread = await beginThread(scene)
    const unknown = await slash(scene, thread.id, 'backend', { name: 'eliza' })
    const chosen = await say(scene, thread.id, '/backend claude')
    await goOn(scene, thread.id, 'one')
    expect([unknown.answer, chosen, stage.journal().map(({ isResumed }) => isResumed)]).toEqual([
      'Unknown backend "eliza". Known: claude, codex, gemini, opencode, pi',
      'The agent is already claude.',
      [false, true],
    ])
  })

  it('/project chooses where the agent works', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ stage }) => ({
      projects: { site: { directory: stage.makeDirectory('site') } },
    }))
    const { stage } = scene
    const thread = await beginThread(scene)
    const site = `${stage.directory}/site`
    const unknown = await say(scene, thread.id, '/project sight')
    const { answer } = await slash(scene, thread.id, 'project', { id: 'site' })
    await goOn(scene, thread.id, 'one')
    expect([unknown, answer, stage.journal(site).map(({ prompt, isResumed }) => [prompt, isResumed])]).toEqual([
      'There is no project sight. Known: site.',
      `The project is site: the next message goes to claude in ${site}, in a fresh session.`,
      [['one', false]],
    ])
  })

  it('/resume continues the session of another thread', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage } = scene
    await beginThread(scene)
    const thread = await beginThread(scene)
    const { answer } = await slash(scene, thread.id, 'resume', { session: '2' })
    await goOn(scene, thread.id, 'go on')
    const [first, , third] = stage.journal()
    expect([answer, third?.isResumed, third?.sessionId]).toEqual([
      'The next message resumes this claude session: hello\nThe conversation that used it will start a fresh one.',
      true,
      first?.sessionId,
    ])
  })

  it('/queue shows running and waiting messages', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    await beginWork(scene, thread.id)
    const waiting = discord.say(discord.owner, thread.id, 'and then\nthis')
    await until(() => discord.reactionsOn(waiting.id).length > 0, 'that it was taken')
    const { answer } = await slash(scene, thread.id, 'queue')
    stage.release('it')
    expect(answer).toMatch(
      /^1\. owner, \d+ s ago, running: \[\{.*\n2\. owner, \d+ s ago: and then this\nYou can edit or delete your message .*\.\nMode followup: .*\.$/,
    )
  })
})

describe.concurrent('what is suggested while a command is typed', () => {
  it('is what fits the typed text', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ stage }) => ({
      projects: { site: { directory: stage.makeDirectory('site') }, tool: { directory: stage.makeDirectory('tool') } },
    }))
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    await slash(scene, thread.id, 'model', { name: 'opus-9' })
    await goOn(scene, thread.id, 'now with another model')
    const suggested = async (name: string, option: string, typed: string) => {
      const choices = await discord.autocomplete(discord.owner, thread.id, name, option, typed)
      return choices.map(({ name: label, value }) => [label, value])
    }
    const sessionId = stage.journal()[0]?.sessionId
    expect([
      await suggested('project', 'id', ''),
      await suggested('project', 'id', 'SI'),
      await suggested('model', 'name', '9'),
      (await suggested('backend', 'name', 'cla')).map(([, value]) => value),
      (await suggested('backend', 'name', '')).length,
      await suggested('resume', 'session', 'another'),
    ]).toEqual([
      [
        [`site: ${stage.directory}/site`, 'site'],
        [`tool: ${stage.directory}/tool`, 'tool'],
        ['default', 'default'],
      ],
      [[`site: ${stage.directory}/site`, 'site']],
      [['opus-9', 'opus-9']],
      ['claude'],
      6,
      [[expect.stringMatching(/^1\. claude, \d+ s ago: now with another model \(/), sessionId]],
    ])
  })
})

describe.concurrent('/stop', () => {
  it('ends the whole process tree, says what it stopped, and frees the conversation', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    await beginWork(
      scene,
      thread.id,
      { run: ['sleep', '1000'] },
      { tool: 'Bash', input: { command: 'npm test' }, hold: 'never' },
    )
    await until(() => stage.alive().some((command) => command.startsWith('sleep')), 'the child')
    // Tool events are recorded a moment later.
    await until(() => progressIn(discord, thread.id)?.content.includes('npm test'), 'the tool')
    const { answer } = await slash(scene, thread.id, 'stop')
    const left = stage.alive()
    const next = await goOn(scene, thread.id, 'and now?')
    expect([answer, left, next]).toEqual([
      expect.stringMatching(/^Stopped claude after \d+ s, during Bash: npm test\.$/),
      [],
      'You said: and now?',
    ])
  })

  it('works as a line, and says what still waits', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    await beginWork(scene, thread.id)
    const waiting = discord.say(discord.owner, thread.id, 'the next')
    await until(() => discord.reactionsOn(waiting.id).length > 0, 'that it was taken')
    const answer = await say(scene, thread.id, '/stop')
    await until(() => answersIn(discord, thread.id).includes('You said: the next'), 'the next answer')
    expect([answer, stage.journal().length]).toEqual([
      expect.stringMatching(/^Stopped claude after \d+ s\. 1 more message is waiting\.$/),
      3,
    ])
  })

  it('leaves other threads alone', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const [one, other] = [await beginThread(scene), await beginThread(scene)]
    await beginWork(scene, one.id)
    await beginWork(scene, other.id)
    await slash(scene, one.id, 'stop')
    stage.release('it')
    expect((await answered(discord, other.id, 2)).at(-1)).toBe('released')
  })
})

describe.concurrent('buttons', () => {
  it('Stop ends the turn, and the progress message says so', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    await beginWork(scene, thread.id, { text: 'I begin.' })
    await until(() => progressIn(discord, thread.id)?.content.includes('I begin.'), 'a progress message')
    const answer = await press(scene, thread.id, 'stop')
    const last = await until(() => answersIn(discord, thread.id)[1], 'the end of the progress message')
    const next = await goOn(scene, thread.id, 'and now?')
    expect([answer, last, stage.alive(), next, findButton(discord, thread.id, 'stop')]).toEqual([
      expect.stringMatching(/^Stopped claude after \d+ s\.$/),
      'I begin.\n-# ⏹ stopped',
      [],
      'You said: and now?',
      undefined,
    ])
  })

  it('Stop works after the gateway was stopped and started again', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, gateway } = scene
    const thread = await beginThread(scene)
    await beginWork(scene, thread.id, { text: 'I begin.' })
    await until(() => progressIn(discord, thread.id), 'a progress message')
    await stage.stop(gateway)
    await stage.start()
    await until(() => stage.journal().length === 3, 'the turn to go on')
    await until(
      () => progressIn(discord, thread.id)?.content === 'I begin.\n-# ✍️ writing',
      'the progress message to go on',
    )
    const answer = await press(scene, thread.id, 'stop')
    const next = await goOn(scene, thread.id, 'and now?')
    await until(() => progressIn(discord, thread.id) === undefined, 'the end of the progress message')
    const left = answersIn(discord, thread.id).filter((text) => text.includes('I begin.'))
    expect([answer, stage.alive(), next, left]).toEqual([
      expect.stringMatching(/^Stopped claude after \d+ s\.$/),
      [],
      'You said: and now?',
      ['I begin.\n-# ⏹ stopped'],
    ])
  })

  it('Stop removes a message that waits for a retry, and the progress message says so', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    discord.say(discord.owner, thread.id, steps({ text: 'I begin.' }, { hold: 'it' }, { fail: 'Out of luck' }))
    await until(() => progressIn(discord, thread.id), 'a progress message')
    stage.release('it')
    await until(() => stage.logsOf('turn.failed').length > 0, 'the failure')
    const answer = await press(scene, thread.id, 'stop')
    const next = await goOn(scene, thread.id, 'and now?')
    await until(() => progressIn(discord, thread.id) === undefined, 'the end of the progress message')
    expect([answer, next]).toEqual(['Dropped the waiting message.', 'You said: and now?'])
  })

  it('Retry retries a failed message, and then disappears', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const text = steps({ fail: 'Not logged in · Please run /login', unless: 'login' }, { text: 'here I am' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await answered(discord, id)
    stage.release('login')
    const answer = await press(scene, id, 'retry')
    const answers = await answered(discord, id, 2)
    expect([answer, answers, findButton(discord, id, 'retry')]).toEqual([
      'Queued again.',
      [expect.stringContaining('not logged in'), 'here I am'],
      undefined,
    ])
  })

  it('Retry works even if its button cannot be removed', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const text = steps({ fail: 'Not logged in · Please run /login', unless: 'login' }, { text: 'here I am' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await answered(discord, id)
    stage.release('login')
    discord.fail('PATCH /channels/:id/messages/:id', { kind: 'close' }, 10)
    const answer = await press(scene, id, 'retry')
    expect([answer, (await answered(discord, id, 2))[1]]).toEqual(['Queued again.', 'here I am'])
  })

  it('Retry works after the gateway was stopped and started again', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel, gateway } = scene
    const text = steps({ fail: 'Not logged in · Please run /login', unless: 'login' }, { text: 'here I am' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await answered(discord, id)
    await stage.stop(gateway)
    await stage.start()
    stage.release('login')
    const answer = await press(scene, id, 'retry')
    expect([answer, await answered(discord, id, 2)]).toEqual([
      'Queued again.',
      [expect.stringContaining('not logged in'), 'here I am'],
    ])
  })
})

describe.concurrent('/compact', () => {
  it('is a message to the agent, in the session of the place where it was given', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    const { answer } = await slash(scene, thread.id, 'compact', { focus: 'the names' })
    const answers = await answered(discord, thread.id, 3)
    expect([answer, answers.at(-1), stage.journal()[1]?.prompt, stage.journal()[1]?.isResumed]).toEqual([
      '👀 /compact the names',
      'You said: /compact the names',
      '/compact the names',
      true,
    ])
  })
})

describe.concurrent('Continue', () => {
  it('lets an agent that has paused go on, once, and then disappears', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel, ada, gateway } = scene
    const text = steps({ text: 'Half of it.' }, { pause: true })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await answered(discord, id)
    await stage.stop(gateway)
    await stage.start()
    const button = await until(() => findButton(discord, id, 'continue'), 'the button')
    const { message, customId } = button
    const stranger = await discord.press(ada, message, customId).answer()
    const presses = [1, 2].map(() => discord.press(discord.owner, message, customId).answer())
    const answers = await answered(discord, id, 2)
    await until(() => findButton(discord, id, 'continue') === undefined, 'the end of the button')
    expect([
      stranger,
      (await Promise.all(presses)).toSorted(),
      answers,
      stage.journal().map(({ isResumed }) => isResumed),
    ]).toEqual([
      expect.stringContaining(ada.id),
      ['Continuing.', 'It has already been continued.'],
      [
        'Half of it.\n\n-# Paused after 25 steps, the limit for one message. Use /continue to resume.',
        'You said: Continue where you stopped.',
      ],
      [false, true],
    ])
  })

  it('stays when it fails, says why, and can be pressed again', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, channel, gateway } = scene
    const { id } = discord.say(discord.owner, channel.id, steps({ text: 'Half of it.' }, { pause: true }), {
      mentions: [discord.bot],
    })
    await answered(discord, id)
    const { inbox } = gateway.store
    const latest = inbox.latest.bind(inbox)
    inbox.latest = async () => {
      throw new GatewayError('overloaded', 'The disk is too slow. Try it again.')
    }
    const failed = await press(scene, id, 'continue')
    inbox.latest = latest
    const again = await press(scene, id, 'continue')
    await until(() => findButton(discord, id, 'continue') === undefined, 'the end of the button')
    expect([failed, again]).toEqual(['The disk is too slow. Try it again.', 'Continuing.'])
  })

  it('stays while the gateway stops, and says so', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { drainTimeoutMs: 60_000 })
    const { stage, discord, channel, gateway } = scene
    const say = (text: string) => discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] }).id
    const paused = say(steps({ text: 'Half of it.' }, { pause: true }))
    await answered(discord, paused)
    say(steps({ hold: 'it' }))
    await until(() => stage.journal().length === 2, 'the turn')
    const stopped = stage.stop(gateway)
    const refusal = 'The gateway is stopping. Try again when it is back.'
    await until(async () => (await slash(scene, paused, 'status')).answer === refusal, 'the stop')
    const told = await press(scene, paused, 'continue')
    const stays = findButton(discord, paused, 'continue') !== undefined
    stage.release('it')
    await stopped
    await stage.start()
    expect([told, stays, await press(scene, paused, 'continue')]).toEqual([refusal, true, 'Continuing.'])
  })

  it('is refused, and disappears, once something else was asked', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const { id } = discord.say(discord.owner, channel.id, steps({ pause: true }), { mentions: [discord.bot] })
    await answered(discord, id)
    await goOn(scene, id, 'and now?')
    const answer = await press(scene, id, 'continue')
    await until(() => findButton(discord, id, 'continue') === undefined, 'the end of the button')
    expect([answer, stage.journal().length]).toEqual([
      'The conversation has moved on. Write what the agent should do next.',
      2,
    ])
  })
})

describe.concurrent('/ask', () => {
  it('opens a thread in a channel, in which the conversation continues', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const { answer, isPrivate } = await slash(scene, channel.id, 'ask', { text: 'what is this?' })
    const thread = await until(() => discord.threadsIn(channel.id)[0], 'a thread')
    await answered(discord, thread.id)
    await goOn(scene, thread.id, 'and that?')
    expect([answer, isPrivate, thread.name, answersIn(discord, thread.id), stage.journal()[1]?.isResumed]).toEqual([
      '👀 what is this?',
      false,
      'what is this?',
      ['You said: what is this?', 'You said: and that?'],
      true,
    ])
  })

  it('that is refused is explained once, in a thread named after it', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    // No text remains of it.
    const { answer } = await slash(scene, channel.id, 'ask', { text: '/ask' })
    const thread = await until(() => discord.threadsIn(channel.id)[0], 'a thread')
    const [why] = await answered(discord, thread.id)
    await goOn(scene, thread.id, 'something')
    expect([answer, thread.name, why, answersIn(discord, thread.id).length, stage.journal().length]).toEqual([
      'That was not accepted; the reply says why.',
      '/ask',
      expect.stringMatching(/^⚠️ /),
      2,
      1,
    ])
  })

  it('of nothing is refused without a thread', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, channel } = scene
    const { answer } = await slash(scene, channel.id, 'ask', { text: '  ' })
    expect([answer, discord.threadsIn(channel.id)]).toEqual(['Write what the agent should do.', []])
  })

  it('is answered in the channel, as a reply, if no thread can be opened', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ discord, channel }) => {
      discord.deny(channel.id, PermissionFlagsBits.CreatePublicThreads)
      return {}
    })
    const { discord, channel } = scene
    await slash(scene, channel.id, 'ask', { text: 'what is this?' })
    await answered(discord, channel.id, 2)
    const [asked, answer] = discord.messagesIn(channel.id)
    expect([asked?.content, answer?.content, answer?.message_reference?.message_id]).toEqual([
      '👀 what is this?',
      'You said: what is this?',
      asked?.id,
    ])
  })

  it('asks in place in a thread and in a direct message', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const thread = await beginThread(scene)
    const direct = discord.directChannel(discord.owner)
    await slash(scene, thread.id, 'ask', { text: 'in the thread' })
    await slash(scene, direct.id, 'ask', { text: 'directly' })
    await Promise.all([answered(discord, thread.id, 3), answered(discord, direct.id, 2)])
    expect([
      answersIn(discord, thread.id).slice(1),
      answersIn(discord, direct.id),
      stage.journal().find(({ prompt }) => prompt === 'in the thread')?.isResumed,
      discord.threadsIn(channel.id).length,
    ]).toEqual([['👀 in the thread', 'You said: in the thread'], ['👀 directly', 'You said: directly'], true, 1])
  })
})

describe.concurrent('a message that waits', () => {
  it('is asked as it was edited', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    await beginWork(scene, thread.id)
    const waiting = discord.say(discord.owner, thread.id, 'the old text')
    discord.edit(waiting, 'the new text')
    // In the same channel, so handled after the edit.
    const last = discord.say(discord.owner, thread.id, 'the last')
    await until(() => discord.reactionsOn(last.id).length > 0, 'the last to be taken')
    stage.release('it')
    await until(() => answersIn(discord, thread.id).includes('You said: the last'), 'the last answer')
    expect(answersIn(discord, thread.id).slice(2)).toEqual(['You said: the new text', 'You said: the last'])
  })

  it('is not asked when it was deleted', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    await beginWork(scene, thread.id)
    const waiting = discord.say(discord.owner, thread.id, 'never mind')
    await until(() => discord.reactionsOn(waiting.id).length > 0, 'it to be taken')
    discord.delete(waiting)
    const last = discord.say(discord.owner, thread.id, 'the last')
    await until(() => discord.reactionsOn(last.id).length > 0, 'the last to be taken')
    stage.release('it')
    await until(() => answersIn(discord, thread.id).includes('You said: the last'), 'the last answer')
    expect(answersIn(discord, thread.id).slice(1)).toEqual(['released', 'You said: the last'])
  })

  it('can no longer be changed once an agent has begun', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const text = steps({ hold: 'it' }, { text: 'as it was' })
    const message = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await until(() => stage.journal().length === 1 && discord.threadOf(message.id), 'a turn')
    discord.edit(message, `<@${discord.bot.id}> something else`)
    const last = discord.say(discord.owner, channel.id, '/queue', { mentions: [discord.bot] })
    await answered(discord, last.channel_id)
    discord.delete(message)
    stage.release('it')
    expect([await answered(discord, message.id), stage.journal().map(({ prompt }) => prompt)]).toEqual([
      ['as it was'],
      [text],
    ])
  })
})

function escaped(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
}
