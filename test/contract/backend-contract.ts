import { describe } from 'vitest'
import type { BackendName } from '../../src/backends/types.js'
import type { Step } from './agent-script.js'
import { describeAnswers } from './answers.js'
import { describeCalls } from './calls.js'
import { describeFailures } from './failures.js'
import { describeProcesses } from './processes.js'
import { describeReading } from './reading.js'
import { describeRunEnvironment } from './run-environment.js'
import { describeSessions } from './sessions.js'
import { type CreateBackend, type Stage, testOnStage } from './stage.js'
import { describeStreaming } from './streaming.js'
import { describeUntrusted } from './untrusted.js'
import type { TestAPI } from 'vitest'

/** What differs between the agents, beside what their `capabilities` say. */
export interface BackendSetup {
  name: BackendName
  create: CreateBackend
  /** As it stands in error sentences. */
  label: string
  /** The session the fake agent starts, and two that look like the CLI's own. */
  newSession: string
  knownSession: string
  otherSession: string
  /** Strings that are no session id of this CLI. */
  wrongSessions: string[]
  /** How the CLI says that it does not know a session. */
  unknownSession: Step[]
  /** Whether it then starts another one without a word, or a new one when it should not. */
  startsAnew: boolean
  /** Whether it has no turn limit of its own. */
  isCounted: boolean
  shellTool: string
  /** Whether a tool is told only once it is done. */
  tellsFinishedTools: boolean
  tellsThoughts: boolean
  /** Outputs of the gateway document: each alone is complete, and says `Hello` in `knownSession`. */
  documents: Record<string, string>
  /** What the CLI must be sent so that it takes this prompt as nothing but a prompt. */
  sent(prompt: string): string
  promptLimit?: string
  /** A variable of this agent's own, and one that is not. */
  ownVariable: string
  foreignVariable: string
}

export interface ContractPart {
  it: TestAPI<{ stage: Stage }>
  setup: BackendSetup
}

/** One suite for every backend: what is promised in src/backends/types.ts, held by fake agents of all bad manners. */
export function describeBackendContract(name: BackendName, setup: Omit<BackendSetup, 'name'>): void {
  const part: ContractPart = { it: testOnStage(name, setup.create), setup: { ...setup, name } }
  describe.concurrent(`${name}: the contract of a backend`, () => {
    describeAnswers(part)
    describeReading(part)
    describeStreaming(part)
    describeSessions(part)
    describeCalls(part)
    describeRunEnvironment(part)
    describeUntrusted(part)
    describeFailures(part)
    describeProcesses(part)
  })
}
