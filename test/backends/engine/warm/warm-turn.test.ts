import { randomUUID } from 'node:crypto'
import { chmodSync, copyFileSync, existsSync, readdirSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { type WarmLimits, WarmPool } from '../../../../src/backends/engine/warm/warm-pool.js'
import type { AgentEvent, AgentMode, AgentRequest } from '../../../../src/backends/types.js'
import type { ProcessOwner } from '../../../../src/processes/process-owner.js'
import { findProcess } from '../../../../src/processes/process-table.js'
import { brokenInvariants } from '../../../contract/invariants.js'
import { livingProcesses } from '../../../kit/living-processes.js'
import { until } from '../../../kit/waiting.js'
import { createFakeBackend, createStage } from '../../fake-cli.js'
import { recordingLog } from '../../../kit/log.js'
import { type SeenRun, seeRun } from '../../../kit/seen-run.js'
import { agentPath } from '../../../kit/agents.js'

const AGENT = agentPath('warm-agent.sh')

interface Heard extends SeenRun {
  broken: string[]
}

interface Options {
  mode?: AgentMode
  limits?: Partial<WarmLimits>
  memory?: (pids: number[]) => number[]
  readyMs?: number
  measureMs?: number
  freshMs?: number
  answerMs?: number
  now?: () => number
  cliPath?: string
  owner?: ProcessOwner
}

function setup({
  mode = 'live',
  limits,
  memory = (pids) => pids.map(() => 0),
  owner,
  cliPath,
  ...looks
}: Options = {}) {
  const stage = createStage()
  const log = recordingLog()
  const dependencies = { log, now: Date.now, elapsed: Date.now, ...(owner && { owner }) }
  const pool = new WarmPool({
    log,
    limits: { liveIdleMs: 600_000, liveMaxProcesses: 8, liveMaxMemoryMb: 4096, liveSpare: false, ...limits },
    memory,
    ...looks,
  })
  onTestFinished(() => pool.stop())
  const backend = createFakeBackend('claude', cliPath ?? AGENT, stage, {
    dependencies: { ...dependencies, warm: { mode, pool } },
    environment: { FAKE_STAGE: stage.home },
  })
  const turn = async (
    prompt: string,
    request: Partial<AgentRequest> = {},
    onEvent: (event: AgentEvent) => unknown = () => {},
    signal = new AbortController().signal,
  ): Promise<Heard> => {
    const seen = await seeRun(backend.run({ prompt, ...request }, signal), onEvent)
    return { ...seen, broken: brokenInvariants(seen.events) }
  }
  /** The process that answers in this session: the pid of a warm one, or `alone`. */
  const who = async (sessionId: string, request: Partial<AgentRequest> = {}): Promise<string> => {
    const { result } = await turn(answer('$PPID', sessionId), { sessionId, ...request })
    if (result.failure) throw new Error(result.failure.message)
    return result.finalOutput === String(process.pid) ? 'alone' : (result.finalOutput ?? '')
  }
  /** The warm processes. */
  const warmPids = (): number[] =>
    livingProcesses(stage.workingDir)
      .filter(({ pid, command }) => command.includes('warm-agent.mjs') && isOurs(pid))
      .map(({ pid }) => pid)
  const hold = (sessionId: string, file: string): Promise<Heard> =>
    turn(
      `${begin(sessionId)}; : > ${file}.begun; until [ -e ${file} ]; do sleep 0.01; done; ${answer('held', sessionId)}`,
      {
        sessionId,
      },
    )
  const begun = (file: string) => until(() => existsSync(join(stage.workingDir, `${file}.begun`)), `${file}.begun`)
  const letGo = (file: string): string => stage.write(join('work', file), '')
  return { pool, turn, who, warmPids, log, hold, begun, letGo }
}

/** Before its exec, a new process still has the name of its parent. */
function isOurs(pid: number): boolean {
  return findProcess(pid)?.parentPid === process.pid
}

/** A command that prints it, with shell variables expanded. */
function answer(text: string, sessionId = newSession()): string {
  const result = `{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"${sessionId}"}`
  return `${begin(sessionId)}; printf '${result}\\n' "${text}"`
}

function begin(sessionId: string): string {
  return `printf '{"type":"system","subtype":"init","session_id":"${sessionId}"}\\n'`
}

function say(text: string): string {
  return `printf '{"type":"assistant","message":{"content":[{"type":"text","text":"${text}"}]}}\\n'`
}

/** Once the test has seen what was printed. Alone, the parent is the test itself. */
const LOSE = 'until [ -e seen ]; do sleep 0.01; done; [ "$WARM" ] && kill -9 $PPID; exit 5'

const TOOL = `printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}\\n'`

function newSession(): string {
  return randomUUID()
}

it('the turns of a session follow each other in one process, and other sessions have others', async () => {
  const { who, turn, warmPids } = setup()
  const [one, other] = [newSession(), newSession()]
  const first = await turn(answer('$PPID', one))
  const answers = [first.result.finalOutput, await who(one), await who(other), await who(one)]
  expect(new Set(answers).size).toBe(2)
  expect([answers[1], answers[3]]).toEqual([answers[0], answers[0]])
  const warm = new Set(warmPids().map(String))
  expect(warm).toEqual(new Set(answers))
})

it('a session id in another case is the same session', async () => {
  const { who } = setup()
  const session = newSession()
  const first = await who(session.toUpperCase())
  expect(await who(session)).toBe(first)
})

it.for([
  ['a mode', { mode: 'oneshot' }],
  ['a command of the operator', { command: { args: [] } }],
] as const)('%s may need a process for one turn; the warm one is ended first', async ([, request]) => {
  const { who, warmPids } = setup()
  const session = newSession()
  const before = await who(session)
  expect(await who(session, request as Partial<AgentRequest>)).toBe('alone')
  expect(warmPids()).toEqual([])
  expect(await who(session)).not.toBe(before)
})

it('auto is warm with versions known to work, and with no others', async () => {
  const old = agentPath('old-agent.mjs')
  const known = setup({ mode: 'auto' })
  const [session] = [newSession()]
  expect(await known.who(session)).toBe(await known.who(session))
  const { turn, warmPids } = setup({ mode: 'auto', cliPath: old })
  await turn('hi')
  expect(warmPids()).toEqual([])
})

it('what cannot be changed in a process starts another one, and a session is never in two', async () => {
  const { who, warmPids } = setup()
  const session = newSession()
  const requests: Array<Partial<AgentRequest>> = [
    {},
    { model: 'opus' },
    { environment: { TOKEN: 'one' } },
    { environment: { TOKEN: 'two' } },
    { secretFiles: [{ variable: 'KEY_FILE', content: 'secret' }] },
    { systemPrompt: 'Be brief.' },
  ]
  const answers: string[] = []
  for (const request of requests) {
    answers.push(await who(session, request))
    expect(warmPids().map(String)).toEqual([answers.at(-1)])
  }
  expect(new Set(answers).size).toBe(requests.length)
})

it('a secret file is there for every turn of the process, and gone with it', async () => {
  const { turn, pool } = setup()
  const sessionId = newSession()
  const request = { sessionId, secretFiles: [{ variable: 'KEY_FILE', content: 'of the project' }] }
  const read = async () => (await turn(answer('$(cat $KEY_FILE) $KEY_FILE', sessionId), request)).result.finalOutput
  const [first, second] = [await read(), await read()]
  expect([first, first?.split(' /')[0]]).toEqual([second, 'of the project'])
  await pool.stop()
  expect(existsSync(`/${first?.split(' /')[1]}`)).toBe(false)
})

it('an executable that has changed on disk is not kept warm', async () => {
  const stage = createStage()
  const cliPath = stage.write('agent.sh', '')
  copyFileSync(AGENT, cliPath)
  copyFileSync(AGENT.replace('.sh', '.mjs'), join(cliPath, '..', 'warm-agent.mjs'))
  const { who, warmPids } = setup({ cliPath })
  const session = newSession()
  const before = await who(session)
  expect(await who(session)).toBe(before)
  utimesSync(cliPath, new Date(), new Date(Date.now() - 60_000))
  const after = await who(session)
  expect([after === before, warmPids().map(String)]).toEqual([false, [after]])
})

it('the least recently used one makes room', async () => {
  const { who, warmPids } = setup({ limits: { liveMaxProcesses: 2 } })
  const [one, two, three] = [newSession(), newSession(), newSession()]
  const first = await who(one)
  const second = await who(two)
  expect(await who(one)).toBe(first)
  const third = await who(three)
  expect(warmPids().map(String).toSorted()).toEqual([first, third].toSorted())
  expect(await who(two)).not.toBe(second)
})

it('if all are busy, a turn gets its own process at once', async () => {
  const { who, hold, begun, letGo, warmPids } = setup({ limits: { liveMaxProcesses: 1 } })
  const session = newSession()
  const held = hold(session, 'go')
  await begun('go')
  expect(await who(newSession())).toBe('alone')
  letGo('go')
  expect((await held).result.finalOutput).toBe('held')
  expect(warmPids().length).toBe(1)
})

it('fifty conversations share at most four, and all are answered', async () => {
  const { turn, warmPids } = setup({ limits: { liveMaxProcesses: 4 } })
  const sessions = Array.from({ length: 50 }, newSession)
  let most = 0
  const talk = async (sessionId: string): Promise<string[]> => {
    const heard: string[] = []
    for (const number of [1, 2]) {
      const { result } = await turn(answer(`${number} of ${sessionId}`, sessionId), { sessionId })
      most = Math.max(most, warmPids().length)
      heard.push(result.finalOutput ?? result.failure?.message ?? '')
    }
    return heard
  }
  const waiting = [...sessions]
  const answers = new Map<string, string[]>()
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) answers.set(next, await talk(next))
  }
  await Promise.all([worker(), worker(), worker(), worker(), worker(), worker()])
  for (const session of sessions) expect(answers.get(session)).toEqual([`1 of ${session}`, `2 of ${session}`])
  expect(most).toBeLessThanOrEqual(4)
})

