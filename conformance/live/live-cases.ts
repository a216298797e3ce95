/** Cases for warm agents: the process outlives turns, can be lost, and can be evicted. */
import assert from 'node:assert/strict'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { asks } from '../asking-case.js'
import type { Case, Scene } from '../case.js'
import { assertFailure, continuationOf, lastUserText, textOf } from '../checks.js'
import type { Expectation } from '../expectations.js'
import { callShell, say } from '../model-replies.js'
import type { ModelReply, ModelRequest } from '../protocols/types.js'
import type { Script } from '../scripted-model.js'
import { Sleeper } from '../sleeper.js'
import type { Stage, Turn } from '../stage.js'
import { madeUpKind } from '../wire.js'
import { isLiveAgent, openLive, programPath } from './live-place.js'

interface LiveStage {
  stage: Stage
  /** Of the warm processes, in order of their start. */
  pids: number[]
}

async function openStaying(
  open: Scene['open'],
  script: Script,
  options: Parameters<typeof openLive>[0] = {},
): Promise<LiveStage> {
  const pids: number[] = []
  const stage = await open(script, openLive({ ...options, onStarted: (pid) => pids.push(pid) }))
  return { stage, pids }
}

const turns: Case = {
  name: 'live-turns',
  title: 'Three turns',
  async run({ open }) {
    const { stage, pids } = await openStaying(open, echo)
    const first = await stage.ask({ prompt: 'One?' })
    const second = await stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    const third = await stage.ask({ prompt: 'Three?', ...continuationOf(second) })
    assert.deepEqual([first, second, third].map(outcome), ['To One?', 'To Two?', 'To Three?'])
    assert.deepEqual(heard(stage.model.requests.at(-1)), ['One?', 'To One?', 'Two?', 'To Two?', 'Three?'])
    assert.equal(pids.length, 1, 'one process for all')
    return 'one process for all'
  },
}

const killedAtRest: Case = {
  name: 'live-killed-at-rest',
  title: 'Process killed between turns',
  async run({ expected, open }) {
    const { stage, pids } = await openStaying(open, echo, { mayFallBack: expected.declinesYoungSessions === true })
    const first = await stage.ask({ prompt: 'One?' })
    await untilOnDisk(stage, 'To One?')
    const pid = lastOf(pids)
    process.kill(pid, 'SIGKILL')
    await stage.gateway.until('it is gone', () => !isAlive(pid))
    const second = await stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    assertGoesOn(stage, first, second)
    assert.equal(pids.length, 2, 'another process')
    return goesOn(expected)
  },
}

const killedInAnswer: Case = {
  name: 'live-killed-in-answer',
  title: 'Process killed during an answer',
  async run({ open }) {
    // On a retry, a note precedes the prompt.
    const script: Script = (request) =>
      ['Two?', 'Other?'].includes(lastUserText(request)) ? { type: 'text', deltas: speakInVain() } : echo(request)
    const { stage, pids } = await openStaying(open, script, { mayFallBack: true })
    const heardOf = new Set<string>()
    const ask = (prompt: string, before?: Turn) =>
      stage.ask(
        { prompt, ...(before && continuationOf(before)) },
        { onEvent: (event) => event.type === 'output' && heardOf.add(prompt) },
      )
    const first = await ask('One?')
    const asked = [ask('Two?', first), ask('Other?')]
    await stage.gateway.until('the beginnings are heard', () => heardOf.has('Two?') && heardOf.has('Other?'))
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    const [second, other] = await Promise.all(asked)
    assert.ok(second && other)
    assert.deepEqual([second, other].map(outcome), ['To Two?', 'To Other?'])
    assert.deepEqual([second, other].map(textOf), ['Half of \n\nTo Two?', 'Half of \n\nTo Other?'])
    assert.equal(second.result.sessionId, first.result.sessionId)
    assert.equal(outcome(await ask('Three?', second)), 'To Three?')
    const known = ['One?', 'To One?', 'Two?', 'Two?', 'To Two?', 'Three?']
    assert.deepEqual(heard(stage.model.requests.at(-1)), known)
    return 'every turn goes on in a process of its own and has one answer; the history is whole'
  },
}

