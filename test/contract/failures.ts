import { chmodSync, existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { AgentEvent, AgentRequest, BackendAdapterConfig } from '../../src/backends/types.js'
import { START, type Step } from './agent-script.js'
import type { ContractPart } from './backend-contract.js'
import type { Stage } from './stage.js'
import { until } from '../kit/waiting.js'

export function describeFailures({ it, itOfProcess, itIfEnding, itHere, setup }: ContractPart): void {
  const { label } = setup
  const isProcess = setup.withoutProcess === undefined

  describe('a failure', () => {
    const noise = 'Error: '.repeat(100)
    const executed: Record<string, [steps: Step[], text: string]> = {
      'an exit code with stderr': [
        [{ printOnStderr: 'It broke' }, { exit: 3 }],
        `${label} CLI error (exit 3): It broke`,
      ],
      'a long stderr': [[{ printOnStderr: noise }, { exit: 1 }], `${label} CLI error (exit 1): ${noise.slice(0, 500)}`],
      'stderr that arrives in half characters': [
        [{ printOnStderr: 'Störung 🦆 漢字' }, { exit: 1 }],
        `${label} CLI error (exit 1): Störung 🦆 漢字`,
      ],
      'stderr over what the CLI reported': [
        [START, { fail: 'Overloaded' }, { printOnStderr: 'It broke' }, { exit: 1 }],
        `${label} CLI error (exit 1): It broke`,
      ],
      'an exit code with a report on stdout': [
        [START, { fail: 'Overloaded' }, { exit: 1 }],
        `${label} CLI error (exit 1): Overloaded`,
      ],
      'an exit code with plain text on stdout': [
        [{ print: 'It broke' }, { exit: 2 }],
        `${label} CLI error (exit 2): It broke`,
      ],
      'an exit code without a word': [[{ exit: 7 }], `${label} CLI error (exit 7): unknown error`],
      'an exit code after some words': [
        [START, { say: 'Well' }, { exit: 7 }],
        `${label} CLI error (exit 7): unknown error`,
      ],
      'a crash': [[START, { die: 'SIGSEGV' }], `${label} CLI error (exit 139): unknown error`],
      'a kill from outside': [[START, { die: 'SIGKILL' }], `${label} CLI error (exit 137): unknown error`],
      'nothing printed': [[], 'Failed to parse CLI output'],
      'garbage printed': [[{ print: '<html>502</html>\n{"a":[1\n' }], 'Failed to parse CLI output'],
      'an end without the final word': [[START], 'Failed to parse CLI output'],
    }
    /** A warm process says nothing after its final word. */
    const ofEnding = ['stderr over what the CLI reported', 'an exit code with a report on stdout']
    const sentences = Object.entries(executed).filter(
      ([what]) => setup.warmCommand === undefined || !ofEnding.includes(what),
    )
    itOfProcess.for(sentences)('has its exact sentence: %s', async ([, [steps, text]], { stage }) => {
      const { isError, responseText } = await stage.backend().execute(stage.prompt(...steps), '')
      expect({ isError, responseText }).toEqual({ isError: true, responseText: text })
    })

    it.skipIf(setup.warmCommand)('shows people the words of the CLI, not the noise on stderr', async ({ stage }) => {
      const steps: Step[] = [START, { printOnStderr: 'node: deprecated\n' }, { fail: 'Overloaded' }, { exit: 1 }]
      const { result, types, broken } = await stage.see({ prompt: stage.prompt(...steps) })
      expect({ result, types, broken }).toMatchObject({
        result: {
          isError: true,
          ...(isProcess && { exitCode: 1 }),
          sessionId: setup.newSession,
          failure: { reason: 'exit', message: 'Overloaded' },
        },
        types: 'started error complete',
        broken: [],
      })
    })

    itOfProcess('is the error of a crash, not the last line of what it prints', async ({ stage }) => {
      const stderr = 'index.js:1\n\nTypeError: x is not a function\n    at main (index.js:1:1)\n\nNode.js v20.20.2\n'
      const { result } = await stage.see({ prompt: stage.prompt(START, { printOnStderr: stderr }, { exit: 1 }) })
      expect(result.failure).toMatchObject({ reason: 'exit', message: 'TypeError: x is not a function' })
    })

    it('is what the CLI says, even with exit code 0', async ({ stage }) => {
      const result = await stage.backend().execute(stage.prompt(START, { fail: 'Overloaded' }, { exit: 0 }), '')
      expect(result).toEqual({ isError: true, responseText: 'Overloaded', sessionId: setup.newSession })
    })

    itIfEnding('is a bad exit code, also after an answer', async ({ stage }) => {
      const { result } = await stage.see({ prompt: stage.prompt(START, { answer: 'Hello' }, { exit: 9 }) })
      expect(result).toMatchObject({ isError: true, exitCode: 9, failure: { reason: 'exit' } })
    })

    it.for([
      ['Rate limit reached for this model', 'rate_limit'],
      ['401 Unauthorized: the key was refused', 'auth'],
      ['prompt is too long: 200001 tokens > 200000 maximum', 'prompt_too_long'],
      ['The model `nope` does not exist', 'model_unknown'],
      ['invalid_request_error: it was blocked by a content filter', 'refused'],
      ['Something else', 'exit'],
    ] as const)('has a reason: %s', async ([message, reason], { stage }) => {
      const { result } = await stage.see({ prompt: stage.prompt(START, { fail: message }, { exit: 1 }) })
      expect(result.failure).toMatchObject({ reason, message })
    })

    it.skipIf(setup.warmCommand)('without an answer has the reason no_result', async ({ stage }) => {
      const { result, types, broken } = await stage.see({ prompt: stage.prompt(START) })
      expect({ result, types, broken }).toMatchObject({
        result: {
          isError: true,
          ...(isProcess && { exitCode: 0 }),
          failure: { reason: 'no_result', report: 'Failed to parse CLI output' },
        },
        types: 'started error complete',
        broken: [],
      })
    })

    it.skipIf(setup.warmCommand)('closes what was open', async ({ stage }) => {
      const tools: Step[] = setup.tellsFinishedTools
        ? []
        : [{ tool: { id: 'one', command: 'a' } }, { tool: { id: 'two', command: 'b' } }]
      const { events, broken } = await stage.see({ prompt: stage.prompt(START, ...tools, { die: 'SIGSEGV' }) })
      const closed = events.flatMap((event) => (event.type === 'tool_result' ? [[event.toolId, event.isError]] : []))
      expect({ closed, broken }).toEqual({
        closed:
          tools.length === 0
            ? []
            : [
                ['one', true],
                ['two', true],
              ],
        broken: [],
      })
    })
  })

  describe('a time-out', () => {
    it('has its exact sentence', async ({ stage }) => {
      const backend = stage.backend({ queryTimeoutMs: 400 })
      const result = await backend.execute(stage.prompt(START, { hang: true }), '')
      expect(result).toMatchObject({ isError: true, responseText: 'Query timed out' })
    })

    it('stands, whatever the agent says when it is stopped', async ({ stage }) => {
      const steps: Step[] = [
        { onStop: [{ answer: 'All is well' }, { exit: 0 }] },
        START,
        { say: 'Wait' },
        { hang: true },
      ]
      const { result, broken, alive } = await stage.see({ prompt: stage.prompt(...steps), timeoutMs: 400 })
      expect({ result, broken, alive }).toMatchObject({
        result: { isError: true, failure: { reason: 'timeout', report: 'Query timed out' } },
        broken: [],
        alive: [],
      })
    })

    itOfProcess('comes for an agent that never reads a large prompt and never ends', async ({ stage }) => {
      const cliPath = stage.executable('sleeper', '#!/bin/sh\n[ "$1" = --version ] || exec sleep 1000\n')
      const backend = stage.backend({ cliPath })
      const { result, alive } = await stage.see({ prompt: 'x'.repeat(1_000_000), timeoutMs: 300 }, { backend })
      expect({ reason: result.failure?.reason, alive }).toEqual({ reason: 'timeout', alive: [] })
    })

    it('comes after silence', async ({ stage }) => {
      const request = { prompt: stage.prompt(START, { say: 'Hm' }, { hang: true }), idleTimeoutMs: 400 }
      const { result, broken, alive } = await stage.see(request)
      const message = 'The agent printed nothing for 0.4 s.'
      expect({ failure: result.failure, broken, alive }).toEqual({
        failure: { reason: 'timeout', message, report: 'Query timed out' },
        broken: [],
        alive: [],
      })
    })

    itIfEnding('does not come while the agent prints now and then, if only on stderr', async ({ stage }) => {
      const clock = { time: 0, looks: 0 }
      const now = () => {
        clock.looks += 1
        return clock.time
      }
      /** While nothing is printed, only the watchdog reads the clock. */
      const watched = async () => {
        const { looks } = clock
        await until(() => clock.looks >= looks + 2)
      }
      const prompt = stage.prompt(
        ...[START, { waitFor: 'first' }],
        ...[{ say: 'Still here' }, { waitFor: 'second' }],
        ...[{ printOnStderr: '.' }, { touch: 'printed' }, { waitFor: 'third' }],
        { answer: 'Hello' },
      )
      const passTime = async () => {
        await watched()
        clock.time += 399
        await watched()
      }
      const onEvent = async (event: AgentEvent) => {
        if (event.type === 'started') {
          await passTime()
          stage.touch('first')
        } else if (event.type === 'output' && event.content === 'Still here') {
          await passTime()
          stage.touch('second')
          await until(() => existsSync(join(stage.workingDir, 'printed')))
          await passTime()
          stage.touch('third')
        }
      }
      const options = { backend: stage.backend({}, { now }), onEvent }
      const { result } = await stage.see({ prompt, idleTimeoutMs: 400 }, options)
      expect(result).toMatchObject({ isError: false, durationMs: 3 * 399 })
    })

    it('does not come because the clock is set', async ({ stage }) => {
      let time = 0
      const backend = stage.backend({}, { now: () => time, elapsed: () => 0 })
      const prompt = stage.prompt(START, { say: 'Wait' }, { waitFor: 'later' }, { answer: 'Hello' })
      const onEvent = ({ type }: AgentEvent) => {
        if (type !== 'output') return
        time = 3_600_000
        stage.touch('later')
      }
      const { result } = await stage.see({ prompt, timeoutMs: 1_800_000 }, { backend, onEvent })
      expect(result.failure).toBe(undefined)
    })

    it('of silence can be switched off', async ({ stage }) => {
      let time = 0
      const backend = stage.backend({}, { now: () => (time += 1_000_000) })
      const prompt = stage.prompt(START, { answer: 'Hello' })
      const { result } = await stage.see({ prompt, idleTimeoutMs: 0, timeoutMs: 1e12 }, { backend })
      expect(result).toMatchObject({ isError: false, finalOutput: 'Hello' })
    })
  })

  describe('an agent that cannot be started', () => {
    const hello: Step[] = [START, { answer: 'Hello' }]
    type Arrange = (stage: Stage) => { config?: Partial<BackendAdapterConfig>; request?: Partial<AgentRequest> }
    const ofProcess: Record<string, Arrange> = {
      'no such name': () => ({ config: { cliPath: 'no-such-agent' } }),
      'no such path': () => ({ config: { cliPath: '/nowhere/agent' } }),
      'an empty path': () => ({ config: { cliPath: '' } }),
      'a directory': (stage) => ({ config: { cliPath: stage.workingDir } }),
      'a file that is not executable': (stage) => ({
        config: { cliPath: stage.executable('agent', '#!/bin/sh\n', 0o644) },
      }),
      'a file for an interpreter that is not there': (stage) => ({
        config: { cliPath: stage.executable('agent', '#!/nowhere/node\n') },
      }),
      ...(setup.saysModel === undefined && {
        'a model beyond the limit of one argument': () => ({ request: { model: 'x'.repeat(200_000) } }),
      }),
    }
    const cases: Record<string, Arrange> = {
      ...(isProcess && setup.elsewhere === undefined && ofProcess),
      'no such working directory': (stage) => ({ request: { workingDir: join(stage.directory, 'nowhere') } }),
      'a working directory that is a file': (stage) => ({ request: { workingDir: stage.executable('file', '') } }),
      'a working directory below a file': (stage) => ({
        request: { workingDir: join(stage.executable('file', ''), 'below') },
      }),
      'a working directory with a name too long': () => ({ request: { workingDir: `/${'x'.repeat(5_000)}` } }),
      'a working directory that is a circle of links': (stage) => {
        const workingDir = join(stage.directory, 'circle')
        symlinkSync(workingDir, workingDir)
        return { request: { workingDir } }
      },
    }
    it.for(Object.entries(cases))('is a value: %s', async ([, arrange], { stage }) => {
      const { config, request } = arrange(stage)
      const { result, types, broken, alive } = await stage.see(
        { prompt: stage.prompt(...hello), ...request },
        { backend: stage.backend(config) },
      )
      expect({ result, types, broken, alive }).toEqual({
        result: {
          isError: true,
          durationMs: expect.any(Number),
          failure: expect.objectContaining({
            reason: 'spawn',
            message: expect.any(String),
            report: expect.any(String),
          }),
        },
        types: 'error complete',
        broken: [],
        alive: [],
      })
    })

    itOfProcess('is a value, or none, when its home cannot be written', async ({ stage }) => {
      const environment = { ...stage.environment, HOME: stage.executable('home-file', '') }
      const { result, broken } = await stage.see(
        { prompt: stage.prompt(...hello) },
        { backend: stage.backend({}, { environment }) },
      )
      expect({ isValue: result.finalOutput === 'Hello' || result.failure?.reason === 'spawn', broken }).toEqual({
        isValue: true,
        broken: [],
      })
    })

    itHere('is found out by validate', async ({ stage }) => {
      const directory = stage.makeDirectory('bin')
      const there = join(directory, 'there')
      writeFileSync(there, '#!/bin/sh\n')
      chmodSync(there, 0o755)
      const environment = { PATH: directory }
      const paths = ['there', there, 'no-such-agent', '/nowhere/agent', directory, '']
      const answers = paths.map((cliPath) => stage.backend({ cliPath }, { environment }).validate())
      expect(await Promise.all(answers)).toEqual([true, true, false, false, false, false])
    })

    itHere('is named by probe with what to do about it', async ({ stage }) => {
      const probe = await stage.backend({ cliPath: 'no-such-agent' }).probe()
      expect(probe).toEqual({
        isFound: false,
        problems: [expect.stringMatching(new RegExp(`^${label} CLI "no-such-agent" was not found\\. .*npm install`))],
      })
    })

    itHere('is none when probe reads its version', async ({ stage }) => {
      const environment = { ...stage.environment, IS_SANDBOX: '1' }
      const backend = stage.backend({}, { environment })
      expect(await backend.probe()).toMatchObject({ isFound: true, version: '99.1.2', problems: [] })
    })
  })
}
