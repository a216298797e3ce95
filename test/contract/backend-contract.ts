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

/** What differs between the agents, beside what their `capabilities` say. */
export interface BackendSetup {
  name: BackendName
  create: CreateBackend
  /** What must be there before a backend is created; returns how to put it away. */
  prepare?: (stage: Stage) => Promise<() => Promise<void>>
  /** How the fake agent says what it does; left out, as the CLI of that name. */
  speaker?: () => Speaker
  /** Why there is no process of ours for each turn. Then what is about one does not apply: how it is called, what it
   *  prints, its exit code, and what it leaves behind. */
  withoutProcess?: string
  /** Where that process stays for the next turn: what stands in the command line of it. Then what is about its end does not
   *  apply: its exit code, a last line without an end, words after the final one, a document over many lines. */
  staysAs?: string
  /** Why that process goes on when its turn is cancelled, even before it listens: its files are gone with it, and not with the
   *  run. */
  isShared?: string
  /** Why that process is not on this machine. Then what is about this machine does not apply: which executable there is,
   *  what the operator's environment says, and untrusted directories. */
  elsewhere?: string
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
  /** How the id of a tool and its command are told, where not as they are. */
  toolId?: (id: string) => string
  toolInput?: (command: string) => object
  /** Whether a tool is told only once it is done. */
  tellsFinishedTools: boolean
  tellsThoughts: boolean
  /** Why events of an unknown kind are no notices. */
  overlooksKinds?: string
  /** Why it is not known what came from the cache, and counts as new. */
  hidesCache?: string
  /** Why the model stands on no command line, and may be of any length. */
  saysModel?: string
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
  /** For what is about a process of ours. */
  itOfProcess: ReturnType<TestAPI<{ stage: Stage }>['runIf']>
  /** For what is about a process that ends with its turn. */
  itIfEnding: ContractPart['itOfProcess']
  /** For what is about a process of ours on this machine. */
  itHere: ReturnType<TestAPI<{ stage: Stage }>['runIf']>
  setup: BackendSetup
}

/** Whether the suite is run whole for everything that it holds for. That takes a while: without it, a part shows most. */
export const ARE_ALL_COMBINATIONS = process.env['CONTRACT_COMBINATIONS'] === 'all'

/** One suite for every backend: what is promised in src/backends/types.ts, held by fake agents of all bad manners. */
export function describeBackendContract(
  name: BackendName,
  setup: Omit<BackendSetup, 'name'>,
  title: string = name,
): void {
  const it = testOnStage(name, setup)
  const isProcess = setup.withoutProcess === undefined
  const isEnding = isProcess && setup.staysAs === undefined
  const isHere = isProcess && setup.elsewhere === undefined
  const part: ContractPart = {
    it,
    itOfProcess: it.runIf(isProcess),
    itIfEnding: it.runIf(isEnding),
    itHere: it.runIf(isHere),
    setup: { ...setup, name },
  }
  describe.concurrent(`${title}: the contract of a backend`, () => {
    // Wherever it runs, what it says means the same.
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
