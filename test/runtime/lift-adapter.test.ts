import { describe, expect, it } from 'vitest'
import type { AgentEvent, BackendAdapter } from '../../src/backends/types.js'
import { liftAdapter } from '../../src/runtime/lift-adapter.js'
import { ScriptedBackend } from '../kit/scripted-backend.js'

async function see(execute: BackendAdapter['execute']): Promise<AgentEvent[]> {
  const { run } = liftAdapter({ name: () => 'own', validate: async () => true, execute }, risingClock())
  const events: AgentEvent[] = []
  const request = { prompt: 'hello', systemPrompt: 'be brief', sessionId: 'old' }
  for await (const event of run(request, new AbortController().signal)) events.push(event)
  return events
}

function risingClock(): () => number {
  let time = 0
  return () => (time += 1)
}

describe('an adapter that has only execute', () => {
  it('is called with what it understands of the request', async () => {
    const asked: unknown[] = []
    await see(async (prompt, systemPrompt, sessionId) => {
      asked.push(prompt, systemPrompt, sessionId)
      return { isError: false }
    })
    expect(asked).toEqual(['hello', 'be brief', 'old'])
  })

  it('streams while it works, and its answer completes the run', async () => {
    const events = await see(async (_prompt, _systemPrompt, _sessionId, onStream) => {
      await onStream?.('h')
      await onStream?.('i')
      return { isError: false, responseText: 'hi', sessionId: 'new' }
    })
    expect(events).toEqual([
      { type: 'output', content: 'h', stream: 'stdout', timestamp: 2 },
      { type: 'output', content: 'i', stream: 'stdout', timestamp: 3 },
      {
        type: 'complete',
        result: { isError: false, durationMs: 3, finalOutput: 'hi', sessionId: 'new' },
        timestamp: 5,
      },
    ])
  })

  it.each<[string, BackendAdapter['execute'], string]>([
    ['fails', async () => ({ isError: true, responseText: 'No credit' }), 'No credit'],
    ['fails without a word', async () => ({ isError: true }), 'The agent failed.'],
    ['rejects', async () => Promise.reject(new Error('Broken pipe')), 'Broken pipe'],
    [
      'throws',
      () => {
        throw new Error('Broken pipe')
      },
      'Broken pipe',
    ],
  ])('gives a failure as a value when it %s', async (_, execute, message) => {
    const failure = { reason: 'exit', message, report: message }
    expect(await see(execute)).toEqual([
      { type: 'error', content: message, reason: 'exit', timestamp: 3 },
      { type: 'complete', result: { isError: true, durationMs: 1, failure }, timestamp: 4 },
    ])
  })

  it('is over for us when it is cancelled, whatever it still says', async () => {
    const cancel = new AbortController()
    const execute: BackendAdapter['execute'] = async (_prompt, _systemPrompt, _sessionId, onStream) => {
      await onStream?.('h')
      cancel.abort()
      await onStream?.('i')
      return { isError: false, responseText: 'hi' }
    }
    const { run } = liftAdapter({ name: () => 'own', validate: async () => true, execute })
    const seen: unknown[] = []
    for await (const event of run({ prompt: 'hello' }, cancel.signal)) {
      seen.push(event.type === 'complete' ? event.result.failure?.reason : event.type)
    }
    expect(seen).toEqual(['output', 'error', 'cancelled'])
  })
})

it('leaves a backend as it is that can run', () => {
  const backend = new ScriptedBackend([])
  expect(liftAdapter(backend)).toBe(backend)
})
