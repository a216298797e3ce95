import { abortable } from '../core/async.js'
import type { AgentEventBody, AgentFailure, AgentResult } from '../backends/types.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import { endInPods } from './housekeeping.js'
import { describePod, type Pods } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import { endOrphans } from '../processes/reaper.js'
import { checkStillInRoots } from '../projects/project-roots.js'
import type { Work } from './queue.js'
import type { TurnPlan } from './worker.js'
import type { TurnListener, TurnOutcome } from '../runtime/agent-runtime.js'
import type { Ledger } from '../store/ledger.js'
import type { ProjectRecord } from '../store/projects.js'

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
  if (project?.source !== 'api' || project.pod) return plan
  return {
    ...plan,
    run: async (runId, signal, listener) => {
      try {
        await checkStillInRoots(project.directory, config)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        return notBegun({ reason: 'refused', message: error.message }, listener, now)
      }
      return plan.run(runId, signal, listener)
    },
  }
}

interface EarlierAttempts {
  gatewayId: string
  ledger: Pick<Ledger, 'atWorkFor' | 'inPods' | 'remove'>
  pods: Pick<Pods, 'endRun'>
  log: Log
  now: () => number
}

/**
 * The same plan, which begins when nothing of earlier attempts is left.
 *
 * In a pod: who answered for them may be dead while they go on there. Nothing of an earlier message may be left there
 * either, as it may be in the same session. Where nobody can tell, the attempt fails, to be made again later.
 *
 * On this machine: a gateway that was stopped for longer than its claims hold is not dead, and its agents work on. Which of
 * those that it keeps for turns to come has the session cannot be told, so all are ended; turns of others go on in another
 * process.
 */
export function planAfterEarlier(
  plan: TurnPlan,
  {
    claim,
    message,
    conversation,
    project,
    cutOff,
  }: Pick<Work, 'claim' | 'message' | 'conversation' | 'project' | 'cutOff'>,
  { gatewayId, ledger, pods, log, now }: EarlierAttempts,
): TurnPlan {
  const isFirstAttempt = claim.fence === 1
  if (isFirstAttempt && !project?.pod) return plan
  return {
    ...plan,
    // What is ended may be somebody else's, should they have the message by now.
    awaitsLeave: false,
    run: async (runId, signal, listener) => {
      const endEarlier = async () => {
        for (const run of cutOff) {
          if (run.gatewayId === gatewayId) continue
          const settled = await endOrphans(await ledger.atWorkFor(run), log)
          await ledger.remove(settled.map(({ runId: id }) => id))
        }
        const of = project?.pod ? { conversationId: conversation.id } : { messageId: message.id }
        const { ended, left } = await endInPods(await ledger.inPods(of), { pods })
        await ledger.remove(ended)
        return left
      }
      let left: Awaited<ReturnType<typeof endInPods>>['left']
      try {
        left = await abortable(signal, endEarlier)
      } catch (error) {
        if (!signal.aborted) throw error
        return notBegun({ reason: 'cancelled', message: 'Cancelled' }, listener, now)
      }
      const [unknown] = left
      if (!unknown) return plan.run(runId, signal, listener)
      const problem = `An earlier run of this conversation was made in ${describePod(unknown.address)}, and whether it has ended cannot be seen, so no other is begun.`
      const advice = 'Check that the cluster answers ("aetheel doctor" tells more), then try it again.'
      const failure = { reason: 'spawn', message: `${problem} ${advice}`, podProblem: 'unreachable' } as const
      return notBegun(failure, listener, now)
    },
  }
}

function notBegun(
  problem: Omit<AgentFailure, 'report'>,
  { onEvent }: Pick<TurnListener, 'onEvent'>,
  now: () => number,
): TurnOutcome {
  const { reason, message } = problem
  const result: AgentResult = { isError: true, durationMs: 0, failure: { ...problem, report: message } }
  const events: AgentEventBody[] = [
    { type: 'error', content: message, reason },
    { type: 'complete', result },
  ]
  for (const event of events) onEvent({ ...event, timestamp: now() })
  return { result, notes: [] }
}
