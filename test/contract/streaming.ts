import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { START } from './agent-script.js'
import type { ContractPart } from './backend-contract.js'
import { until } from '../kit/waiting.js'

export function describeStreaming({ it, setup }: ContractPart): void {
  describe('the streaming callback', () => {
    const hello = { isError: false, responseText: 'Hello', sessionId: setup.newSession }

    it('gets the text in order, one call at a time', async ({ stage }) => {
      const calls = { text: '', running: 0, most: 0 }
      const say = Array.from({ length: 200 }, (_, index) => `${index} words\n`)
      const prompt = stage.prompt(START, { say }, { answer: 'Hello' })
      const result = await stage.backend().execute(prompt, '', undefined, async (text) => {
        calls.running += 1
        calls.most = Math.max(calls.most, calls.running)
        await sleep(1)
        calls.text += text
        calls.running -= 1
      })
      const { output } = await stage.see({ prompt })
      expect({ result, calls }).toMatchObject({
        result: { isError: false },
        calls: { text: output, running: 0, most: 1 },
      })
    })

    it('may be so slow that the agent is done before its first call returns', async ({ stage }) => {
      const say = Array.from({ length: 1_000 }, () => `${'x'.repeat(1_000)}\n`)
      const prompt = stage.prompt(
        START,
        { say },
        { touch: 'done' },
        { tool: { command: 'ls', output: '' } },
        { answer: 'Hello' },
      )
      let streamed = ''
      const result = await stage.backend().execute(prompt, '', undefined, async (text) => {
        await until(() => existsSync(join(stage.workingDir, 'done')))
        streamed += text
      })
      expect({ result, end: streamed.slice(-7) }).toEqual({ result: hello, end: 'x\nHello' })
    })

    it('may never return', async ({ stage }) => {
      const result = await stage
        .backend()
        .execute(stage.prompt(START, { answer: 'Hello' }), '', undefined, () => new Promise<void>(() => {}))
      expect(result).toEqual(hello)
    })

    it.for([
      ['reject', () => Promise.reject(new Error('The chat is gone'))],
      [
        'throw',
        () => {
          throw new Error('The chat is gone')
        },
      ],
    ] as const)('may %s: a warning, once', async ([, onStream], { stage }) => {
      const steps = [{ say: 'Let me look.' }, { tool: { command: 'ls', output: 'a' } }] as const
      const prompt = stage.prompt(START, ...steps, { waitFor: 'go-on' }, { answer: 'Hello' })
      let calls = 0
      const result = await stage.backend().execute(prompt, '', undefined, async () => {
        calls += 1
        if (calls === 1) stage.touch('go-on')
        return onStream()
      })
      expect({ result, calls, warnings: stage.log.warned }).toEqual({
        result: hello,
        calls: 2,
        warnings: expect.arrayContaining(['stream.callback-failed']),
      })
    })
  })
}
