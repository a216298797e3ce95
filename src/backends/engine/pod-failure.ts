import type { PodLoss, PodProblem } from '../../kubernetes/types.js'
import type { Failed } from './translation.js'

/** Only a person can fix these. */
const PERMANENT = new Set<PodProblem>(['cli_missing', 'directory_missing', 'container_not_found', 'forbidden'])
/** These happen only after the agent has started. */
const DURING_RUN = new Set<PodProblem>(['pod_gone', 'stream_lost'])

export function failureOfPod({ problem, message }: PodLoss): Failed {
  return {
    reason: DURING_RUN.has(problem) ? 'exit' : 'spawn',
    message,
    podProblem: problem,
    ...(PERMANENT.has(problem) && { isLasting: true }),
  }
}
