import { type APIMessage, MessageFlags } from 'discord.js'
import { describe, it } from 'vitest'
import { databaseFile } from '../../../src/gateway.js'
import { openSqlite } from '../../../src/store/sqlite.js'
import { storeOn } from '../../../src/store/store.js'
import type { FakeDiscord } from './fake-discord.js'
import { steps } from '../../kit/steps-agent.js'
import { answered, answersIn, beginThread, DiscordStage, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

const NEW_MESSAGE = 'POST /channels/:id/messages'
const EDIT = 'PATCH /channels/:id/messages/:id'
const REACTION = 'PUT /channels/:id/messages/:id/reactions/:emoji/@me'

function isSilent({ flags }: Pick<APIMessage, 'flags'>): boolean {
  return ((flags ?? 0) & MessageFlags.SuppressNotifications) !== 0
}

/** The bodies posted to a channel, in order. */
function postedIn(discord: FakeDiscord, channelId: string) {
  return discord
    .requestsTo(NEW_MESSAGE)
    .filter(({ path }) => path.includes(channelId))
    .map(({ body, files, at }) => ({ ...(body as Pick<APIMessage, 'content' | 'flags'>), files, at }))
}

/** The progress message, once it contains these words. */
async function progressWith(discord: FakeDiscord, channelId: string, words: string): Promise<APIMessage> {
  return until(() => {
    const progress = progressIn(discord, channelId)
    return progress?.content.includes(words) && progress
  }, `a progress message with ${words}`)
}

/** The agent's answer to the steps, as the messages that remain in the end. */
async function answerOf(scene: Scene, list: object[], count = 1): Promise<APIMessage[]> {
  const { discord, channel } = scene
  const { id } = discord.say(discord.owner, channel.id, steps(...list), { mentions: [discord.bot] })
  await answered(discord, id, count)
  await until(() => !progressIn(discord, id), 'the progress message is gone')
  return discord.messagesIn(id).filter(({ author }) => author.id === discord.bot.id)
}

function fenceCount({ content }: APIMessage): number {
  return content.split('\n').filter((line) => line.startsWith('```')).length
}

describe.concurrent('while an agent works', () => {
  it('sets 👀 under a message once it is stored', async ({ expect, onTestFinished }) => {
    const stage = await DiscordStage.open(onTestFinished)
    const { discord } = stage
    const channel = discord.addChannel(discord.addGuild())
    const reactionsWhenStored: number[] = []
    await stage.start(
      {},
      {
        onStep: (step) => {
          if (step === 'accepted') reactionsWhenStored.push(discord.requestsTo(REACTION).length)
        },
      },
    )
    const { id } = discord.say(discord.owner, channel.id, steps({ hold: 'it' }), { mentions: [discord.bot] })
    await until(() => discord.reactionsOn(id).length > 0, 'a reaction')
    expect([reactionsWhenStored, discord.reactionsOn(id)]).toEqual([[0], ['👀']])
    stage.release('it')
  })

  it('types, then shows one silent message that grows, with a button to stop', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const thread = await beginThread(scene)
    const text = steps(
      { text: 'First I look.' },
      { tool: 'Bash', input: { command: 'npm test' }, hold: 'tool' },
      { text: 'Then I know.' },
      { hold: 'end' },
    )
    const said = discord.say(discord.owner, thread.id, text)
    const progress = await progressWith(discord, thread.id, 'First I look.\n-# ')
    const typed = discord.typing.find(
      ({ channelId, at }) => channelId === thread.id && at >= Date.parse(said.timestamp),
    )
    stage.release('tool')
    const grown = await until(() => {
      const { content = '' } = discord.message(progress.id) ?? {}
      return content.includes('Then I know.') && content
    }, 'more text')
    stage.release('end')
    await answered(discord, thread.id, 2)
    await until(() => progressIn(discord, thread.id) === undefined, 'the end of the progress message')
    const [, shown] = postedIn(discord, thread.id)
    expect([
      isSilent(progress),
      discord.requestsTo(EDIT).length > 0,
      Number(shown?.at) >= Number(typed?.at),
      grown,
    ]).toEqual([true, true, true, 'First I look.\n\nThen I know.\n-# ✍️ writing'])
    expect([progress.content, progress.components?.length, answersIn(discord, thread.id)[1]]).toEqual([
      expect.stringMatching(/^First I look\.\n-# (🔧 Bash: npm test|✍️ writing)$/),
      1,
      'First I look.Then I know.',
    ])
  })

  it('says in a short line which tool is used, on what', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const text = steps({ tool: 'Bash', input: { command: 'rm *_old_*\nls' }, hold: 'it' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    const progress = await progressWith(discord, id, '🔧')
    stage.release('it')
    expect(progress.content).toBe(String.raw`-# 🔧 Bash: rm \*\_old\_\* ls`)
  })

  it('answers with the words of record, whatever was streamed, and notifies once', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const text = steps({ text: 'I try this and' }, { hold: 'it' }, { result: 'What I **really** found.' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await until(() => progressIn(discord, id), 'a progress message')
    stage.release('it')
    await answered(discord, id)
    await until(() => progressIn(discord, id) === undefined, 'the end of the progress message')
    const sounds = postedIn(discord, id).filter((message) => !isSilent(message))
    expect([answersIn(discord, id), sounds.map(({ content }) => content), stage.problems()]).toEqual([
      ['What I **really** found.'],
      ['What I **really** found.'],
      [],
    ])
  })

  it('shows no progress message for an answer that comes sooner', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, channel } = scene
    const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, id)
    const posted = postedIn(discord, id)
    const workedMs = (posted.at(-1)?.at ?? 0) - (discord.typing[0]?.at ?? 0)
    // A machine too busy for a quick answer proves nothing.
    expect(workedMs < 900 ? posted.map(({ content }) => content) : ['You said: hello']).toEqual(['You said: hello'])
  })

  it('edits at most once in a second, and never runs into a limit', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, channel } = scene
    const text = steps({ drip: 'word '.repeat(250), everyMs: 20 }, { result: 'done' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await answered(discord, id)
    const times = discord.requestsTo(EDIT).map(({ at }) => at)
    const pauses = times.slice(1).map((at, index) => at - (times[index] ?? 0))
    const statuses = new Set(discord.requests.map(({ status }) => status))
    expect([times.length > 1, pauses.filter((pause) => pause < 1_000), discord.overruns, statuses.has(429)]).toEqual([
      true,
      [],
      [],
      false,
    ])
  })

  it('has one edit in flight, and the answer does not wait for it', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    discord.fail(EDIT, { kind: 'hang' })
    const text = steps({ text: 'one ' }, { hold: 'one' }, { drip: 'more '.repeat(150), everyMs: 20 }, { text: 'end' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    await until(() => progressIn(discord, id), 'a progress message')
    stage.release('one')
    await answered(discord, id)
    await until(() => progressIn(discord, id) === undefined, 'the end of the progress message')
    expect([discord.requestsTo(EDIT).length, answersIn(discord, id)]).toEqual([1, [`one ${'more '.repeat(150)}end`]])
  })

  it('waits as long as Discord says before it edits again', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    discord.fail(EDIT, { kind: 'rate-limit', retryAfterMs: 1_500 })
    const text = steps({ text: 'one ' }, { hold: 'one' }, { text: 'two ' }, { hold: 'two' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    const progress = await until(() => progressIn(discord, id), 'a progress message')
    stage.release('one')
    await until(() => discord.message(progress.id)?.content.includes('two'), 'the edit')
    const [limited, again] = discord.requestsTo(EDIT)
    stage.release('two')
    expect([limited?.status, again?.status, Number(again?.at) - Number(limited?.at) >= 1_500]).toEqual([429, 200, true])
  })

  it('shows the end of a text that is longer than a message', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel } = scene
    const text = steps({ text: '```ts\nconst a = 1\n' }, { text: 'const b = 2\n', times: 300 }, { hold: 'it' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    const progress = await progressWith(discord, id, '…')
    stage.release('it')
    expect([progress.content.length <= 2_000, progress.content, fenceCount(progress)]).toEqual([
      true,
      expect.stringMatching(/^…\n```ts\n(const b = 2\n)+\n?```\n-# ✍️ writing$/),
      2,
    ])
  })
})

describe.concurrent('a turn that went to another gateway', () => {
  it('leaves the progress message as it is, with its button', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { leaseMs: 3_000 })
    const { stage, discord, channel } = scene
    const text = steps({ text: 'I begin.' }, { hold: 'never' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    const progress = await progressWith(discord, id, 'I begin.')
    const { db, close } = storeOn(await openSqlite(databaseFile(stage.config())))
    const due_at = Date.now() + 600_000
    await db.updateTable('jobs').set({ fence: 1_000, gateway_id: 'another', due_at }).execute()
    await close()
    await until(() => stage.logsOf('turn.lost').length > 0, 'the loss')
    // Long enough for a last edit.
    await beginThread(scene)
    const left = progressIn(discord, id)
    expect([left?.content, left && discord.buttonsOf(left)]).toEqual([progress.content, discord.buttonsOf(progress)])
  })
})

describe.concurrent('the answer', () => {
  it('comes in several messages if long, with complete code in each', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const code = 'const answer = await question(42)\n'
    const messages = await answerOf(
      scene,
      [{ text: 'Before.\n\n```ts\n' }, { text: code, times: 100 }, { text: '```\nAfter.' }],
      2,
    )
    const lines = messages.flatMap(({ content }) => content.split('\n')).filter((line) => !line.startsWith('```'))
    expect([
      messages.every(({ content }) => content.length <= 2_000),
      messages.map(fenceCount),
      lines.filter((line) => line !== ''),
      messages.map(({ flags }) => flags),
    ]).toEqual([true, [2, 2], ['Before.', ...Array.from({ length: 100 }, () => code.trim()), 'After.'], [0, 0]])
  })

  it('of many messages causes no warning', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    discord.limits.postMessage = { limit: 1_000, perMs: 1_000 }
    const warnings: string[] = []
    const onWarning = ({ name }: Error): void => {
      warnings.push(name)
    }
    process.on('warning', onWarning)
    onTestFinished(() => {
      process.off('warning', onWarning)
    })
    const messages = await answerOf(scene, [{ text: `${'many words '.repeat(170)}\n\n`, times: 15 }], 15)
    expect([messages.length, warnings]).toEqual([15, []])
  })

  it('has tables that can be read', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const [message] = await answerOf(scene, [{ text: '| name | size |\n|---|---:|\n| a | 1 |\n| longer | 200 |\n' }])
    expect(message?.content).toBe('```\nname   | size\n-------+-----\na      |    1\nlonger |  200\n```')
  })

  it('has very long code as a file', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    const code = 'const answer = 42\n'
    const messages = await answerOf(scene, [{ text: '```ts\n' }, { text: code, times: 300 }, { text: '```\nThere.' }])
    const [file] = messages[0]?.attachments ?? []
    const fetched = await (await fetch(file?.url ?? '')).text()
    expect([messages.map(({ content }) => content), file?.filename, fetched, discord.bot.id]).toEqual([
      ['📎 code-1.ts (300 lines)\nThere.'],
      'code-1.ts',
      code.repeat(300),
      messages[0]?.author.id,
    ])
  })

  it('is a file when it would be more than twenty messages', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const sentence = 'The quick brown fox jumps over the lazy dog. '
    const messages = await answerOf(scene, [{ text: sentence, times: 1_000 }])
    const [file] = messages[0]?.attachments ?? []
    const fetched = await (await fetch(file?.url ?? '')).text()
    expect([messages.length, messages[0]?.content, file?.filename, fetched]).toEqual([
      1,
      expect.stringMatching(/^The quick brown fox .*\n-# … The full answer is in answer\.md\.$/s),
      'answer.md',
      sentence.repeat(1_000),
    ])
  })

  it('calls nobody', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, guild, channel, ada } = scene
    const role = discord.addRole(guild, 'crew')
    const text = `@everyone @here <@${ada.id}> <@&${role.id}> look`
    // Escaped, since mentions are replaced by names before the agent gets them.
    const said = steps({ text }, { hold: 'it' }, { text: ' again' }).replaceAll('<', String.raw`\u003c`)
    const { id } = discord.say(discord.owner, channel.id, said, { mentions: [discord.bot] })
    await until(() => progressIn(discord, id), 'a progress message')
    stage.release('it')
    await answered(discord, id)
    discord.say(discord.owner, id, '/status')
    await answered(discord, id, 2)
    const [answer] = discord.messagesIn(id).filter(({ content }) => content.includes('again'))
    const bodies = discord.requests
      .map(({ body }) => body as { content?: string; allowed_mentions?: unknown } | undefined)
      .filter((body) => body?.content !== undefined)
    expect([
      answer?.content,
      answer?.mentions,
      answer?.mention_roles,
      answer?.mention_everyone,
      bodies.length >= 3,
      bodies.filter(({ allowed_mentions } = {}) => JSON.stringify(allowed_mentions) !== '{"parse":[]}'),
    ]).toEqual([`${text} again`, [], [], false, true, []])
  })

  it('says so when the agent said nothing', async ({ expect, onTestFinished }) => {
    const [message] = await answerOf(await openScene(onTestFinished), [{ result: '' }])
    expect(message?.content).toBe('-# The agent answered without text.')
  })
})
