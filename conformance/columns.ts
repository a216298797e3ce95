/** What is tested: every agent as one process per turn, and the other modes that some support. */
import { checkMachine } from '../test/kubernetes/machine.js'
import { agentOf, agents, formerPi, type Agent } from './agents.js'
import type { Case } from './case.js'
import { type Expectation, expectations, liveExpectations, opencodeServerExpectation } from './expectations.js'
import { liveCases } from './live/live-cases.js'
import { openLive } from './live/live-place.js'
import { loginCases } from './login-cases.js'
import { newcomer } from './newcomer-case.js'
import { type OpenPlace, openOneshot } from './place.js'
import { podCases } from './pod-cases.js'
import { openPod } from './pod-place.js'
import { serverCases } from './server/server-cases.js'
import { openManaged } from './server/server-place.js'

/** How the agent runs: one process per turn, a warm process, a warm server, or one process per turn in a pod. */
export const modes = ['oneshot', 'live', 'server', 'pod'] as const

export type Mode = (typeof modes)[number]

export interface Column {
  agent: Agent
  mode: Mode
  /** Follows package and version in the document. */
  manner: string
  expected: Expectation
  openPlace: OpenPlace
  /** Which of the common cases run here; absent, all. */
  onlyCases?: readonly string[]
  /** Additional cases; the same list in all columns of a mode, or none. */
  extraCases: Case[]
  /** Contract: rejects with whatever this machine lacks. */
  checkMachine?(): Promise<void>
}

const oneshotCases = [...loginCases, newcomer]

const oneshot = agents.map((agent): Column => ({
  agent,
  mode: 'oneshot',
  manner: 'one process per turn',
  expected: expectations[agent.name],
  openPlace: openOneshot,
  extraCases: oneshotCases,
}))

const live = (['claude', 'codex', 'gemini', 'pi'] as const).map((name): Column => ({
  agent: agentOf(name),
  mode: 'live',
  manner: 'a process that stays for the next turns',
  expected: liveExpectations[name],
  openPlace: openLive(),
  extraCases: liveCases,
}))

const opencodeServer: Column = {
  agent: agentOf('opencode'),
  mode: 'server',
  manner: 'a server that we start and supervise, for all turns',
  expected: opencodeServerExpectation,
  openPlace: openManaged(),
  extraCases: serverCases,
}

const pod = agents
  .filter(({ name }) => name === 'claude' || name === 'codex')
  .map((agent): Column => ({
    agent,
    mode: 'pod',
    manner: 'one process per turn in a pod, through kubectl',
    expected: { ...expectations[agent.name], refusesUntrusted: true },
    openPlace: openPod,
    extraCases: podCases,
    checkMachine,
  }))

/** The cases that would break first if it diverged from its successor. */
const former: Pick<Column, 'agent' | 'onlyCases' | 'extraCases'> = {
  agent: formerPi,
  onlyCases: ['tool-call', 'resume', 'unknown-session', 'cancel', 'system-prompt', 'untrusted'],
  extraCases: [],
}

const ofPi = (mode: Mode): Column[] =>
  [...oneshot, ...live]
    .filter(({ agent, mode: own }) => agent.name === 'pi' && own === mode)
    .map((column) => ({ ...column, ...former }))

export const columns: Column[] = [...oneshot, ...ofPi('oneshot'), ...live, ...ofPi('live'), opencodeServer, ...pod]

/** The agent, with its mode unless that is the default. */
export function titleOf({ agent, mode }: Column): string {
  return mode === 'oneshot' ? agent.title : `${agent.title} ${mode}`
}

export function casesOf({ onlyCases, extraCases }: Column, cases: Case[]): Case[] {
  return [...cases.filter(({ name }) => onlyCases?.includes(name) ?? true), ...extraCases]
}