it('too much memory ends the least recently used ones', async () => {
  let megabytes = 100
  const memory = (pids: number[]) => pids.map(() => megabytes * 1024 * 1024)
  const { who, warmPids } = setup({ limits: { liveMaxMemoryMb: 350 }, memory, measureMs: 20 })
  const sessions = [newSession(), newSession(), newSession(), newSession()]
  const pids: string[] = []
  for (const session of sessions) pids.push(await who(session))
  expect(new Set(pids).size).toBe(4)
  // A fourth fits only until it uses memory itself.
  await until(() => warmPids().length === 3, 'the end of the oldest')
  expect(warmPids().map(String).toSorted()).toEqual(pids.slice(1).toSorted())
  megabytes = 200
  await until(() => warmPids().length === 1, 'the end of two more')
  expect(warmPids().map(String)).toEqual([pids[3]])
})

it('if busy ones take all the memory, a turn gets its own process', async () => {
  const memory = (pids: number[]) => pids.map(() => 1024 * 1024 * 1024)
  const { who, hold, begun, letGo } = setup({ limits: { liveMaxMemoryMb: 1024 }, memory })
  const held = hold(newSession(), 'go')
  await begun('go')
  expect(await who(newSession())).toBe('alone')
  letGo('go')
  await held
})

it('an idle one ends after a while', async () => {
  const { who, warmPids, log } = setup({ limits: { liveIdleMs: 20 } })
  await who(newSession())
  await until(() => warmPids().length === 0, 'its end')
  expect(log.warned).toEqual([])
})

