/**
 * The cases for every agent in a whole gateway that is killed, restarted or stopped: no message is lost, none is
 * answered twice, no process is left, and the conversation continues in its session.
 */
import assert from 'node:assert/strict'
import { cannot, type Case } from './case.js'
import { lastUserText } from './checks.js'
import { callShell, refuse, say } from './model-replies.js'
import type { ModelReply, ModelRequest } from './protocols/types.js'
import { Sleeper } from './sleeper.js'
import type { Stage } from './stage.js'

const firstQuestion = 'First question?'
const firstAnswer = 'First answer.'
const secondQuestion = 'Second question?'
const secondAnswer = 'Second answer.'

const continuation = 'Continue where you stopped.'

const retold = '[You worked on this message until you had used up the steps of one turn'

const lostNote = 'The earlier session was lost; this answer starts a fresh one and remembers nothing from before.'

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
    // The command may run before the gateway hears of it, and so before it reports that the agent has started.
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
    assert.match(await gateway.command('/stop'), new RegExp(`^Stopped ${agent.name} after \\d+ s(?:, during .+)?\\.$`))
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

const pause: Case = {
  name: 'gateway-continue',
  title: '`/continue` after the turn limit',
  async run({ agent, expected, open }) {
    const rounds = 5
    const stage = await open((request, index) => {
      const asked = lastUserText(request)
      if (asked.endsWith(continuation) || asked.startsWith(retold)) return say(secondAnswer)
      return index < rounds ? callShell(agent, `echo ${index}`) : say(firstAnswer)
    })
    const { gateway, model } = stage
    await gateway.start({ BACKEND_MAX_TURNS: '2' })
    gateway.say(firstQuestion)
    await gateway.untilReplies(1)
    if (!expected.maxTurns) {
      assert.deepEqual(gateway.replies(), [{ text: firstAnswer, notes: [], isError: false }])
      await gateway.stop()
      return `${cannot}there is no limit`
    }
    const note = 'Paused after 2 steps, the limit for one message. Use /continue to resume.'
    assert.equal(gateway.attempts(), 1)
    assert.equal(await gateway.command('/continue'), 'Continuing.')
    await gateway.untilReplies(2)
    const { text, notes } = gateway.replies()[1] ?? {}
    if (expected.forgetsPausedTurns) {
      const asked = lastUserText(model.requests.at(-1))
      assert.deepEqual([text, notes, asked.split('\n\n').slice(1)], [secondAnswer, [lostNote], [firstQuestion]])
      await gateway.stop()
      return 'paused after one attempt, continued in a fresh session, which is told what it was to do'
    }
    assert.deepEqual(heard(model.requests.at(-1)), [firstQuestion, continuation])
    const [session = ''] = gateway.sessions()
    assert.deepEqual(
      { sessions: gateway.sessions(), replies: gateway.replies() },
      {
        sessions: [session, session],
        replies: [note, secondAnswer].map((text) => ({ text, notes: [], isError: false })),
      },
    )
    await gateway.stop()
    return 'paused after one attempt, continued in the same session'
  },
}

type Refusal = [name: string, reply: ModelReply, told: RegExp]

const unauthorized: Refusal = ['a refused key', refuse(401, 'The key is not valid.'), /is not logged in/]
const unknownModel = /does not know the model.*\/model default/
const tooLong = /too long for the model.*fresh session with \/new/
const unwanted = /refused this/

/** What a model provider says if no retry can help, and what the person is told. */
const refusals: Record<'anthropic' | 'openai' | 'google', Refusal[]> = {
  anthropic: [
    unauthorized,
    ['an unknown model', refuse(404, 'model: nope-model'), unknownModel],
    ['a long prompt', refuse(400, 'prompt is too long: 200001 tokens > 200000 maximum'), tooLong],
    ['a refused request', refuse(400, 'Output blocked by content filtering policy'), unwanted],
    ['a wrong request', refuse(400, 'messages.0: all messages must have non-empty content'), unwanted],
  ],
  openai: [
    unauthorized,
    [
      'an unknown model',
      refuse(404, 'The model `nope-model` does not exist or you do not have access to it.', 'model_not_found'),
      unknownModel,
    ],
    [
      'a long prompt',
      refuse(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        'context_length_exceeded',
      ),
      tooLong,
    ],
    [
      'a refused request',
      refuse(
        400,
        'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
        'invalid_prompt',
      ),
      unwanted,
    ],
    [
      'a wrong request',
      refuse(400, "Unsupported value: 'temperature' does not support 0.", 'unsupported_value'),
      unwanted,
    ],
  ],
  google: [
    unauthorized,
    [
      'an unknown model',
      refuse(404, 'models/nope-model is not found for API version v1beta, or is not supported for generateContent.'),
      unknownModel,
    ],
    [
      'a long prompt',
      refuse(400, 'The input token count (2000001) exceeds the maximum number of tokens allowed (1048576).'),
      tooLong,
    ],
    ['a wrong request', refuse(400, 'Please ensure that function call turn comes after a user turn.'), unwanted],
  ],
}

const permanent: Case = {
  name: 'gateway-permanent',
  title: 'What no retry can help',
  async run({ agent, open }) {
    const known = refusals[agent.provider]
    let [current] = known
    const stage = await open(() => current?.[1] ?? say(firstAnswer))
    const { gateway } = stage
    await gateway.start()
    for (const refusal of known) {
      current = refusal
      const [name, , told] = refusal
      const [attempts, replies] = [gateway.attempts(), gateway.replies().length]
      gateway.say(firstQuestion)
      await gateway.until(
        `${name} is told`,
        () => gateway.replies().length > replies || gateway.attempts() > attempts + 1,
      )
      assert.match(gateway.replies().at(-1)?.text ?? '', told, name)
      assert.equal(gateway.attempts(), attempts + 1, `attempts at ${name}`)
      await gateway.command('/new')
    }
    await gateway.stop()
    return `told after one attempt: ${known.map(([name]) => name).join(', ')}`
  },
}

export const gatewayCases: Case[] = [crashDuringTool, crashDuringAnswer, restart, stop, pause, permanent]

/** An agent that did not finish its answer is asked again, and told why. */
function assertAskedAgain(request: ModelRequest | undefined, question: string): void {
  const [note, again] = lastUserText(request).split('\n\n')
  assert.match(note ?? '', /^\[The gateway was restarted while you worked on this message/)
  assert.equal(again, question)
}

/** The questions and answers the model received, including the last question. */
function heard(request: ModelRequest | undefined): string[] {
  const known = [firstQuestion, firstAnswer, secondQuestion, secondAnswer, continuation]
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
