// What is there and what is not yet, of all that a gateway needs. Pure.

import type { Agent, Health, Project } from '../../src/client/aetheel-client.js'

/** What the steps are judged by. */
export interface SetupState {
  agents: Agent[]
  projects: Project[]
  channels: Health['channels']
  /** How many runs were answered. */
  answered: number
}

export const STEPS = ['agent', 'project', 'question', 'channel'] as const
export type Step = (typeof STEPS)[number]

/** Where people write to it: the rest are for programs, and this page. */
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

/** What to do now. */
export function nextStep(state: SetupState): Step | undefined {
  return STEPS.find((step) => !isDone(step, state))
}

/** Whether one who opens the page must be told what to do: later, this page is as good a place to write as any. */
export function isFirstStart(state: SetupState): boolean {
  return !isDone('agent', state) || !(isDone('channel', state) || isDone('question', state))
}
