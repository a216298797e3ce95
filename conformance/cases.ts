/**
 * The cases for every agent. If a case passes only because the agent is known to lack the ability, its result begins
 * with `cannot`.
 */
import assert from 'node:assert/strict'
import { access, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { neverForTheModel } from './agents.js'
import { cannot, type Case } from './case.js'
import {
  assertAnswer,
  assertFailure,
  assertSystem,
  continuationOf,
  describe,
  lastText,
  lastUserText,
  quote,
  textOf,
  times,
  toolEvents,
} from './checks.js'
import type { Expectation, Failure } from './expectations.js'
import { gatewayCases } from './gateway-cases.js'
import { callShell, refuse, say } from './model-replies.js'
import type { ModelReply } from './protocols/types.js'
import { Sleeper } from './sleeper.js'
import { untrusted } from './untrusted-case.js'

const prompt = 'Please say something.'
const answer = 'Something, said by the scripted model.'

const plain: Case = {
  name: 'plain',
  title: 'Plain answer',
  async run({ expected, open }) {
    const stage = await open(() => say(answer))
    const turn = await stage.ask({ prompt })
    assertAnswer(turn.result, answer, expected.usage)
    assert.equal(textOf(turn), answer, 'the streamed text')
    assert.equal(turn.result.exitCode, expected.hasExitCode ? 0 : undefined)
    assert.deepEqual(turn.events[0], { ...turn.events[0], type: 'started', sessionId: turn.result.sessionId })
    assert.equal(lastUserText(stage.model.requests[0]), prompt)
    return `answered ${quote(answer)}`
  },
}

const streaming: Case = {
  name: 'streaming',
  title: 'Streaming',
  async run({ expected, open }) {
    const deltas = ['One, ', 'two, ', 'three.']
    let markSeen = () => {}
    const seen = new Promise<void>((resolve) => (markSeen = resolve))
    const stage = await open(() => ({ type: 'text', deltas: writeSlowly() }))

    // The model continues only when its first words have arrived at the other end, so no clock is needed.
    async function* writeSlowly() {
      for (const delta of deltas) {
        yield delta
        if (expected.streams) await seen
      }
    }

    const turn = await stage.ask({ prompt }, { onEvent: (event) => event.type === 'output' && markSeen() })
    const chunks = turn.events.flatMap((event) => (event.type === 'output' ? [event.content] : []))
    const whole = deltas.join('')
    // Once the answer is complete, the rest may arrive in one piece.
    assert.deepEqual([chunks[0], chunks.join('')], [expected.streams ? deltas[0] : whole, whole])
    assertAnswer(turn.result, whole, expected.usage)
    if (!expected.streams) return `${cannot}the answer comes whole, at the end`
    return 'in pieces, the first while the model was writing'
  },
}

const toolCall: Case = {
  name: 'tool-call',
  title: 'Tool call',
  async run({ agent, expected, open }) {
    const command = 'echo tool-output-4711'
    const stage = await open((_request, index) => (index === 0 ? callShell(agent, command) : say(answer)))
    const turn = await stage.ask({ prompt })
    const { toolName, toolInput, content } = expected.shell
    assert.deepEqual(toolEvents(turn), [
      { type: 'tool_use', toolName, toolInput: toolInput(command) },
      { type: 'tool_result', toolName, content: content('tool-output-4711'), isError: false },
    ])
    assert.match(lastText(stage.model.requests[1], 'tool'), /tool-output-4711/)
    assertAnswer(turn.result, answer, times(2, expected.usage))
    return `${toolName} ran and ${quote(answer)} followed`
  },
}

const resume: Case = {
  name: 'resume',
  title: 'Resume',
  async run({ expected, open }) {
    const stage = await open((_request, index) => say(['First answer.', 'Second answer.'][index] ?? ''))
    const first = await stage.ask({ prompt: 'First question?' })
    assertAnswer(first.result, 'First answer.', expected.usage)
    const second = await stage.ask({ prompt: 'Second question?', ...continuationOf(first) })
    assertAnswer(second.result, 'Second answer.', expected.usage)
    assert.equal(second.result.sessionId, first.result.sessionId, 'the session keeps its id')
    const conversation = ['First question?', 'First answer.', 'Second question?']
    const seen = stage.model.requests[1]?.messages.filter(({ text }) => conversation.includes(text))
    assert.deepEqual(seen, [
      { role: 'user', text: 'First question?' },
      { role: 'assistant', text: 'First answer.' },
      { role: 'user', text: 'Second question?' },
    ])
    return 'same session, history seen by the model, usage per turn'
  },
}

const unknownSession: Case = {
  name: 'unknown-session',
  title: 'Unknown session',
  async run({ expected, open }) {
    const stage = await open(() => say(answer))
    const { result } = await stage.ask({ prompt, sessionId: expected.unknownSessionId })
    assertFailure(stage, result, expected.unknownSession)
    assert.equal(result.sessionId, undefined, 'a lost session is not offered again')
    assert.equal(stage.model.requests.length, 0, 'the model is not asked')
    return describe(expected.unknownSession)
  },
}

const modelErrors: Case[] = [
  modelError('401', 'HTTP 401', refuse(401, 'The key is not valid.'), ({ unauthorized }) => unauthorized),
  modelError('429', 'HTTP 429', refuse(429, 'Too many requests.'), ({ rateLimited }) => rateLimited),
  modelError('500', 'HTTP 500', refuse(500, 'The model is broken.'), ({ serverError }) => serverError),
]

function modelError(name: string, title: string, reply: ModelReply, select: (from: Expectation) => Failure): Case {
  return {
    name,
    title,
    async run({ expected, open }) {
      const stage = await open(() => reply)
      const { result } = await stage.ask({ prompt })
      assertFailure(stage, result, select(expected))
      return describe(select(expected))
    },
  }
}

const timeout: Case = {
  name: 'timeout',
  title: 'Model hangs',
  async run({ open }) {
    // Start-up can be slow: only a run that has called the model counts.
    for (let timeoutMs = 5_000; ; timeoutMs *= 2) {
      const stage = await open(() => ({ type: 'silence' }))
      const { result } = await stage.ask({ prompt, timeoutMs })
      const failure: Failure = {
        reason: 'timeout',
        message: `The agent did not finish within ${timeoutMs / 1000} s.`,
        report: 'Query timed out',
      }
      assertFailure(stage, result, failure)
      if (stage.model.requests.length > 0) return `${failure.reason}: ${failure.report}`
    }
  },
}

const cancel: Case = {
  name: 'cancel',
  title: 'Cancel during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const stage = await open((_request, index) => (index === 0 ? callShell(agent, sleeper.command) : say(answer)))
    const controller = new AbortController()
    const asked = stage.ask({ prompt }, { signal: controller.signal })
    await Promise.race([asked, untilRunning(sleeper, controller.signal)])
    controller.abort()
    const { result } = await asked
    const failure: Failure = { reason: 'cancelled', message: 'Cancelled', report: 'Cancelled' }
    assertFailure(stage, result, failure)
    assert.equal(await sleeper.isRunning(), false, 'the tool is gone')
    return `${describe(failure)}; no process left`
  },
}