const killedInTool: Case = {
  name: 'live-killed-in-tool',
  title: 'Process of a gateway killed during a tool',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    const stage = await open((request, index) => (index === 1 ? callShell(agent, sleeper.command) : echo(request)))
    const { gateway } = stage
    await gateway.start()
    gateway.say('One?')
    await gateway.untilReplies(1)
    gateway.say('Two?')
    await gateway.until('the tool runs', () => sleeper.isRunning())
    process.kill(await rootOf(await agentsOf(stage)), 'SIGKILL')
    await gateway.untilReplies(2)
    assert.equal(await sleeper.isRunning(), false, 'the tool is gone')
    gateway.say('Three?')
    await gateway.untilReplies(3)
    assert.deepEqual(
      gateway.replies(),
      ['To One?', 'To Two?', 'To Three?'].map((text) => ({ text, notes: [], isError: false })),
    )
    assert.equal(new Set(gateway.sessions()).size, 1, 'the same session')
    await gateway.stop()
    return 'the tool is gone; each message answered once, in the same session'
  },
}

const stopped: Case = {
  name: 'live-stop',
  title: '`/stop` during a tool, process kept',
  async run(scene) {
    // An agent that does not obey within a second is ended; a busy machine gets another chance.
    for (let chances = 3; !(await staysWhenStopped(scene)); chances -= 1) assert.ok(chances > 1, 'the process stays')
    // A session that was interrupted during a tool call is loaded again.
    const next = scene.expected.declinesYoungSessions ? goesOn(scene.expected) : 'it takes the next message'
    return `interrupted within a second, and the process stays; ${next}`
  },
}

async function staysWhenStopped({ agent, open }: Scene): Promise<boolean> {
  const sleeper = new Sleeper()
  const stage = await open((request, index) => (index === 0 ? callShell(agent, sleeper.command) : echo(request)))
  const { gateway } = stage
  await gateway.start()
  gateway.say('One?')
  await gateway.until('the tool runs', () => sleeper.isRunning())
  const before = await rootOf(await agentsOf(stage))
  const stoppedAt = Date.now()
  assert.match(await gateway.command('/stop'), /^Stopped /)
  const tookMs = Date.now() - stoppedAt
  assert.equal(await sleeper.isRunning(), false, 'the tool is gone')
  gateway.say('Two?')
  await gateway.untilReplies(1)
  assert.deepEqual(gateway.replies(), [{ text: 'To Two?', notes: [], isError: false }])
  const isKept = (await agentsOf(stage)).includes(before)
  assert.ok(isKept || tookMs >= 1_000, 'the process stays')
  await gateway.stop()
  return isKept
}

const stoppedInAnswer: Case = {
  name: 'live-cancel-answer',
  title: 'Cancel during an answer, process kept',
  async run({ open }) {
    const script: Script = (request, index) => (index === 0 ? { type: 'text', deltas: speakInVain() } : echo(request))
    const { stage, pids } = await openStaying(open, script)
    const controller = new AbortController()
    const first = await stage.ask(
      { prompt: 'One?' },
      { signal: controller.signal, onEvent: (event) => event.type === 'output' && controller.abort() },
    )
    assertFailure(stage, first.result, { reason: 'cancelled', message: 'Cancelled', report: 'Cancelled' })
    const second = await stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    assert.equal(outcome(second), 'To Two?')
    assert.equal(pids.length, 1, 'the same process')
    return 'interrupted within a second, and the process stays; it takes the next message'
  },
}

const silent: Case = {
  name: 'live-silent',
  title: 'Process that does not answer',
  async run({ expected, open }) {
    const freshMs = 500
    const mayFallBack = expected.declinesYoungSessions === true
    const { stage, pids } = await openStaying(open, echo, { freshMs, mayFallBack })
    const first = await stage.ask({ prompt: 'One?' })
    await sleep(2 * freshMs)
    const second = await stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    assert.deepEqual([outcome(second), pids.length], ['To Two?', 1], 'asked whether it is there, it answers')
    await untilOnDisk(stage, 'To Two?')
    for (const pid of await agentsOf(stage)) process.kill(pid, 'SIGSTOP')
    await sleep(2 * freshMs)
    const third = await stage.ask({ prompt: 'Three?', ...continuationOf(second) })
    assert.deepEqual([outcome(third), pids.length], ['To Three?', 2], 'another process')
    assert.deepEqual(heard(stage.model.requests.at(-1)), ['One?', 'To One?', 'Two?', 'To Two?', 'Three?'])
    return `asked whether it is there; ${goesOn(expected)}`
  },
}

const memory: Case = {
  name: 'live-memory',
  title: 'Memory cap reached',
  async run({ expected, open }) {
    const measureMs = 100
    async function* speakSlowly(text: string) {
      yield ''
      await sleep(5 * measureMs)
      yield text
    }
    const script = (request: ModelRequest): ModelReply => ({ type: 'text', deltas: speakSlowly(reply(request)) })
    const { stage, pids } = await openStaying(open, script, {
      limits: { liveMaxMemoryMb: 1 },
      measureMs,
      mayFallBack: expected.declinesYoungSessions === true,
    })
    const first = await stage.ask({ prompt: 'One?' })
    assert.deepEqual([outcome(first), pids.length], ['To One?', 1], 'no turn is cut off for it')
    await stage.gateway.until('it has made room', async () => (await stage.sandbox.processes()).length === 0)
    const second = await stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    assertGoesOn(stage, first, second)
    assert.equal(pids.length, 2, 'another process')
    return `ended as soon as its turn is over; ${goesOn(expected)}`
  },
}

