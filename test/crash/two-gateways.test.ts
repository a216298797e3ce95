// Two gateways work on one database. When the lease of one ends, the other takes over what it abandoned.

import { it } from 'vitest'
import type { KillableGateway } from '../kit/killable-gateway.js'
import { BEFORE_A_LEASE_ENDS, type CrashStage, describeOnEngines } from './crash-stage.js'

const environment = { LEASE_MS: '2000' }

describeOnEngines(
  'beside another one',
  (setUp) => {
    it('takes over the turn of a killed gateway', async (context) => {
      const { expect } = context
      const stage = await setUp(context)
      const { worker, other } = await holdTurn(stage, context)

      worker.child.kill('SIGKILL')
      await expect.poll(() => stage.journal().length, BEFORE_A_LEASE_ENDS).toEqual(2)
      stage.go()
      await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())

      const [{ sessionId } = { sessionId: '' }] = stage.journal()
      expect({ repeated: stage.server.repeated(), journal: stage.journal() }).toMatchObject({
        repeated: [],
        journal: [
          { sessionId, ownerId: await worker.started, isTold: false },
          { sessionId, ownerId: await other.started, isTold: true },
        ],
      })
    })

    it('takes over from a frozen gateway, whose late result then changes nothing', async (context) => {
      const { expect } = context
      const stage = await setUp(context)
      const { worker, other } = await holdTurn(stage, context)

      worker.child.kill('SIGSTOP')
      await expect.poll(() => stage.journal().length, BEFORE_A_LEASE_ENDS).toEqual(2)
      stage.go(await worker.started)
      await expect.poll(() => stage.agents().length).toEqual(1)
      worker.child.kill('SIGCONT')
      const end = await stage.stop(worker)
      const early = [...stage.server.received]
      stage.go()
      stage.server.say('north', 'second')
      await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())

      const [{ sessionId } = { sessionId: '' }] = stage.journal()
      expect({ end, early, received: stage.server.received.length, journal: stage.journal() }).toMatchObject({
        end: 0,
        early: [],
        received: 2,
        journal: [
          { name: 'first', sessionId, ownerId: await worker.started },
          { name: 'first', sessionId, ownerId: await other.started },
          { name: 'second', sessionId, ownerId: await other.started },
        ],
      })
    })

    it('answers what a frozen gateway had claimed, which then starts no agent for it', async (context) => {
      const { expect } = context
      const stage = await setUp(context)
      const frozen = stage.start({ environment, signalAt: ['SIGSTOP', 'claimed', 1] })
      await frozen.started
      stage.server.say('north', 'first')
      await expect.poll(() => stage.isFrozen(frozen)).toEqual(true)

      const other = stage.start({ environment })
      await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())
      frozen.child.kill('SIGCONT')
      expect({
        end: await stage.stop(frozen),
        received: stage.server.received.length,
        journal: stage.journal(),
      }).toMatchObject({ end: 0, received: 1, journal: [{ name: 'first', ownerId: await other.started }] })
    })
  },
  ['postgres'],
)

/** Two gateways, one of them working on a turn that does not end. */
async function holdTurn(
  stage: CrashStage,
  { expect }: { expect: typeof import('vitest').expect },
): Promise<{ worker: KillableGateway; other: KillableGateway }> {
  const gateways = [stage.start({ environment }), stage.start({ environment })] as const
  const [firstId] = await Promise.all(gateways.map(({ started }) => started))
  stage.server.say('north', 'first hold')
  await expect.poll(() => stage.streaming()).toEqual(['north'])
  const [one, two] = gateways
  return stage.journal()[0]?.ownerId === firstId ? { worker: one, other: two } : { worker: two, other: one }
}
