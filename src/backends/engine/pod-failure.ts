import type { PodLoss, PodProblem } from '../../kubernetes/types.js'
import type { Failed } from './translation.js'

/** Nobody but a person puts these right. */
const LASTING = new Set<PodProblem>(['cli_missing', 'directory_missing', 'container_not_found', 'forbidden'])
/** These come only when the agent had begun. */
const DURING_RUN = new Set<PodProblem>(['pod_gone', 'stream_lost'])

export function failureOfPod({ problem, message }: PodLoss): Failed {
  return {
    reason: DURING_RUN.has(problem) ? 'exit' : 'spawn',
    message,
    podProblem: problem,
    ...(LASTING.has(problem) && { isLasting: true }),
  }
}
