/**
 * The cases for every agent in a whole gateway that is killed, restarted or stopped: no message is lost, none is
 * answered twice, no process is left, and the conversation continues in its session.
 */
import assert from 'node:assert/strict'
import type { Case } from './case.js'
import { lastUserText } from './checks.js'
import { callShell, say } from './model-replies.js'
import type { ModelRequest } from './protocols/types.js'
import { Sleeper } from './sleeper.js'
import type { Stage } from './stage.js'

const firstQuestion = 'First question?'
const firstAnswer = 'First answer.'
const secondQuestion = 'Second question?'
const secondAnswer = 'Second answer.'

const lostNote = 'The earlier session was lost; this answer begins a fresh one and knows nothing from before.'

/** How long a killed gateway may leave something behind. */
const orphansLiveMs = 10_000

const crashDuringTool: Case = {
  name: 'gateway-crash-tool',
  title: 'Gateway killed during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const stage = await open((_request, index) => (index === 0 ? callShell(agent, sleeper.command) : say(firstAnswer)))
    const { gateway, model } = stage
    await gateway.start()
    gateway.say(firstQuestion)
    // The command may run before the gateway has heard of it, and so before it reports that the agent has started.
    await gateway.until('the tool runs', async () => gateway.sessions().length === 1 && (await sleeper.isRunning()))
    await gateway.kill()
    await assertNothingLeft(stage, sleeper)

    await gateway.start()
    await gateway.untilReplies(1)
    const request = model.requests.at(-1)
    assertAskedAgain(request, firstQuestion)
    assert.deepEqual(heard(request), [firstQuestion, firstQuestion])
    await assertConversation(stage, 2, [firstAnswer])
    await gateway.stop()
    return 'no process left, answered once, same session'
  },
}

const crashDuringAnswer: Case = {
  name: 'gateway-crash-answer',
  title: 'Gateway killed during an answer',
  async run({ expected, open }) {
    let isSpeaking = false
    async function* speakInVain() {
      yield 'Half of '
      isSpeaking = true
      await new Promise(() => {})
    }
    const stage = await open((_request, index) =>
      index === 0 ? { type: 'text', deltas: speakInVain() } : say(firstAnswer),
    )
    const { gateway, model } = stage
    await gateway.start()
    gateway.say(firstQuestion)
    await gateway.until('it is being answered', () => {
      const isHeard = gateway.hasOutput() || !expected.streams
      return isSpeaking && isHeard && gateway.sessions().length === 1
    })
    await gateway.kill()
    await assertNothingLeft(stage)

    await gateway.start()
    await gateway.untilReplies(1)
    const request = model.requests.at(-1)
    if (expected.keepsCutSession) {
      assertAskedAgain(request, firstQuestion)
      assert.deepEqual(heard(request), [firstQuestion, firstQuestion])
      await assertConversation(stage, 2, [firstAnswer])
    } else {
      assert.equal(lastUserText(request), firstQuestion)
      assert.deepEqual(heard(request), [firstQuestion])
      assert.deepEqual(gateway.replies(), [{ text: firstAnswer, notes: [lostNote], isError: false }])
      assert.equal(new Set(gateway.sessions()).size, 2, 'a fresh session')
    }
    await gateway.stop()
    const session = expected.keepsCutSession ? 'same session' : 'fresh session since nothing is kept of it, as is told'
    return `no process left, answered once, ${session}`
  },
}

const restart: Case = {
  name: 'gateway-restart',
  title: 'Gateway restarted during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const replies = [say(firstAnswer), callShell(agent, sleeper.command)]
    const stage = await open((_request, index) => replies[index] ?? say(secondAnswer))
    const { gateway, model } = stage
    await gateway.start()
    gateway.say(firstQuestion)
    await gateway.untilReplies(1)
    gateway.say(secondQuestion)
    await gateway.until('the tool runs', () => sleeper.isRunning())
    await gateway.stop()
    assert.deepEqual([await stage.sandbox.processes(), await sleeper.isRunning()], [[], false], 'no process is left')

    await gateway.start()
    await gateway.untilReplies(2)
    const request = model.requests.at(-1)
    assertAskedAgain(request, secondQuestion)
    assert.deepEqual(heard(request), [firstQuestion, firstAnswer, secondQuestion, secondQuestion])
    await assertConversation(stage, 3, [firstAnswer, secondAnswer])
    await gateway.stop()
    return 'no process left, answered once, same session'
  },
}

const stop: Case = {
  name: 'gateway-stop',
  title: '`/stop` during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const stage = await open((_request, index) => (index === 0 ? callShell(agent, sleeper.command) : say(secondAnswer)))
    const { gateway, model } = stage
    await gateway.start()
    const idle = (await stage.sandbox.processes()).map(({ pid }) => pid)
    gateway.say(firstQuestion)
    await gateway.until('the tool runs', () => sleeper.isRunning())
    assert.match(
      await gateway.command('/stop'),
      new RegExp(`^Stopped ${agent.name} after \\d+ s(?:, in the middle of .+)?\\.$`),
    )
    const left = await stage.leftovers(idle)
    assert.deepEqual([left, await sleeper.isRunning()], [[], false], 'no process is left')

    gateway.say(secondQuestion)
    await gateway.untilReplies(1)
    const request = model.requests.at(-1)
    assert.equal(lastUserText(request), secondQuestion)
    assert.deepEqual(heard(request), [firstQuestion, secondQuestion])
    await assertConversation(stage, 2, [secondAnswer])
    await gateway.stop()
    return 'no process left, the next message answered in the same session'
  },
}

export const gatewayCases: Case[] = [crashDuringTool, crashDuringAnswer, restart, stop]

/** An agent that did not finish its answer is asked again, and told why. */
function assertAskedAgain(request: ModelRequest | undefined, question: string): void {
  const [note, again] = lastUserText(request).split('\n\n')
  assert.match(note ?? '', /^\[The gateway was restarted while you worked on this message/)
  assert.equal(again, question)
}

/** The questions and answers the model received, including the last question. */
function heard(request: ModelRequest | undefined): string[] {
  const known = [firstQuestion, firstAnswer, secondQuestion, secondAnswer]
  const texts = request?.messages.map(({ text }) => text.trim()) ?? []
  return texts.flatMap((text) => known.find((sentence) => text.endsWith(sentence)) ?? [])
}

/** Agents, their tools and servers, and their files. */
async function assertNothingLeft({ gateway, sandbox }: Stage, sleeper?: Sleeper): Promise<void> {
  const isAlive = async () => (await sandbox.processes()).length > 0 || (await sleeper?.isRunning())
  await gateway.until('no process is left', async () => !(await isAlive()), orphansLiveMs)
  const hasFiles = async () => (await sandbox.runFiles()).length > 0
  await gateway.until('no files of the runs are left', async () => !(await hasFiles()), orphansLiveMs)
}

/** Checks that this many turns were all in the recorded session, and that nothing is pending. */
async function assertConversation({ gateway }: Stage, turns: number, answers: string[]): Promise<void> {
  const [session = ''] = gateway.sessions()
  const status = await gateway.command('/status')
  assert.deepEqual(
    {
      sessions: gateway.sessions(),
      replies: gateway.replies(),
      status: status
        .split('\n')
        .filter((line) => /^(?:session|queue):/.test(line))
        .map((line) => line.replace(/, used \d+ \w+ ago$/, '')),
    },
    {
      sessions: Array.from({ length: turns }, () => session),
      replies: answers.map((text) => ({ text, notes: [], isError: false })),
      status: [`session: ${session}`, 'queue: 0 waiting'],
    },
  )
}