const many: Case = {
  name: 'live-many',
  title: '50 conversations on a cap of 4',
  deadlineMs: 400_000,
  async run({ expected, open }) {
    const conversations = 50
    const maxProcesses = 4
    const { stage, pids } = await openStaying(open, echo, { limits: { liveMaxProcesses: maxProcesses }, isBare: true })
    const asked: Turn[] = []
    const waiting = Array.from({ length: conversations }, (_, index) => index)
    const ask = async () => {
      for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
        const turn = await stage.ask({ prompt: `Question ${index}?` })
        assert.equal(outcome(turn), `To Question ${index}?`)
        asked[index] = turn
        const alive = pids.filter(isAlive).length
        assert.ok(alive <= maxProcesses, `${alive} processes`)
      }
    }
    await Promise.all(Array.from({ length: maxProcesses }, ask))
    assert.equal(new Set(asked.map(({ result }) => result.sessionId)).size, conversations, 'a session for each')

    const last = conversations - 1
    const kept = pids.length
    const again = await stage.ask({ prompt: 'And now?', ...continuationOf(turnOf(asked, last)) })
    assert.deepEqual([outcome(again), pids.length], ['To And now?', kept], 'the last one still has its process')
    if (expected.isShared) return 'one process for all'
    await stage.ask({ prompt: 'And now?', ...continuationOf(turnOf(asked, 0)) })
    assert.deepEqual(heard(stage.model.requests.at(-1)), ['Question 0?', 'To Question 0?', 'And now?'])
    assert.equal(pids.length, kept + 1, 'the first one gets another process')
    return 'never more than 4 processes; the one used longest ago makes place, and its session goes on'
  },
}

const replaced: Case = {
  name: 'live-replaced',
  title: 'Another version on disk',
  async run({ expected, open }) {
    const program = (cliPath: string) => `#!/bin/sh\nexec '${cliPath}' "$@"\n`
    let replacement = ''
    const { stage, pids } = await openStaying(open, echo, {
      program(cliPath) {
        replacement = `${program(cliPath)}# Another one.\n`
        return program(cliPath)
      },
    })
    const first = await stage.ask({ prompt: 'One?' })
    const path = programPath(stage.sandbox)
    await writeFile(`${path}-new`, replacement, { mode: 0o755 })
    await rename(`${path}-new`, path)
    if (expected.declinesYoungSessions) await nextMinute()
    const second = await stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    assertGoesOn(stage, first, second)
    const third = await stage.ask({ prompt: 'Three?', ...continuationOf(second) })
    assert.equal(outcome(third), 'To Three?')
    assert.equal(pids.length, 2, 'another process')
    return 'the next turn has a process of the new one'
  },
}

const garbage: Case = {
  name: 'live-garbage',
  title: 'Garbage on stdout',
  async run({ open }) {
    const lines = ['Warning: {"half": [', 'null', '"text"', JSON.stringify({ type: madeUpKind }), '}{', '\u001B[31mred']
    const program = (cliPath: string) => `#!/usr/bin/env node
const agent = require('node:child_process').spawn(${JSON.stringify(cliPath)}, process.argv.slice(2), { stdio: ['inherit', 'pipe', 'inherit'] })
const garbage = () => process.stdout.write(${JSON.stringify(`${lines.join('\n')}\n`)})
garbage()
require('node:readline').createInterface(agent.stdout).on('line', (line) => (process.stdout.write(line + '\\n'), garbage()))
agent.on('exit', (code) => process.exit(code ?? 1))
`
    const { stage, pids } = await openStaying(open, echo, { program })
    const first = await stage.ask({ prompt: 'One?' })
    const second = await stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    assert.deepEqual([first, second].map(textOf), ['To One?', 'To Two?'])
    assertGoesOn(stage, first, second)
    assert.equal(pids.length, 1, 'one process for both turns')
    const notices = first.events.flatMap((event) => (event.type === 'notice' ? [event.content] : []))
    assert.ok(
      notices.some((notice) => notice.includes('half')),
      'it is reported as a notice',
    )
    return 'told as notices; both turns answered by one process'
  },
}

