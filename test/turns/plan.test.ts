import { expect, it } from 'vitest'
import { loadConfig } from '../../src/config.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import {
  type BarePlan,
  hidingSecrets,
  type PlanDependencies,
  planTurn,
  type StageDependencies,
} from '../../src/turns/plan.js'
import type { RunTurn, Work } from '../../src/turns/types.js'
import { succeeded } from '../kit/scripted-backend.js'

const SECRET = 'sk-0123456789'

it('a command of a cron job that was cut off is done again by its name', () => {
  const message = { kind: 'cron', options: { job: 'backup', command: ['make'] } }
  const work = { conversation: {}, message, wasInterrupted: true } as Work
  const config = loadConfig({ HOME: '/home/ada' })
  expect(() => planTurn(work, { config } as PlanDependencies)).toThrow(
    'The gateway stopped while the command ran, so it was cut off. Check what it already did, then run it again with: aetheel cron run backup.',
  )
})

it('a run says no known secret, whoever says it', async () => {
  const session = { conversationId: 'c', backend: 'claude', sessionId: `s-${SECRET}`, directory: '/srv' }
  const kept: unknown[] = []
  const events: unknown[] = []
  const run = hidden(async (_request, _signal, listener) => {
    await listener.keepSession(session)
    listener.onEvent({ type: 'notice', content: `Waits: ${SECRET}`, timestamp: 1 })
    listener.onEvent({ type: 'complete', result: succeeded(SECRET), timestamp: 1 })
    return { result: succeeded(SECRET), notes: [`Refused: ${SECRET}`], session }
  })
  const outcome = await run({ runId: 'r' }, new AbortController().signal, {
    onEvent: (event) => events.push(event),
    keepSession: async (begun) => void kept.push(begun),
  })
  const result = succeeded('[secret]')
  const hiddenSession = { ...session, sessionId: 's-[secret]' }
  expect([events, kept, outcome]).toEqual([
    [
      { type: 'notice', content: 'Waits: [secret]', timestamp: 1 },
      { type: 'complete', result, timestamp: 1 },
    ],
    [hiddenSession],
    { result, notes: ['Refused: [secret]'], session: hiddenSession },
  ])
})

it('a run that breaks tells no known secret', async () => {
  const run = hidden(async () => {
    throw new Error(`It broke at ${SECRET}.`)
  })
  const listener = { onEvent: () => {}, keepSession: async () => {} }
  await expect(run({ runId: 'r' }, new AbortController().signal, listener)).rejects.toThrow('It broke at [secret].')
})

function hidden(run: RunTurn): RunTurn {
  const dependencies = { scrubber: createScrubber([SECRET]) } as unknown as StageDependencies
  return hidingSecrets(run, {} as Work, {} as BarePlan, dependencies)
}
