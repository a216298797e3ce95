import { it } from 'vitest'
import { BEFORE_A_LEASE_ENDS, describeOnEngines, nothingLeft } from './crash-stage.js'

describeOnEngines('that is told to stop in mid-turn', (setUp, engine) => {
  it('lets the turns finish, and sends their answers', async (context) => {
    const { expect } = context
    const stage = await setUp(context)
    const { child, started, ended } = stage.start()
    await started
    for (const address of ['north', 'south', 'west']) stage.server.say(address, `${address} hold`)
    await expect.poll(() => stage.streaming()).toEqual(['north', 'south', 'west'])

    child.kill('SIGTERM')
    stage.go()
    expect({
      end: await ended,
      alive: stage.alive(),
      answers: stage.answers(),
      leftovers: await stage.leftovers(),
    }).toEqual({ end: 0, alive: [], answers: stage.expectedAnswers(), leftovers: nothingLeft(engine) })
  })

  it('ends the turn at the deadline and releases the message; the next gateway continues at once', async (context) => {
    const { expect } = context
    const stage = await setUp(context)
    const drainTimeoutMs = 400
    const gateway = stage.start({ environment: { DRAIN_TIMEOUT_MS: String(drainTimeoutMs) } })
    stage.server.say('north', 'first hold')
    await expect.poll(() => stage.streaming()).toEqual(['north'])

    const toldAt = performance.now()
    const end = await stage.stop(gateway)
    const hasWaited = performance.now() - toldAt >= drainTimeoutMs
    const [alive, early] = [stage.alive(), [...stage.server.received]]
    stage.go()
    stage.start()
    await expect.poll(() => stage.answers(), BEFORE_A_LEASE_ENDS).toEqual(stage.expectedAnswers())

    const [{ sessionId } = { sessionId: '' }] = stage.journal()
    expect({ end, hasWaited, alive, early, journal: stage.journal() }).toMatchObject({
      end: 0,
      hasWaited: true,
      alive: [],
      early: [],
      journal: [
        { sessionId, isResumed: false, isTold: false },
        { sessionId, isResumed: true, isTold: true },
      ],
    })
  })
})
