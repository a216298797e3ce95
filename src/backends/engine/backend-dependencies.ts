import { createScrubber, type Scrubber } from '../../credentials/scrubber.js'
import { operatorEnvironment } from '../../core/environment.js'
import type { Pods } from '../../kubernetes/types.js'
import { createLog, type Log } from '../../log.js'
import { OUTPUT_LIMITS, type OutputLimits } from '../../processes/output.js'
import type { ProcessOwner } from '../../processes/process-owner.js'
import type { WarmPool } from './warm/warm-pool.js'
import type { AgentMode } from '../types.js'

export interface BackendDependencies {
  /** The operator's environment; filtered before an agent sees it. */
  environment: NodeJS.ProcessEnv
  /** Additional variables to pass on, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  log: Log
  now: () => number
  /** Monotonic, for durations: unlike `now`, it does not jump when the clock is set. */
  elapsed: () => number
  limits: OutputLimits
  /** Without one, nothing ends the agents of a gateway that was killed. */
  owner?: ProcessOwner
  /** Without it, nothing runs in pods. */
  pods?: Pods
  /** Without it, every turn gets a process of its own. */
  warm?: WarmOptions
  /** Text is scrubbed before it is cut: nothing above could recognise half a secret. */
  scrubber: Scrubber
}

export interface WarmOptions {
  /** The default for requests that name none. */
  mode: AgentMode
  /** Shared by all agents. */
  pool: WarmPool
}

export function completeDependencies(given: Partial<BackendDependencies>): BackendDependencies {
  return {
    environment: given.environment ?? operatorEnvironment(),
    passVariables: given.passVariables ?? [],
    log: given.log ?? createLog(),
    now: given.now ?? Date.now,
    elapsed: given.elapsed ?? given.now ?? (() => performance.now()),
    limits: given.limits ?? OUTPUT_LIMITS,
    ...(given.owner && { owner: given.owner }),
    ...(given.pods && { pods: given.pods }),
    ...(given.warm && { warm: given.warm }),
    scrubber: given.scrubber ?? createScrubber(),
  }
}
