// The gateway is killed at random times, many times in a row, while people keep writing.
// CRASH_KILLS says how many times; CRASH_SEED, which is printed, repeats the times of an earlier run.

import { setTimeout as sleep } from 'node:timers/promises'
import { it } from 'vitest'
import type { Step } from '../../src/turns/types.js'
import { describeOnEngines, nothingLeft, WITHIN_10_SECONDS } from './crash-stage.js'
import { randomNumbers } from './random-numbers.js'

const KILLS = Number(process.env['CRASH_KILLS'] ?? 3)
const SEED = Number(process.env['CRASH_SEED'] ?? Date.now() % 1_000_000)
const CONVERSATIONS = ['north', 'east', 'south', 'west']
/** Half of the gateways die at one of these, in windows that a random time rarely hits; the others at a random time. */
const STEPS: Step[] = ['accepted', 'claimed', 'streaming', 'finished', 'committed', 'sent']
/** A message interrupted eleven times is given up, so now and then all are let through. */
const CALM_EVERY = 8

describeOnEngines('that is killed at random', (setUp, engine) => {
  const timeout = 120_000 + KILLS * 10_000
  it(`${KILLS} times in a row leaves no process, and answers every message once`, { timeout }, async (context) => {
    const { expect } = context
    const stage = await setUp(context)
    const { server } = stage
    const random = randomNumbers(SEED)
    console.info(`${KILLS} kills on ${engine} with CRASH_SEED=${SEED}`)

    for (let life = 1; life <= KILLS; life += 1) {
      const isCalm = life % CALM_EVERY === 0
      const step = STEPS[Math.floor(random() * STEPS.length * 2)]
      const { child, started, ended } = stage.start(
        step && !isCalm ? { signalAt: ['SIGKILL', step, 1 + Math.floor(random() * 4)] } : {},
      )
      // Most are killed while working, some while starting.
      if (random() < 0.8) await Promise.race([started, ended])
      if (isCalm) await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())
      for (const address of CONVERSATIONS) {
        if (random() < 0.5) server.say(address, `${address}-${life}`)
        await sleep(25 + random() * 175)
      }
      child.kill('SIGKILL')
      expect(await ended).toEqual('SIGKILL')
    }

    const last = stage.start()
    await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())
    expect(await stage.stop(last)).toEqual(0)
    await expect.poll(() => stage.alive(), WITHIN_10_SECONDS).toEqual([])
    const counts = `${server.said.length} messages, ${stage.journal().length} turns begun`
    console.info(`${engine}: ${counts}, ${server.repeated().length} replies sent again`)
    expect({
      answers: stage.answers(),
      atOnceInOneSession: stage.journal().filter(({ isAlone }) => !isAlone),
      leftovers: await stage.leftovers(),
    }).toEqual({ answers: stage.expectedAnswers(), atOnceInOneSession: [], leftovers: nothingLeft(engine) })
  })
})
