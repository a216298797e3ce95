import { describe } from 'vitest'
import type { BackendName } from '../../src/backends/types.js'
import type { Step } from './agent-script.js'
import type { Speaker } from './wire-formats.js'
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

/** Differences between the agents, apart from their `capabilities`. */
export interface BackendSetup {
  name: BackendName
  create: CreateBackend
  /** Set-up before a backend is created; returns the tear-down. */
  prepare?: (stage: Stage) => Promise<() => Promise<void>>
  /** The fake agent's wire format; defaults to that of the CLI of the same name. */
  speaker?: () => Speaker
  /** Why turns have no separate process. Tests about that process are then skipped: its arguments, output, exit code and
   *  leftovers. */
  withoutProcess?: string
  /** If that process stays warm: a part of its command line. Tests about its end are then skipped: its exit code, a last
   *  line without a newline, output after the final word, a document of many lines. */
  warmCommand?: string
  /** Why that process survives the cancelling of its turn, even before it is ready: its files are removed with it, not with
   *  the run. */
  isShared?: string
  /** Why that process is not on this machine. Tests about this machine are then skipped: the executable, the operator's
   *  environment, and untrusted directories. */
  elsewhere?: string
  /** The agent's name in error messages. */
  label: string
  /** The session the fake agent starts, and two that look like the CLI's own. */
  newSession: string
  knownSession: string
  otherSession: string
  /** Strings that are not session ids of this CLI. */
  wrongSessions: string[]
  /** How the CLI reports an unknown session. */
  unknownSession: Step[]
  /** Whether it then silently starts another one, or a new one when it should not. */
  startsAnew: boolean
  /** Whether it lacks a turn limit of its own. */
  isCounted: boolean
  shellTool: string
  /** How a tool's id and command are reported, if not verbatim. */
  toolId?: (id: string) => string
  toolInput?: (command: string) => object
  /** Whether a tool is reported only once it is done. */
  tellsFinishedTools: boolean
  tellsThoughts: boolean
  /** Why unknown events do not become notices. */
  overlooksKinds?: string
  /** Why cached tokens are unknown and count as new ones. */
  hidesCache?: string
  /** Why the model is not on a command line, so its name may be of any length. */
  saysModel?: string
  /** Outputs that `parseOutput` must accept: each is complete, and says `Hello` in `knownSession`. */
  documents: Record<string, string>
  /** The neutralised form of this prompt, which the CLI takes literally. */
  sent(prompt: string): string
  promptLimit?: string
  /** A variable of this agent's own, and one that is not. */
  ownVariable: string
  foreignVariable: string
}

export interface ContractPart {
  it: TestAPI<{ stage: Stage }>
  /** For tests about a separate process. */
  itOfProcess: ReturnType<TestAPI<{ stage: Stage }>['runIf']>
  /** For tests about a process that ends with its turn. */
  itIfEnding: ContractPart['itOfProcess']
  /** For tests about a separate process on this machine. */
  itHere: ReturnType<TestAPI<{ stage: Stage }>['runIf']>
  setup: BackendSetup
}

/** Whether to run the whole suite for every variant. That takes a while; by default, a part covers most of it. */
export const ARE_ALL_COMBINATIONS = process.env['CONTRACT_COMBINATIONS'] === 'all'

/** One suite for every backend: tests the promises of src/backends/types.ts against misbehaving fake agents. */
export function describeBackendContract(
  name: BackendName,
  setup: Omit<BackendSetup, 'name'>,
  title: string = name,
): void {
  const it = testOnStage(name, setup)
  const isProcess = setup.withoutProcess === undefined
  const isEnding = isProcess && setup.warmCommand === undefined
  const isHere = isProcess && setup.elsewhere === undefined
  const part: ContractPart = {
    it,
    itOfProcess: it.runIf(isProcess),
    itIfEnding: it.runIf(isEnding),
    itHere: it.runIf(isHere),
    setup: { ...setup, name },
  }
  describe.concurrent(`${title}: the contract of a backend`, () => {
    // Its output means the same wherever it runs.
    if (setup.elsewhere === undefined || ARE_ALL_COMBINATIONS) {
      describeReading(part)
      describeStreaming(part)
      describeSessions(part)
    }
    describeAnswers(part)
    describeCalls(part)
    describeRunEnvironment(part)
    describeUntrusted(part)
    describeFailures(part)
    describeProcesses(part)
  })
}