const longPrompt: Case = {
  name: 'long-prompt',
  title: '200 KB prompt',
  async run({ open }) {
    const stage = await open(() => say(answer))
    const long = `Begin. ${'All work and no play. '.repeat(9_400)}End.`
    const { result } = await stage.ask({ prompt: long })
    assert.equal(result.finalOutput, answer)
    assert.ok(long.length > 200 * 1024)
    assert.ok(lastUserText(stage.model.requests[0]) === long, 'the prompt arrives whole')
    return `${long.length} characters arrived whole`
  },
}

const prompts: Case[] = [
  promptCase('prompt-option', '--help'),
  promptCase('prompt-command', '/help'),
  promptCase('prompt-own-command', '/memory show'),
  promptCase('prompt-file', '@/etc/hostname'),
  promptCase('prompt-workspace-file', 'Look at @note.txt now'),
  promptCase('prompt-emoji', '👩‍👩‍👧‍👦 grüßt 日本 🚀'),
  promptCase('prompt-nul', 'before\u0000after'),
]

function promptCase(name: string, text: string): Case {
  return {
    name,
    title: `Prompt \`${text.replace('\u0000', '\\0')}\``,
    async run({ expected, open }) {
      const stage = await open(() => say(answer))
      await writeFile(join(stage.sandbox.workspace, 'note.txt'), neverForTheModel)
      const hostname = (await readFile('/etc/hostname', 'utf8')).trim()
      const { result } = await stage.ask({ prompt: text })
      assert.equal(result.finalOutput, answer)
      const arrived = expected.promptChanges[text] ?? text
      const [request] = stage.model.requests
      assert.equal(lastUserText(request), arrived)
      assert.equal(request?.body.includes(neverForTheModel), false, 'no file is added and no command run')
      const words = request?.messages.flatMap((message) => message.text.split(/\s+/))
      assert.equal(words?.includes(hostname), false, '/etc/hostname is not added')
      assert.equal(request?.messages.filter((message) => message.text.includes(arrived)).length, 1, 'it comes once')
      return `arrived as ${quote(arrived)}`
    },
  }
}

// With placeholders of the agents' own configuration languages.
const systemPromptOne =
  'Answer like "lighthouse keeper" 7431: ${AvailableTools} {env:HOME} {file:/etc/hostname}\nSecond line.'
const systemPromptTwo = "Answer like a beekeeper's apprentice 9912."

