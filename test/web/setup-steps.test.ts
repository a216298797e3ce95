import { expect, it } from 'vitest'
import type { Agent, Project } from '../../src/client/aetheel-client.js'
import { isDone, isFirstStart, nextStep, type SetupState, STEPS } from '../../web/src/setup-steps.js'

const NOTHING: SetupState = {
  agents: [{ provider: 'pi', status: 'unavailable' } as Agent],
  projects: [],
  channels: ['terminal', 'http', 'web'],
  answered: 0,
}
const AGENT = { provider: 'codex', status: 'available' } as Agent
const PROJECT = { id: 'shop' } as Project

it('come one after the other, each checked off once it is done', () => {
  const withAgent = { ...NOTHING, agents: [...NOTHING.agents, AGENT] }
  const withProject = { ...withAgent, projects: [PROJECT] }
  const withAnswer = { ...withProject, answered: 1 }
  const withChannel = { ...withAnswer, channels: [...NOTHING.channels, 'discord'] }
  expect([NOTHING, withAgent, withProject, withAnswer, withChannel].map(nextStep)).toEqual([...STEPS, undefined])
})

it('do not count an agent that is known to be logged out', () => {
  const agents = (['logged-out', 'unknown', 'logged-in'] as const).map(
    (state) => ({ ...AGENT, login: { state } }) as Agent,
  )
  expect(agents.map((agent) => isDone('agent', { ...NOTHING, agents: [agent] }))).toEqual([false, true, true])
})

it('may be done in another order', () => {
  const state = { ...NOTHING, channels: ['whatsapp'] }
  expect([isDone('channel', state), nextStep(state)]).toEqual([true, 'agent'])
})

it('are shown on Home until there is an agent, and a channel or an answer', () => {
  const agents = [AGENT]
  const states = [{}, { channels: ['discord'] }, { agents }, { agents, channels: ['discord'] }, { agents, answered: 1 }]
  expect(states.map((state) => isFirstStart({ ...NOTHING, ...state }))).toEqual([true, true, true, false, false])
})
