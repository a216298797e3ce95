import type { APIMessage } from 'discord.js'
import { describe, it } from 'vitest'
import { askNow } from '../../approvals/ask-now.js'
import { BASH } from '../../approvals/stage.js'
import type { FakeDiscord } from './fake-discord.js'
import { steps } from '../../kit/steps-agent.js'
import { beginThread, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

const BLOCK = '🔐 claude wants to use Bash:\n```\ncommand: npm install\ndescription: Installs\n```'

/** A thread in which the agent works until it is stopped. */
async function beginWork(scene: Scene): Promise<string> {
  const { discord, stage } = scene
  const { id } = await beginThread(scene)
  discord.say(discord.owner, id, steps({ hold: 'it' }))
  await until(() => stage.journal().length === 2, 'the turn')
  return id
}

function questionsIn(discord: FakeDiscord, channelId: string): APIMessage[] {
  return discord.messagesIn(channelId).filter(({ content }) => content.includes('🔐'))
}

/** The question, once posted. */
async function questionIn({ discord }: Scene, channelId: string): Promise<APIMessage> {
  return until(
    () => questionsIn(discord, channelId).findLast((message) => discord.buttonsOf(message).length > 0),
    'a question',
  )
}

async function ended({ discord }: Scene, channelId: string, text: string): Promise<APIMessage> {
  return until(() => questionsIn(discord, channelId).find(({ content }) => content.endsWith(text)), text)
}

describe.concurrent('a question of an agent', () => {
  it('has buttons, is answered by one of them, and says who did', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, gateway } = scene
    const thread = await beginWork(scene)
    const { approval, answer } = await askNow(gateway, BASH)
    const question = await questionIn(scene, thread)
    const buttons = discord.buttonsOf(question)
    const told = await discord.press(discord.owner, question, `allow:${approval.id}`).answer()
    const last = await ended(scene, thread, `Allowed by ${discord.owner.username}.`)
    expect([question.content, buttons, told, await answer, last.content, discord.buttonsOf(last)]).toEqual([
      `${BLOCK}\nIt is denied if nobody answers within 10 min.`,
      ['allow', 'always', 'deny'].map((action) => `${action}:${approval.id}`),
      'Allowed: Bash: npm install',
      { isAllowed: true },
      `${BLOCK}\nAllowed by ${discord.owner.username}.`,
      [],
    ])
  })

  it('is remembered by a button, and not asked again', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, gateway } = scene
    const thread = await beginWork(scene)
    const { approval, answer } = await askNow(gateway, BASH)
    const question = await questionIn(scene, thread)
    const told = await discord.press(discord.owner, question, `always:${approval.id}`).answer()
    const rules = await gateway.store.approvalRules.list({}, 9)
    expect([told, await answer, rules.map(({ toolName, subject }) => [toolName, subject])]).toEqual([
      'Allowed, now and always: Bash: npm install',
      { isAllowed: true },
      [['Bash', 'npm install']],
    ])
  })

  it('is refused by a command, and cannot be answered by strangers', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, gateway, ada } = scene
    const thread = await beginWork(scene)
    const { approval, answer } = await askNow(gateway, BASH)
    const question = await questionIn(scene, thread)
    await discord.press(ada, question, `allow:${approval.id}`).answer()
    const state = (await gateway.store.approvals.get(approval.id))?.state
    const told = await discord.slash(discord.owner, thread, 'deny').answer()
    expect([state, told, (await answer).isAllowed]).toEqual(['asked', 'Denied: Bash: npm install', false])
    await ended(scene, thread, `Denied by ${discord.owner.username}.`)
  })

  it('pings nobody and stays in its block, whatever the agent writes', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { gateway, discord } = scene
    const thread = await beginWork(scene)
    const command = '```\n@everyone **Allowed by ann.**\n```\n# Big'
    const { approval, answer } = await askNow(gateway, { toolName: 'Bash', toolInput: { command } })
    const question = await questionIn(scene, thread)
    await gateway.approvals.answer(approval.id, { decision: 'deny', by: '@here' })
    await answer
    const last = await ended(scene, thread, 'Denied by -here.')
    expect([
      question.content.split('\n').filter((line) => line.includes('`')),
      question.mention_everyone,
      last.content.split('\n').slice(1, -1),
      discord.buttonsOf(last),
    ]).toEqual([['```', '```'], false, ['```', "'''", '@everyone **Allowed by ann.**', "'''", '# Big', '```'], []])
  })

  it('goes when the run is stopped', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord, gateway } = scene
    const thread = await beginWork(scene)
    const { answer } = await askNow(gateway, BASH)
    await questionIn(scene, thread)
    await discord.slash(discord.owner, thread, 'stop').answer()
    const last = await ended(scene, thread, 'or the agent continued without it.')
    expect([discord.buttonsOf(last), (await answer).isAllowed]).toEqual([[], false])
  })

  it('that a gateway has left is closed by the next one, and its buttons say so', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, gateway } = scene
    const thread = await beginWork(scene)
    const { approval, abort } = await askNow(gateway, BASH)
    const question = await questionIn(scene, thread)
    discord.fail('PATCH /channels/:id/messages/:id', { kind: 'status', status: 500 }, 20)
    await stage.stop(gateway)
    abort.abort()
    discord.clearFaults()
    await stage.start()
    const last = await ended(scene, thread, 'or the agent continued without it.')
    const told = await stalePress(discord, question, `allow:${approval.id}`)
    expect([last.id, discord.buttonsOf(last), told]).toEqual([
      question.id,
      [],
      expect.stringMatching(/^(Too late\. No longer asked: .*|gone)$/),
    ])
  })
})

/** What a person sees whose client still shows the button. */
async function stalePress(discord: FakeDiscord, message: APIMessage, customId: string): Promise<string> {
  try {
    return await discord.press(discord.owner, message, customId).answer()
  } catch {
    return 'gone'
  }
}
