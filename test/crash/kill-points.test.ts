// The gateway is killed at every step of a message's walk. The channel's own log shows what people saw: only the answers,
// each once and in order.

import { it } from 'vitest'
import type { Step } from '../../src/turns/types.js'
import { describeOnEngines, nothingLeft, WITHIN_10_SECONDS } from './crash-stage.js'

const CONVERSATIONS = ['north', 'south']
const STEPS: Step[] = ['accepted', 'claimed', 'streaming', 'finished', 'committed', 'sent']

describeOnEngines('that is killed', (setUp, engine) => {
  it.for(STEPS)('when a message is %s leaves no process, and every message is answered once', async (step, context) => {
    const { expect } = context
    const stage = await setUp(context)
    const { server } = stage
    for (const number of [1, 2, 3]) for (const address of CONVERSATIONS) server.say(address, `${address}-${number}`)

    const killed = stage.start({ signalAt: ['SIGKILL', step, 1] })
    expect(await killed.ended).toEqual('SIGKILL')
    const hadAgents = stage.journal().length > 0
    await expect.poll(() => stage.alive(), WITHIN_10_SECONDS).toEqual([])

    const next = stage.start()
    await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())
    expect({
      end: await stage.stop(next),
      alive: stage.alive(),
      answers: stage.answers(),
      hasRepeated: server.repeated().length > 0,
      repeatedUntold: server.repeated().filter((key) => !server.tellsOfEarlier(key)),
      hadAgents,
      atOnceInOneSession: stage.journal().filter(({ isAlone }) => !isAlone),
      leftovers: await stage.leftovers(),
    }).toEqual({
      end: 0,
      alive: [],
      answers: stage.expectedAnswers(),
      // Between sending and recording it, nobody can know; the channel recognises the key.
      hasRepeated: step === 'sent',
      repeatedUntold: [],
      hadAgents: !['accepted', 'claimed'].includes(step),
      atOnceInOneSession: [],
      leftovers: nothingLeft(engine),
    })
  })

  it('in mid-stream continues in the same session, and tells the agent', async (context) => {
    const { expect } = context
    const stage = await setUp(context)
    for (const text of ['first', 'second', 'third']) stage.server.say('north', text)

    // In the turn that begins the session, then in one that continues it.
    await stage.start({ signalAt: ['SIGKILL', 'streaming', 1] }).ended
    await stage.start({ signalAt: ['SIGKILL', 'streaming', 2] }).ended
    stage.start()
    await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())

    const [{ sessionId } = { sessionId: '' }] = stage.journal()
    const turn = { sessionId, isResumed: true, isTold: false, isAlone: true }
    expect(stage.journal()).toMatchObject([
      { ...turn, name: 'first', isResumed: false, heard: [] },
      { ...turn, name: 'first', isTold: true, heard: ['first'] },
      { ...turn, name: 'second', heard: ['first', 'first'] },
      { ...turn, name: 'second', isTold: true, heard: ['first', 'first', 'second'] },
      { ...turn, name: 'third', heard: ['first', 'first', 'second', 'second'] },
    ])
  })

  it('together with its guardian leaves its agents to the next gateway, which ends them before it continues', async (context) => {
    const { expect } = context
    const stage = await setUp(context)
    stage.server.say('north', 'first hold')
    const killed = stage.start()
    await expect.poll(() => stage.streaming()).toEqual(['north'])
    await stage.killWithGuardian(killed)
    const left = stage.alive()

    const next = stage.start()
    await expect.poll(() => stage.journal().length).toEqual(2)
    stage.go()
    await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())
    expect({
      left: left.length,
      journal: stage.journal(),
      end: await stage.stop(next),
      alive: stage.alive(),
    }).toMatchObject({
      // The agent and its tool.
      left: 2,
      journal: [{ isTold: false }, { isTold: true, isAlone: true }],
      end: 0,
      alive: [],
    })
  })
})
