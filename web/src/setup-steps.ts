// Which setup steps are done, and which are not. Pure.

import type { Agent, Health, Project } from '../../src/client/aetheel-client.js'

/** What decides whether a step is done. */
export interface SetupState {
  agents: Agent[]
  projects: Project[]
  channels: Health['channels']
  /** The number of answered runs. */
  answered: number
}

export const STEPS = ['agent', 'project', 'question', 'channel'] as const
export type Step = (typeof STEPS)[number]

/** Channels for people. The others are for programs, and for this page. */
const CHAT_CHANNELS = ['discord', 'whatsapp']

const IS_DONE: Record<Step, (state: SetupState) => boolean> = {
  agent: ({ agents }) => agents.some(({ status, login }) => status === 'available' && login?.state !== 'logged-out'),
  project: ({ projects }) => projects.length > 0,
  question: ({ answered }) => answered > 0,
  channel: ({ channels }) => channels.some((name) => CHAT_CHANNELS.includes(name)),
}

export function isDone(step: Step, state: SetupState): boolean {
  return IS_DONE[step](state)
}

/** The first step that is not done. */
export function nextStep(state: SetupState): Step | undefined {
  return STEPS.find((step) => !isDone(step, state))
}

/** Whether Home shows the steps. With an agent, one answer or one chat channel is enough to hide them. */
export function isFirstStart(state: SetupState): boolean {
  return !isDone('agent', state) || !(isDone('channel', state) || isDone('question', state))
}