it('those started before a change of the configuration end, the busy ones after their turn', async () => {
  const { who, hold, begun, letGo, warmPids, pool } = setup()
  const session = newSession()
  await who(newSession())
  const held = hold(session, 'go')
  await begun('go')
  pool.drain()
  await until(() => warmPids().length === 1, 'the end of the idle one')
  letGo('go')
  expect((await held).result.finalOutput).toBe('held')
  expect(warmPids()).toEqual([])
})

it('a process that was killed between two turns is replaced unnoticed', async () => {
  const { who, warmPids, log } = setup()
  const session = newSession()
  const before = await who(session)
  process.kill(Number(before), 'SIGKILL')
  await until(() => warmPids().length === 0, 'its end')
  const after = await who(session)
  expect([after === before, after === 'alone']).toEqual([false, false])
  process.kill(Number(after), 'SIGKILL')
  await until(() => log.warned.includes('live.died'), 'a word in the log')
})

it('a process that has been idle is checked, and used again', async () => {
  const { who } = setup({ freshMs: -1, answerMs: 60_000 })
  const session = newSession()
  expect(await who(session)).toBe(await who(session))
})

it('a process that no longer answers is replaced unnoticed', async () => {
  const { who, warmPids, log } = setup({ freshMs: 60_000, answerMs: 100, now: () => time })
  const session = newSession()
  let time = 0
  const before = await who(session)
  process.kill(Number(before), 'SIGSTOP')
  time = 60_001
  const after = await who(session)
  expect([after === before, warmPids().map(String), log.warned]).toEqual([false, [after], ['live.silent']])
})

