import type { GatewayConfig } from './config.js'
import { checkStillInRoots } from './projects/project-roots.js'
import { GatewayError } from './errors.js'
import type { TurnPlan } from './queue/worker.js'
import type { AgentEventBody, AgentResult } from './backends/types.js'
import type { ProjectRecord } from './store/projects.js'

/**
 * The same plan, for a directory that is looked at once more when it is used: since the project was made, it may have been
 * replaced by a link, or its root taken back. Directories of the configuration file may be anywhere.
 */
export function planInRoots(
  plan: TurnPlan,
  project: ProjectRecord | undefined,
  config: Pick<GatewayConfig, 'projectRoots' | 'home'>,
  now: () => number,
): TurnPlan {
  if (project?.source !== 'api') return plan
  return {
    ...plan,
    run: async (runId, signal, listener) => {
      try {
        await checkStillInRoots(project.directory, config)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        const { message } = error
        const result: AgentResult = {
          isError: true,
          durationMs: 0,
          failure: { reason: 'refused', message, report: message },
        }
        const events: AgentEventBody[] = [
          { type: 'error', content: message, reason: 'refused' },
          { type: 'complete', result },
        ]
        for (const event of events) listener.onEvent({ ...event, timestamp: now() })
        return { result, notes: [] }
      }
      return plan.run(runId, signal, listener)
    },
  }
}
