import { describe, expect } from 'vitest'
import type { AgentEvent } from '../../src/backends/types.js'
import { type DescendantKind, START, type Step } from './agent-script.js'
import type { ContractPart } from './backend-contract.js'
import { until } from '../kit/waiting.js'

export function describeProcesses({ it, itOfProcess, itIfEnding, setup }: ContractPart): void {
  const descendants = (...kinds: DescendantKind[]): Step[] => kinds.map((descendant) => ({ descendant }))
  /** Found by their marker, whatever their parent. */
  const marked = descendants('child', 'own-session', 'orphan', 'holds-output')
  /** Unmarked processes are found as descendants while the agent lives. */
  const all = [...marked, ...descendants('own-session-no-environment')]
  const busy: Step[] = [...all, START, { say: 'Working' }, { hang: true }]
  const nothing = { broken: [], alive: [] }
  /** How many processes a run has; elsewhere, it also has a supervisor. */
  const aRun: unknown = setup.elsewhere === undefined ? 1 + all.length : expect.any(Number)

  describe('no process is alive', () => {
    itOfProcess('after an answer', async ({ stage }) => {
      const { broken, alive, result } = await stage.see({
        prompt: stage.prompt(...marked, START, { tool: { command: 'true', output: '' } }, { answer: 'Hello' }),
      })
      expect({ broken, alive, finalOutput: result.finalOutput }).toEqual({ ...nothing, finalOutput: 'Hello' })
    })

    itIfEnding('after an answer of an agent that does not exit, and the answer counts', async ({ stage }) => {
      // Silence begins when the agent has answered, however long that takes.
      let [time, passing] = [0, 0]
      const backend = stage.backend({}, { now: () => (time += passing) })
      const onEvent = ({ type }: AgentEvent) => type === 'output' && (passing = 400)
      const { broken, alive, result } = await stage.see(
        { prompt: stage.prompt(...marked, START, { answer: 'Hello' }, { hang: true }), idleTimeoutMs: 400 },
        { backend, onEvent },
      )
      const { isError, finalOutput, sessionId } = result
      expect({ broken, alive, isError, finalOutput, sessionId }).toEqual({
        ...nothing,
        isError: false,
        finalOutput: 'Hello',
        sessionId: setup.newSession,
      })
    })

    itOfProcess('after a crash', async ({ stage }) => {
      const { broken, alive, result } = await stage.see({ prompt: stage.prompt(...marked, START, { die: 'SIGKILL' }) })
      expect({ broken, alive, exitCode: result.exitCode }).toEqual({ ...nothing, exitCode: 137 })
    })

    it('after a time-out', async ({ stage }) => {
      // It arrives when everything has been started, however long that takes; then each reading of the clock advances it.
      let [time, passing] = [0, 0]
      const backend = stage.backend({}, { now: () => (time += passing) })
      const onEvent = ({ type }: AgentEvent) => type === 'output' && (passing = 400)
      const { broken, alive, result } = await stage.see(
        { prompt: stage.prompt(...busy), idleTimeoutMs: 400 },
        { backend, onEvent },
      )
      expect({ broken, alive, reason: result.failure?.reason }).toEqual({ ...nothing, reason: 'timeout' })
    })

    it('after a cancel', async ({ stage }) => {
      const controller = new AbortController()
      let aliveBefore = 0
      const onEvent = async ({ type }: AgentEvent) => {
        if (type !== 'output') return
        // A process that only starts another one may still be there.
        const isSettled = () => setup.elsewhere !== undefined || stage.alive().length === 1 + all.length
        await until(isSettled, 'everything that was started')
        aliveBefore = stage.alive().length
        controller.abort()
      }
      const { broken, alive, result } = await stage.see(
        { prompt: stage.prompt(...busy) },
        { signal: controller.signal, onEvent },
      )
      expect({ broken, alive, aliveBefore, failure: result.failure }).toEqual({
        ...nothing,
        aliveBefore: aRun,
        failure: { reason: 'cancelled', message: 'Cancelled', report: 'Cancelled' },
      })
    })

    it.skipIf(setup.warmCommand)('after a cancel that the agent ignores', async ({ stage }) => {
      const controller = new AbortController()
      const steps: Step[] = [{ ignoreSignals: ['SIGINT', 'SIGTERM', 'SIGHUP'] }, START, { say: 'No' }, { hang: true }]
      const onEvent = ({ type }: AgentEvent) => type === 'output' && controller.abort()
      const { broken, alive, result } = await stage.see(
        { prompt: stage.prompt(...steps) },
        { signal: controller.signal, onEvent },
      )
      expect({ broken, alive, exitCode: result.exitCode, reason: result.failure?.reason }).toEqual({
        ...nothing,
        exitCode: setup.withoutProcess === undefined ? 137 : undefined,
        reason: 'cancelled',
      })
    })

    it('when the consumer has left the loop', async ({ stage }) => {
      for await (const { type } of stage
        .backend()
        .run({ prompt: stage.prompt(...busy) }, new AbortController().signal)) {
        if (type === 'output') break
      }
      expect(stage.alive()).toEqual([])
    })

    it('when the consumer has failed', async ({ stage }) => {
      const consume = stage.see(
        { prompt: stage.prompt(...busy) },
        {
          onEvent({ type }) {
            if (type === 'output') throw new Error('The consumer failed')
          },
        },
      )
      const error = await consume.catch((thrown: unknown) => thrown)
      expect([error, stage.alive()]).toEqual([new Error('The consumer failed'), []])
    })
  })

  describe('a cancel', () => {
    it('before the start starts nothing', async ({ stage }) => {
      const { result, types, broken } = await stage.see(
        { prompt: stage.prompt(...busy) },
        { signal: AbortSignal.abort() },
      )
      expect({ result, types, broken }).toEqual({
        result: {
          isError: true,
          durationMs: 0,
          failure: { reason: 'cancelled', message: 'Cancelled', report: 'Cancelled' },
        },
        types: 'error complete',
        broken: [],
      })
    })

    it('at once after the start ends with complete', async ({ stage }) => {
      const controller = new AbortController()
      const seeing = stage.see({ prompt: stage.prompt(...busy) }, { signal: controller.signal })
      controller.abort()
      const { result, broken, alive } = await seeing
      expect({ reason: result.failure?.reason, broken, alive }).toEqual({ ...nothing, reason: 'cancelled' })
    })

    it('stands, whatever the agent does when it is stopped', async ({ stage }) => {
      const controller = new AbortController()
      const backend = stage.backend({}, { limits: { lineBytes: 10_000, totalBytes: 10_000 } })
      const tooMuch: Step[] = [{ print: `${'x'.repeat(100)}\n`.repeat(200) }, { answer: 'Done' }, { exit: 0 }]
      const prompt = stage.prompt({ onStop: tooMuch }, START, { say: 'Working' }, { hang: true })
      const onEvent = ({ type }: AgentEvent) => type === 'output' && controller.abort()
      const { result, broken, alive } = await stage.see({ prompt }, { backend, signal: controller.signal, onEvent })
      expect({ reason: result.failure?.reason, broken, alive }).toEqual({ ...nothing, reason: 'cancelled' })
    })

    it('while complete is on its way, or later, changes nothing', async ({ stage }) => {
      const controller = new AbortController()
      const prompt = stage.prompt(START, { answer: 'Hello' })
      const onEvent = ({ type }: AgentEvent) => type === 'complete' && controller.abort()
      const { result, types } = await stage.see({ prompt }, { signal: controller.signal, onEvent })
      expect({ isError: result.isError, types }).toEqual({ isError: false, types: 'started output complete' })
    })

    it('does not wait for a consumer that takes its time', async ({ stage }) => {
      const controller = new AbortController()
      const onEvent = async ({ type }: AgentEvent) => {
        if (type !== 'output') return
        controller.abort()
        await until(() => stage.alive().length === 0)
      }
      const { result } = await stage.see({ prompt: stage.prompt(...busy) }, { signal: controller.signal, onEvent })
      expect(result.failure?.reason).toEqual('cancelled')
    })

    it('ends its own run and no other', async ({ stage }) => {
      const otherDir = stage.makeDirectory('other')
      const prompt = stage.prompt(...busy)
      const controllers = [new AbortController(), new AbortController()] as const
      const working = [stage.workingDir, otherDir].map((workingDir, index) => {
        const seen: string[] = []
        const run = stage.see(
          { prompt, workingDir },
          { signal: controllers[index]?.signal ?? AbortSignal.abort(), onEvent: ({ type }) => seen.push(type) },
        )
        return { seen, run }
      })
      await until(() => working.every(({ seen }) => seen.includes('output')))
      controllers[0].abort()
      const cancelled = await working[0]?.run
      const survivors = stage.alive().length
      controllers[1].abort()
      const last = await working[1]?.run
      expect({ reason: cancelled?.result.failure?.reason, survivors, alive: last?.alive }).toEqual({
        reason: 'cancelled',
        survivors: aRun,
        alive: [],
      })
    })
  })

  describe('two runs at once', () => {
    it('have their own events and end independently', async ({ stage }) => {
      const backend = stage.backend()
      const sessions = [setup.knownSession, setup.otherSession]
      const runs = sessions.map((sessionId, index) =>
        stage.see({ prompt: stage.prompt({ start: sessionId }, { answer: `Hello ${index}` }), sessionId }, { backend }),
      )
      const seen = await Promise.all(runs)
      expect(seen.map(({ output, result, broken }) => [output, result.sessionId, broken])).toEqual([
        ['Hello 0', setup.knownSession, []],
        ['Hello 1', setup.otherSession, []],
      ])
    })
  })
}