it('a spare is started, for the next new session of the same kind', async () => {
  const { turn, warmPids } = setup({ limits: { liveSpare: true } })
  const first = await turn(answer('$PPID'), { systemPrompt: 'one' })
  await until(() => warmPids().length === 2, 'the one ahead')
  const spare = warmPids().find((pid) => String(pid) !== first.result.finalOutput)
  // Of no use for another key, it makes room for one that is.
  const other = await turn(answer('$PPID'), { systemPrompt: 'two' })
  const known = [first.result.finalOutput, other.result.finalOutput, String(spare)]
  const next = await until(() => warmPids().find((pid) => !known.includes(String(pid))), 'one of the other key')
  expect(warmPids()).not.toContain(spare)
  expect((await turn(answer('$PPID'), { systemPrompt: 'two' })).result.finalOutput).toBe(String(next))
})

it('the spare makes room first, and nothing makes room for it', async () => {
  const { turn, warmPids } = setup({ limits: { liveSpare: true, liveMaxProcesses: 2 } })
  const first = await turn(answer('$PPID'))
  await until(() => warmPids().length === 2, 'the one ahead')
  const second = await turn(answer('$PPID'), { systemPrompt: 'another' })
  expect(new Set(warmPids().map(String))).toEqual(new Set([first, second].map(({ result }) => result.finalOutput)))
})

it('if a process is lost in mid-turn, the person sees one answer, in the same session', async () => {
  const { turn, warmPids, letGo } = setup()
  const sessionId = newSession()
  // Another process continues what a lost one began, and is told so.
  const script = `
${begin(sessionId)}; ${say('Half')}; ${TOOL}
if [ "$WAS_INTERRUPTED" ]; then ${answer('whole', sessionId)}; exit; fi
${LOSE}`
  const { result, types, notices, output, broken } = await turn(script, {}, ({ type }) => {
    if (type === 'tool_use') letGo('seen')
  })
  expect({ answer: result.finalOutput, sessionId: result.sessionId, broken }).toEqual({
    answer: 'whole',
    sessionId,
    broken: [],
  })
  expect(types).toBe('started output tool_use tool_result notice output tool_use tool_result complete')
  expect(notices).toEqual([expect.stringContaining('continues in a new process')])
  expect(output).toBe('Half\n\nHalf')
  expect(warmPids()).toEqual([])
})

it('a session that the lost process had not yet stored is started afresh', async () => {
  const { turn, letGo } = setup()
  const sessionId = newSession()
  const lost = `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID"]}`
  const script = `
if [ -e second ]; then ${answer('anew')}; exit; fi
if [ "$WAS_INTERRUPTED" ]; then : > second; echo '${lost}'; exit 1; fi
${begin(sessionId)}; ${LOSE}`
  const { result, broken, types } = await turn(script, {}, ({ type }) => {
    if (type === 'started') letGo('seen')
  })
  expect([result.finalOutput, broken, types]).toEqual(['anew', [], 'started notice output complete'])
})