const systemPrompt: Case = {
  name: 'system-prompt',
  title: 'System prompt',
  async run({ agent, open }) {
    const stage = await open(() => say(answer))
    const first = await stage.ask({ prompt, systemPrompt: systemPromptOne })
    await stage.ask({ prompt: 'And now?', systemPrompt: systemPromptOne, ...continuationOf(first) })
    assertSystem(stage.model.requests[0], { [systemPromptOne]: 1, [agent.ownPrompt]: 1 })
    assertSystem(stage.model.requests[1], { [systemPromptOne]: 1, [agent.ownPrompt]: 1 })
    assert.deepEqual(stage.model.requests.map(lastUserText), [prompt, 'And now?'], 'the prompts are not polluted')
    return "seen by the model on both turns, beside the agent's own"
  },
}

const changedSystemPrompt: Case = {
  name: 'system-prompt-changed',
  title: 'Another system prompt on resume',
  async run({ agent, expected, open }) {
    const stage = await open(() => say(answer))
    const first = await stage.ask({ prompt, systemPrompt: systemPromptOne })
    const second = await stage.ask({ prompt: 'And now?', systemPrompt: systemPromptTwo, ...continuationOf(first) })
    assert.equal(second.result.sessionId, first.result.sessionId)
    const former = expected.remembersSystemPrompt ? 1 : 0
    assertSystem(stage.model.requests[1], { [systemPromptOne]: former, [systemPromptTwo]: 1, [agent.ownPrompt]: 1 })
    assert.equal(lastUserText(stage.model.requests[1]), 'And now?', 'the prompt is not polluted')
    return `the new one seen by the model${former ? ', after the former one' : ''}, beside the agent's own`
  },
}

const unlistedTool: Case = {
  name: 'unlisted-tool',
  title: 'Unlisted tool',
  async run({ agent, expected, open }) {
    const stage = await open((_request, index) => (index === 0 ? callShell(agent, 'touch made-by-tool') : say(answer)))
    const { result } = await stage.ask({ prompt, allowedTools: [agent.harmlessTool] })
    assert.equal(result.finalOutput, answer)
    assert.equal(await exists(join(stage.sandbox.workspace, 'made-by-tool')), expected.runsUnlistedTools)
    const isOffered = stage.model.requests[0]?.body.includes(`"name":"${agent.harmlessTool}"`)
    assert.equal(isOffered, true, 'the listed tool is offered to the model')
    assert.equal(stage.ignoredOptions.includes('allowedTools'), expected.runsUnlistedTools, 'the operator is warned')
    return expected.runsUnlistedTools ? `${cannot}every tool runs; the operator is warned` : 'did not run'
  },
}

const maxTurns: Case = {
  name: 'max-turns',
  title: 'Turn limit',
  async run({ agent, expected, open }) {
    const stage = await open((_request, index) => (index < 5 ? callShell(agent, `echo ${index}`) : say(answer)))
    const { result } = await stage.ask({ prompt, maxTurns: 2 })
    if (!expected.maxTurns) {
      assertAnswer(result, answer, times(6, expected.usage))
      assert.deepEqual(stage.ignoredOptions, ['maxTurns'], 'the operator is warned')
      return `${cannot}the limit is ignored; the operator is warned`
    }
    const { requests, ...failure } = expected.maxTurns
    assertFailure(stage, result, failure)
    const count = stage.model.requests.length
    assert.ok(count >= 2 && count <= requests, `${count} requests to the model`)
    return `${describe(failure)}; at most ${requests} requests`
  },
}

const compact: Case = {
  name: 'compact',
  title: '`/compact`',
  async run({ expected, open }) {
    const summary = 'A summary by the scripted model.'
    let reply = answer
    const stage = await open(() => say(reply))
    // Pi does not compact a short session, nor the end of a long one.
    const filler = 'All work and no play. '.repeat(9_400)
    const first = await stage.ask({ prompt: `First question? ${filler}` })
    const second = await stage.ask({ prompt: `Second question? ${filler}`, ...continuationOf(first) })
    reply = summary
    const compacted = await stage.ask({ prompt: '/compact', isCommand: true, ...continuationOf(second) })
    reply = answer
    if (!expected.compacts) {
      const { failure } = compacted.result
      assert.deepEqual([failure?.reason, stage.model.requests.length], ['refused', 2])
      assert.match(failure?.message ?? '', / does not support \/compact/)
      return `${cannot}refused, with a word to that effect`
    }
    assertAnswer(compacted.result, '', times(stage.model.requests.length - 2, expected.usage))
    const third = await stage.ask({ prompt: 'Third question?', ...continuationOf(compacted) })
    assertAnswer(third.result, answer, expected.usage)
    const { body = '' } = stage.model.requests.at(-1) ?? {}
    assert.deepEqual([body.includes(summary), body.includes('First question?')], [true, false])
    return 'the next turn has a summary in place of what was said first'
  },
}

export const cases: Case[] = [
  ...[plain, streaming, toolCall, resume, unknownSession, ...modelErrors, timeout, cancel, longPrompt, ...prompts],
  ...[systemPrompt, changedSystemPrompt, unlistedTool, maxTurns, compact, untrusted],
  ...gatewayCases,
]

async function untilRunning(sleeper: Sleeper, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await sleeper.isRunning())) await sleep(50)
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
