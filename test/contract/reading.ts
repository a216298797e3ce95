import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { START, type Step, type Style } from './agent-script.js'
import type { ContractPart } from './backend-contract.js'
import { agentPath } from '../kit/agents.js'
import { until } from '../kit/waiting.js'

const MIB = 1024 * 1024

export function describeReading({ it, itOfProcess, itIfEnding, setup }: ContractPart): void {
  const { toolId: idOf = (id: string) => id } = setup

  describe('what the agent prints', () => {
    const ofEnding: Style[] = setup.warmCommand === undefined ? ['indented', 'without-last-newline'] : []
    const styles: Style[] = ['crlf', 'coloured', 'after-a-byte-order-mark', 'in-half-characters', ...ofEnding]
    itOfProcess.for(styles)('is understood when it comes %s', async (style, { stage }) => {
      const answer = 'Grüße 🦆 漢字'
      const prompt = stage.prompt({ style }, START, { tool: { command: 'ls', output: 'é' } }, { answer })
      const { types, result, broken } = await stage.see({ prompt })
      expect({ types, finalOutput: result.finalOutput, broken }).toEqual({
        types: 'started tool_use tool_result output complete',
        finalOutput: answer,
        broken: [],
      })
    })

    itOfProcess('may be garbage in between: a notice, never the end', async ({ stage }) => {
      const garbage = (print: string): Step => ({ print })
      const prompt = stage.prompt(
        garbage('Warning: slow disk\n'),
        garbage('{"half":\n'),
        START,
        garbage('[1, "two", null]\n'),
        garbage('\u001B[31mred\u001B[0m \u0007\n'),
        garbage('{"type":"answer from the future"}\n{"type":"answer from the future"}\n'),
        garbage('{"type":null}\n'),
        { answer: 'Hello' },
        garbage('}}}\n'),
      )
      const { events, types, result, notices, broken, alive } = await stage.see({ prompt })
      const isUnknownTold = setup.overlooksKinds === undefined
      const forPeople = events.filter((event) => event.type === 'notice' && !event.isTechnical)
      expect({ types, finalOutput: result.finalOutput, notices, forPeople, broken, alive }).toEqual({
        types: `started ${'notice '.repeat(isUnknownTold ? 6 : 4)}output notice complete`,
        finalOutput: 'Hello',
        notices: [
          'Warning: slow disk',
          '{"half":',
          '[1, "two", null]',
          'red \u0007',
          ...(isUnknownTold ? [expect.stringContaining('answer from the future'), expect.any(String)] : []),
          '}}}',
        ],
        forPeople: [],
        broken: [],
        alive: [],
      })
    })

    it('may break the shapes it usually has', async ({ stage }) => {
      const kinds = ['assistant', 'user', 'stream_event', 'item.completed', 'turn.failed', 'message', 'tool_use']
      const others = ['text', 'step_finish', 'error', 'message_update', 'message_end', 'turn_end', 'tool_execution_end']
      const lines = [...kinds, ...others].map((type) => `${JSON.stringify({ type })}\n`)
      const prompt = stage.prompt(START, { print: lines.join('') }, { misshape: true }, { answer: 'Hello' })
      const { result, broken } = await stage.see({ prompt })
      expect({ isError: result.isError, broken }).toEqual({ isError: expect.any(Boolean), broken: [] })
    })

    itIfEnding('may go on after the final word', async ({ stage }) => {
      const prompt = stage.prompt(START, { answer: 'Hello' }, { print: 'Bye.\n{"type":"goodbye"}\n' })
      const { result, notices, broken } = await stage.see({ prompt })
      expect({ finalOutput: result.finalOutput, notices, broken }).toEqual({
        finalOutput: 'Hello',
        notices: ['Bye.', expect.stringContaining('goodbye')],
        broken: [],
      })
    })

    it.skipIf(setup.warmCommand)('may hold two final words: the later one counts', async ({ stage }) => {
      const prompt = stage.prompt(START, { answer: 'First.' }, START, { answer: 'Second.' })
      const { types, result, broken } = await stage.see({ prompt })
      expect({ types, finalOutput: result.finalOutput, broken }).toEqual({
        types: 'started output complete',
        finalOutput: expect.stringMatching(/Second\.$/),
        broken: [],
      })
    })

    it('may leave a tool open: it is closed', async ({ stage }) => {
      const tools: Step[] = setup.tellsFinishedTools ? [] : [{ tool: { id: 'open', command: 'sleep 9' } }]
      const { events, broken } = await stage.see({ prompt: stage.prompt(START, ...tools, { answer: 'Hello' }) })
      expect({ broken, closed: events.filter(({ type }) => type === 'tool_result') }).toMatchObject({
        broken: [],
        closed: tools.map(() => ({ toolId: idOf('open'), toolName: setup.shellTool, isError: true })),
      })
    })

    it('may come late to a slow consumer: reading does not wait', async ({ stage }) => {
      const times = 1_000
      const say = Array.from({ length: times }, (_, index) => `${index} ${'x'.repeat(1_000)}\n`)
      const prompt = stage.prompt(START, { say }, { touch: 'done' }, { answer: '.' })
      const { output, broken } = await stage.see(
        { prompt },
        { onEvent: () => until(() => existsSync(join(stage.workingDir, 'done'))) },
      )
      const numbers = output.match(/^\d+(?= )/gm)?.map(Number)
      expect({ numbers, broken }).toEqual({ numbers: Array.from({ length: times }, (_, index) => index), broken: [] })
    })

    it('may be a very long line', async ({ stage }) => {
      const { result, output } = await stage.see({ prompt: stage.prompt(START, { answer: 'x'.repeat(4 * MIB) }) })
      expect([result.finalOutput?.length, output.length]).toEqual([4 * MIB, 4 * MIB])
    })

    it('may not be one endless line', async ({ stage }) => {
      const backend = stage.backend({}, { limits: { lineBytes: MIB, totalBytes: 64 * MIB } })
      const prompt = stage.prompt(START, { printOneLineOf: 8 * MIB })
      const { result, broken, alive } = await stage.see({ prompt }, { backend })
      const message = 'The agent printed more than 1 MiB on one line and was stopped.'
      expect({ failure: result.failure, broken, alive }).toEqual({
        failure: { reason: 'no_result', message, report: message, isLasting: true },
        broken: [],
        alive: [],
      })
    })

    it('may not be without end', async ({ stage }) => {
      const backend = stage.backend({}, { limits: { lineBytes: MIB, totalBytes: 3 * MIB } })
      const prompt = stage.prompt(START, { sayForEver: 'and on '.repeat(10_000) })
      const { result, broken, alive } = await stage.see({ prompt }, { backend })
      const what = setup.warmCommand === undefined ? 'in total' : 'in one turn'
      const message = `The agent printed more than 3 MiB ${what} and was stopped.`
      expect({ failure: result.failure, broken, alive }).toEqual({
        failure: { reason: 'no_result', message, report: message, isLasting: true },
        broken: [],
        alive: [],
      })
    })

    itOfProcess('counts though the agent never read a large prompt', async ({ stage }) => {
      stage.leaveAnswer('I did not listen.')
      const backend = stage.backend({ cliPath: agentPath('deaf-agent.sh') })
      const { result, broken } = await stage.see({ prompt: 'x'.repeat(1_000_000) }, { backend })
      expect({ finalOutput: result.finalOutput, broken }).toEqual({ finalOutput: 'I did not listen.', broken: [] })
    })
  })
}