it('an agent that fails in every process fails once', async () => {
  const { turn } = setup()
  const { result, types, broken } = await turn('echo "It broke" >&2; exit 3')
  expect([result.failure?.message, types, broken]).toEqual(['It broke', 'notice error complete', []])
})

it('one that never listens is given up for one turn, and the next turns do not retry it at once', async () => {
  const stage = createStage()
  const deaf = stage.write(
    'deaf.sh',
    `#!/bin/sh\ncase " $* " in *' --input-format '*) exec sleep 1000 ;; esac\nexec ${AGENT} "$@"\n`,
  )
  chmodSync(deaf, 0o755)
  const { turn, who, log } = setup({ cliPath: deaf, readyMs: 100, now: () => 0 })
  const session = newSession()
  const { result, notices, types } = await turn(answer('done', session))
  expect([result.finalOutput, types]).toEqual(['done', 'started notice output complete'])
  expect(notices).toEqual([expect.stringContaining('did not become ready')])
  expect(await who(session)).toBe('alone')
  const tries = log.logged.filter(([, message]) => message === 'live.started')
  expect([tries.length, log.warned]).toEqual([1, ['live.not-ready']])
})

it('garbage on stdout is a notice, and the process stays warm', async () => {
  const { turn, who } = setup()
  const session = newSession()
  const before = await who(session)
  const { result, notices } = await turn(`echo '}{'; echo '<html>'; ${answer('done', session)}`, { sessionId: session })
  expect([result.finalOutput, notices]).toEqual(['done', ['}{', '<html>']])
  expect(await who(session)).toBe(before)
})

it('two simultaneous messages of one session are answered one after the other, in one process', async () => {
  const { turn, warmPids } = setup()
  const sessionId = newSession()
  const script = `[ -e busy ] && exit 9; : > busy; sleep 0.05; rm busy; ${answer('$PPID', sessionId)}`
  const heard = await Promise.all([1, 2, 3].map(() => turn(script, { sessionId })))
  const pids = heard.map(({ result }) => result.finalOutput)
  expect([new Set(pids).size, warmPids().map(String)]).toEqual([1, [pids[0]]])
})

it('a turn that waits for its session can be cancelled, and was never prompted', async () => {
  const { turn, hold, begun, letGo } = setup()
  const sessionId = newSession()
  const held = hold(sessionId, 'go')
  await begun('go')
  const controller = new AbortController()
  const waiting = turn(answer('never', sessionId), { sessionId }, () => {}, controller.signal)
  controller.abort()
  const { result, types } = await waiting
  expect([result.failure?.reason, types]).toEqual(['cancelled', 'error complete'])
  expect((await turn(answer('never'), { sessionId, timeoutMs: 30 })).result.failure?.reason).toBe('timeout')
  letGo('go')
  expect((await held).result.finalOutput).toBe('held')
})

it('a cancelled turn leaves the process to the next', async () => {
  const { turn, who } = setup()
  const session = newSession()
  const before = await who(session)
  const controller = new AbortController()
  const script = `${begin(session)}; ${say('Working')}; exec sleep 1000`
  const onEvent = ({ type }: AgentEvent) => type === 'output' && controller.abort()
  const { result } = await turn(script, { sessionId: session }, onEvent, controller.signal)
  expect([result.failure?.reason, await who(session)]).toEqual(['cancelled', before])
})

it('every process is on record under its own id, until it is gone', async () => {
  const record = new Map<string, number>()
  const owner: ProcessOwner = {
    id: randomUUID(),
    started: async ({ runId, pid }) => void record.set(runId, pid),
    ended: async (runId) => void record.delete(runId),
  }
  const { who, pool } = setup({ owner })
  const [one, two] = [await who(newSession(), { runId: 'of-the-turn' }), await who(newSession())]
  expect([...record.values()].map(String).toSorted()).toEqual([one, two].toSorted())
  expect(record.has('of-the-turn')).toBe(false)
  await pool.stop()
  expect([record.size, readdirSync(tmpdir()).filter((name) => name.includes(owner.id))]).toEqual([0, []])
})
