// A turn that needs approvals never runs in a process that cannot ask for them.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { WarmPool } from '../../../../src/backends/engine/warm/warm-pool.js'
import type { AgentMode, AgentRequest, AgentResult, Approve, BackendName } from '../../../../src/backends/types.js'
import { brokenInvariants } from '../../../contract/invariants.js'
import { livingProcesses } from '../../../kit/living-processes.js'
import { createFakeBackend, createStage } from '../../fake-cli.js'
import { SILENT_LOG } from '../../../kit/log.js'
import { seeRun } from '../../../kit/seen-run.js'
import { type AgentName, agentPath } from '../../../kit/agents.js'

const SESSION = '6488a900-9deb-456e-98ea-de230d1950c5'
const BEGIN = `printf '{"type":"system","subtype":"init","session_id":"${SESSION}"}\\n'`
const RESULT = `printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"${SESSION}"}\\n'`
const TOOL = `printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}\\n'`
const REQUEST = '{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}'
/** Asks for approval and waits for the answer. */
const QUESTION = [
  ...[BEGIN, TOOL, `printf '{"type":"control_request","request_id":"q","request":${REQUEST}}\\n'`],
  'until [ -e answer-q ]; do sleep 0.01; done',
].join('; ')
/** Repeats the answer. */
const ASK = `${QUESTION}; ${RESULT} "$(sed 's/.*"behavior":"\\([a-z]*\\)".*/\\1/' answer-q)"`
/** A one-shot process would create a file. */
const ALONE = '[ "$WARM" ] || : > alone'

const LIMITS = { liveIdleMs: 600_000, liveMaxMemoryMb: 4096, liveSpare: false }

const ALLOW: Approve = async () => ({ isAllowed: true })

interface Options {
  name?: BackendName
  agent?: AgentName
  mode?: AgentMode
  maxProcesses?: number
}

function setup({ name = 'claude', agent = 'warm-agent.sh', mode = 'live', maxProcesses = 8 }: Options = {}) {
  const stage = createStage()
  const cliPath = agentPath(agent)
  const log = SILENT_LOG
  const dependencies = { log, now: Date.now, elapsed: Date.now }
  const environment = { FAKE_STAGE: stage.home }
  const pool = new WarmPool({ log, limits: { ...LIMITS, liveMaxProcesses: maxProcesses } })
  onTestFinished(() => pool.stop())
  const { workingDir } = stage
  const backend = createFakeBackend(name, cliPath, stage, {
    dependencies: { ...dependencies, warm: { mode, pool } },
    environment,
  })
  const turn = async (prompt: string, request: Partial<AgentRequest> = { approve: ALLOW }): Promise<AgentResult> => {
    const { events, result } = await seeRun(backend.run({ prompt, ...request }, new AbortController().signal))
    expect(brokenInvariants(events)).toEqual([])
    return result
  }
  const wasAlone = (): boolean => existsSync(join(workingDir, 'alone'))
  return { turn, wasAlone, pool, backend, workingDir }
}

it.each(['oneshot', 'auto', 'live'] as const)('a turn has a process that asks with AGENT_MODE=%s', async (mode) => {
  const { turn } = setup({ mode })
  expect((await turn(ASK)).finalOutput).toBe('allow')
})

it.each<[when: string, options: Options]>([
  ['all places are taken', { maxProcesses: 0 }],
  ['agents shall be one-shot', { mode: 'oneshot' }],
])('a turn has one even if %s, and it ends with the turn', async (_, options) => {
  const { turn, workingDir } = setup(options)
  expect((await turn(ASK)).finalOutput).toBe('allow')
  expect(livingProcesses(workingDir)).toEqual([])
})

it("if agents shall not be warm any more, the session's process ends first", async () => {
  const { turn, workingDir } = setup()
  await turn(ASK)
  const warm = livingProcesses(workingDir)
  expect(warm).not.toEqual([])
  await turn(ASK, { approve: ALLOW, sessionId: SESSION, mode: 'oneshot' })
  expect(livingProcesses(workingDir)).toEqual([])
})

it('a turn has one even if another has just failed to start', async () => {
  const { turn, pool, backend } = setup()
  pool.backoffs.failed(backend.cli.fingerprint())
  expect((await turn(ASK)).finalOutput).toBe('allow')
})

it('losing it in the middle of a turn fails the turn, so that it can be retried', async () => {
  const { turn, wasAlone } = setup()
  const { failure, sessionId } = await turn(`${ALONE}; ${QUESTION}; kill -9 $PPID; sleep 5`)
  expect([failure?.reason, failure?.isLasting, sessionId, wasAlone()]).toEqual(['exit', undefined, SESSION, false])
  expect((await turn(ASK, { approve: ALLOW, sessionId: SESSION })).finalOutput).toBe('allow')
})

it('one that never listens fails the turn', async () => {
  const { turn } = setup({ agent: 'unready-agent.sh' })
  const { failure } = await turn('unused')
  expect([failure?.reason, failure?.isLasting]).toEqual(['exit', undefined])
})

it.each<[what: string, options: Options, request: Partial<AgentRequest>, message: string]>([
  [
    'a version of which that is not known',
    { agent: 'old-agent.mjs' },
    {},
    'Approvals need Claude 2.1.197 or newer. Update it, or set its permissions to "allow".',
  ],
  [
    'an agent that has no way to ask',
    { name: 'pi' },
    {},
    'Pi cannot ask for approval. Choose claude, codex, gemini or opencode, or set its permissions to "allow".',
  ],
  [
    'a command template',
    {},
    { command: { args: [] } },
    'Claude cannot ask for approval when a command template starts it. Remove the template, or set its permissions to "allow".',
  ],
])('a turn is refused with %s', async (_, options, request, message) => {
  const { turn, wasAlone } = setup(options)
  const { failure } = await turn(ALONE, { approve: ALLOW, ...request })
  expect([failure?.reason, failure?.message, wasAlone()]).toEqual(['refused', message, false])
})

it('what it asks is denied with the reason of the person asked', async () => {
  const { turn } = setup()
  const { finalOutput } = await turn(ASK, { approve: async () => ({ isAllowed: false, message: 'No.' }) })
  expect(finalOutput).toBe('deny')
})
