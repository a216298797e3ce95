import { describe, expect } from 'vitest'
import { START } from './agent-script.js'
import type { ContractPart } from './backend-contract.js'

const usageWith = (cacheReadTokens: number) => ({
  inputTokens: 100 - cacheReadTokens,
  outputTokens: 12,
  cacheReadTokens,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  totalTokens: 112,
})

export function describeAnswers({ it, setup }: ContractPart): void {
  const { toolId: idOf = (id: string) => id, toolInput: inputOf = (command: string) => ({ command }) } = setup
  const usage = usageWith(setup.hidesCache === undefined ? 30 : 0)
  const isEnding = setup.withoutProcess === undefined && setup.warmCommand === undefined

  describe('an answer', () => {
    it('comes as started, output and complete', async ({ stage }) => {
      const { events, broken, alive } = await stage.see({ prompt: stage.prompt(START, { answer: 'Hello' }) })
      const started = { type: 'started', sessionId: setup.newSession, timestamp: expect.any(Number) }
      const output = { type: 'output', content: 'Hello', stream: 'stdout', timestamp: expect.any(Number) }
      const result = {
        isError: false,
        finalOutput: 'Hello',
        sessionId: setup.newSession,
        ...(isEnding && { exitCode: 0 }),
        durationMs: expect.any(Number),
        usage,
      }
      const lost = stage.log.warned.filter((message) => message.startsWith('live.'))
      expect({ events, broken, alive, lost }).toMatchObject({
        events: [started, output, { type: 'complete', result, timestamp: expect.any(Number) }],
        broken: [],
        alive: [],
        lost: [],
      })
    })

    it('is heard while it is written', async ({ stage }) => {
      const prompt = stage.prompt(START, { say: ['Once ', 'upon'] }, { waitFor: 'heard' }, { answer: ' a time' })
      const { output } = await stage.see(
        { prompt },
        { onEvent: ({ type }) => type === 'output' && stage.touch('heard') },
      )
      expect(output.replace('\n\n', '')).toBe('Once upon a time')
    })

    it('stands apart from what was said before a tool', async ({ stage }) => {
      const tool = { command: 'ls', output: 'a.txt' }
      const prompt = stage.prompt(START, { say: 'Let me look.' }, { tool }, { answer: 'One file.' })
      const { output, result, broken } = await stage.see({ prompt })
      expect({ output, finalOutput: result.finalOutput, broken }).toEqual({
        output: 'Let me look.\n\nOne file.',
        finalOutput: 'One file.',
        broken: [],
      })
    })

    it.for(['', '   ', '\n\n', ' \n indented\n\t', 'Grüße 🦆 \u2028 "\\" \0 end', '{"type":"result"}'])(
      'is returned character for character: %j',
      async (answer, { stage }) => {
        const result = await stage.backend().execute(stage.prompt(START, { answer }), '')
        expect(result).toEqual({ isError: false, responseText: answer, sessionId: setup.newSession })
      },
    )

    it('shows the input and result of a tool', async ({ stage }) => {
      const prompt = stage.prompt(
        START,
        { tool: { id: 'one', command: 'ls', output: 'a.txt' } },
        { tool: { id: 'two', command: 'false', output: 'no', isError: true } },
        { answer: 'Done' },
      )
      const { events } = await stage.see({ prompt })
      const toolName = setup.shellTool
      expect(events.filter(({ type }) => type.startsWith('tool'))).toMatchObject([
        { type: 'tool_use', toolId: idOf('one'), toolName, toolInput: inputOf('ls') },
        { type: 'tool_result', toolId: idOf('one'), toolName, content: 'a.txt', isError: false },
        { type: 'tool_use', toolId: idOf('two'), toolName, toolInput: inputOf('false') },
        { type: 'tool_result', toolId: idOf('two'), toolName, content: 'no', isError: true },
      ])
    })

    it.runIf(setup.tellsThoughts)('keeps thoughts out of what a person sees', async ({ stage }) => {
      const { types, output } = await stage.see({ prompt: stage.prompt(START, { think: 'Hm.' }, { answer: 'Hello' }) })
      expect({ types, output }).toEqual({ types: 'started thinking output complete', output: 'Hello' })
    })

    it('counts the tokens of its own turn, even in a session that had one before', async ({ stage }) => {
      const first = await stage.see({ prompt: stage.prompt(START, { answer: 'Hello' }) })
      const { sessionUsage, sessionId = '' } = first.result
      const prompt = stage.prompt({ start: sessionId }, { answer: 'Hello again' })
      const second = await stage.see({ prompt, sessionId, ...(sessionUsage && { sessionUsage }) })
      expect([first.result.usage, second.result.usage]).toEqual([usage, usage])
    })

    it.for(Object.entries(setup.warmCommand === undefined ? setup.documents : {}))(
      'in the shape of a document works in run and in execute: %s',
      async ([, print], { stage }) => {
        const prompt = stage.prompt({ print })
        const { result, output, broken } = await stage.see({ prompt })
        const executed = await stage.backend().execute(prompt, '')
        expect({ output, broken, finalOutput: result.finalOutput, sessionId: result.sessionId, executed }).toEqual({
          output: 'Hello',
          broken: [],
          finalOutput: 'Hello',
          sessionId: setup.knownSession,
          executed: { isError: false, responseText: 'Hello', sessionId: setup.knownSession },
        })
      },
    )
  })
}
