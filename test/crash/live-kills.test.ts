// Warm agents and gateways are killed at random while people keep writing.
// LIVE_KILLS says how many times; LIVE_SEED, which is printed, repeats the choices of an earlier run.

import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { it } from 'vitest'
import { endNow } from '../kit/living-processes.js'
import { describeOnEngines, nothingLeft, WITHIN_10_SECONDS } from './crash-stage.js'
import { randomNumbers } from './random-numbers.js'

const KILLS = Number(process.env['LIVE_KILLS'] ?? 5)
const SEED = Number(process.env['LIVE_SEED'] ?? Date.now() % 1_000_000)
const CONVERSATIONS = ['north', 'east', 'south', 'west']
const GATEWAYS_OF_ALL = 0.25
/** A message interrupted eleven times is given up, so now and then all are let through. */
const CALM_EVERY = 10
/** Fewer than conversations: now and then one makes room, or a turn gets its own process. */
const environment = { AGENT_MODE: 'live', LIVE_MAX_PROCESSES: '3', LIVE_SPARE: 'true' }

describeOnEngines('with warm agents', (setUp, engine) => {
  const timeout = 120_000 + KILLS * 10_000
  it(`after ${KILLS} kills has left no process, and answered every message once`, { timeout }, async (context) => {
    const { expect } = context
    const stage = await setUp(context)
    const { server } = stage
    const random = randomNumbers(SEED)
    console.info(`${KILLS} kills on ${engine} with LIVE_SEED=${SEED}`)

    const counts = { agents: 0, gateways: 0 }
    let messages = 0
    let gateway = stage.start({ environment })
    const killGateway = async (): Promise<void> => {
      // Most are killed while working, some while starting.
      if (random() < 0.8) await gateway.started
      gateway.child.kill('SIGKILL')
      expect(await gateway.ended).toEqual('SIGKILL')
      counts.gateways += 1
      gateway = stage.start({ environment })
    }
    const isDone = (): boolean => isDeepStrictEqual(stage.answers(), stage.expectedAnswers())
    const killAgent = async (): Promise<void> => {
      await expect.poll(() => stage.warmAgents().length > 0 || isDone()).toEqual(true)
      const agents = stage.warmAgents()
      const agent = agents[Math.floor(random() * agents.length)]
      if (agent !== undefined && endNow(agent)) counts.agents += 1
    }

    while (counts.agents + counts.gateways < KILLS) {
      for (const address of CONVERSATIONS) {
        if (random() < 0.5) server.say(address, `${address}-${(messages += 1)}`)
      }
      await sleep(random() * 200)
      await (random() < GATEWAYS_OF_ALL ? killGateway() : killAgent())
      if ((counts.agents + counts.gateways) % CALM_EVERY === 0) {
        await expect.poll(isDone).toEqual(true)
      }
    }

    await expect.poll(() => stage.answers()).toEqual(stage.expectedAnswers())
    expect(await stage.stop(gateway)).toEqual(0)
    await expect.poll(() => stage.alive(), WITHIN_10_SECONDS).toEqual([])
    const killed = `${counts.agents} agents and ${counts.gateways} gateways killed`
    console.info(`${engine}: ${killed}, ${server.said.length} messages, ${stage.journal().length} turns begun`)
    expect({
      answers: stage.answers(),
      atOnceInOneSession: stage.journal().filter(({ isAlone }) => !isAlone),
      leftovers: await stage.leftovers(),
    }).toEqual({ answers: stage.expectedAnswers(), atOnceInOneSession: [], leftovers: nothingLeft(engine) })
  })
})