const atOnce: Case = {
  name: 'live-at-once',
  title: 'Messages at once',
  async run({ expected, open }) {
    let speak = () => {}
    const allAsked = new Promise<void>((resolve) => (speak = resolve))
    async function* speakLate(text: string) {
      await allAsked
      yield text
    }
    const script: Script = (request, index) =>
      index === 0 ? echo(request) : { type: 'text', deltas: speakLate(reply(request)) }
    const { stage, pids } = await openStaying(open, script)
    const { requests } = stage.model
    const first = await stage.ask({ prompt: 'One?' })
    const second = stage.ask({ prompt: 'Two?', ...continuationOf(first) })
    await stage.gateway.until('the model is asked', () => requests.length === 2)
    const third = stage.ask({ prompt: 'Three?', ...continuationOf(first) })
    const other = stage.ask({ prompt: 'Other?' })
    await stage.gateway.until('the other conversation does not wait', () => requests.length === 3)
    assert.equal(lastUserText(requests[2]), 'Other?')
    speak()
    const answers = (await Promise.all([second, third, other])).map(outcome)
    assert.deepEqual(answers, ['To Two?', 'To Three?', 'To Other?'])
    assert.deepEqual(heard(requests[3]), ['One?', 'To One?', 'Two?', 'To Two?', 'Three?'])
    assert.equal(pids.length, expected.isShared ? 1 : 2)
    return `in one session one after the other; two sessions at the same time, in ${expected.isShared ? 'one process' : 'two processes'}`
  },
}

export const liveCases: Case[] = [
  ...[turns, stopped, stoppedInAnswer, killedAtRest, killedInAnswer, killedInTool],
  ...[atOnce, silent, memory, many, replaced, garbage, asks],
]

/** The prompt, including what precedes it after an interruption. */
function promptOf(request: ModelRequest): string {
  return lastUserText(request).split('\n').at(-1) ?? ''
}

function reply(request: ModelRequest): string {
  return `To ${promptOf(request)}`
}

function echo(request: ModelRequest): ModelReply {
  return say(reply(request))
}

async function* speakInVain() {
  yield 'Half of '
  await new Promise(() => {})
}

/** The questions and answers the model received. */
function heard(request: ModelRequest | undefined): string[] {
  const texts = request?.messages.map(({ text }) => text.trim().split('\n').at(-1) ?? '') ?? []
  return texts.filter((text) => text.endsWith('?'))
}

function outcome({ result }: Turn): string | undefined {
  return result.failure?.message ?? result.finalOutput
}

/** Checks that the second turn knew the first. */
function assertGoesOn({ model }: Stage, first: Turn, second: Turn): void {
  assert.equal(outcome(second), 'To Two?')
  assert.equal(second.result.sessionId, first.result.sessionId)
  assert.deepEqual(heard(model.requests.at(-1)), ['One?', 'To One?', 'Two?'])
}

function goesOn({ declinesYoungSessions }: Expectation): string {
  return declinesYoungSessions
    ? 'the session goes on in a process of its own, since it began in this minute'
    : 'another process goes on with the session'
}

async function agentsOf({ agent, sandbox }: Stage): Promise<number[]> {
  const found = await sandbox.processes()
  return found.filter((process) => isLiveAgent(agent.name, process)).map(({ pid }) => pid)
}

/** The process that started the others. One of those may be a fork that is about to run something else. */
async function rootOf(pids: number[]): Promise<number> {
  for (const pid of pids) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    const [, parent] = /^PPid:\s*(\d+)/m.exec(status) ?? []
    if (parent !== undefined && !pids.includes(Number(parent))) return pid
  }
  throw new Error('no agent is running')
}

/** Claude reports its answer before it stores it. */
async function untilOnDisk(stage: Stage, answer: string): Promise<void> {
  await stage.gateway.until('the answer is on disk', () => isOnDisk(stage, answer))
}

/** Whether a file in the home directory has this text. */
async function isOnDisk({ sandbox }: Stage, text: string): Promise<boolean> {
  const home = sandbox.environment['HOME'] ?? ''
  // The agent creates and removes directories meanwhile; then try again.
  const entries = await readdir(home, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  const contents = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')))
  return contents.some((content) => content.includes(text))
}

async function nextMinute(): Promise<void> {
  const minute = () => Math.floor(Date.now() / 60_000)
  for (const now = minute(); minute() === now;) await sleep(200)
}

function turnOf(asked: Turn[], index: number): Turn {
  const turn = asked[index]
  assert.ok(turn)
  return turn
}

function lastOf(pids: number[]): number {
  const pid = pids.at(-1)
  assert.ok(pid, 'a process was started')
  return pid
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
