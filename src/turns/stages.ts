// What happens around every turn, one function for each. `plan.ts` has their order.

import type { ApprovalService } from '../approvals/approval-service.js'
import type { AgentEventBody, AgentFailure, AgentResult } from '../backends/types.js'
import type { GatewayConfig } from '../config.js'
import { abortable } from '../core/async.js'
import type { CredentialStore } from '../credentials/credential-store.js'
import { GatewayError } from '../errors.js'
import { describePod, type Pods } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import type { Metrics } from '../metrics.js'
import { endOrphans } from '../processes/reaper.js'
import { checkStillInRoots } from '../projects/project-roots.js'
import type { TurnListener, TurnOutcome } from '../runtime/agent-runtime.js'
import { withNotices } from '../runtime/turn-notices.js'
import type { Ledger } from '../store/ledger.js'
import { endInPods } from './recover.js'
import type { RunTurn, TurnPlan, Work } from './types.js'

export interface StageDependencies {
  gatewayId: string
  config: Pick<GatewayConfig, 'projectRoots' | 'home'>
  ledger: Pick<Ledger, 'atWorkFor' | 'inPods' | 'remove'>
  pods: Pick<Pods, 'endRun'>
  credentials: Pick<CredentialStore, 'valuesFor'>
  approvals: Pick<ApprovalService, 'asking'>
  metrics: Pick<Metrics, 'measured'>
  log: Log
  now: () => number
}

/** A plan that no stage has been put around yet. */
export interface BarePlan extends TurnPlan {
  /** What the reader of its events is told besides. */
  notices?: string[]
  /** Whether it asks before it uses a tool. */
  isAsking?: boolean
  /** Whether it gets the credentials of its project. */
  takesSecrets?: boolean
}

/** The same run, with something done around it. */
export type Stage = (run: RunTurn, work: Work, plan: BarePlan, dependencies: StageDependencies) => RunTurn

export const measured: Stage = (run, work, { backend }, { metrics }) => metrics.measured(work, backend, run)

/**
 * Nothing of earlier attempts is left when it begins.
 *
 * In a pod, they may go on after the gateway that answered for them has died. Nothing of an earlier message may be left
 * there either, as it may be in the same session. Where nobody can tell, the attempt fails, to be made again later.
 *
 * On this machine, a gateway that was frozen for longer than its claims hold is not dead, and its agents work on. Which of
 * its warm agents has the session cannot be told, so all are ended; turns of others go on in another process.
 */
export const afterEarlierAttempts: Stage = (run, work, _plan, { gatewayId, ledger, pods, log, now }) => {
  const { claim, message, conversation, project, cutOff } = work
  const isFirstAttempt = claim.fence === 1
  if (isFirstAttempt && !project?.pod) return run

  const endEarlier = async () => {
    for (const earlier of cutOff) {
      if (earlier.gatewayId === gatewayId) continue
      const settled = await endOrphans(await ledger.atWorkFor(earlier), log)
      await ledger.remove(settled.map(({ runId }) => runId))
    }
    const of = project?.pod ? { conversationId: conversation.id } : { messageId: message.id }
    const { ended, left } = await endInPods(await ledger.inPods(of), { pods })
    await ledger.remove(ended)
    return left
  }

  return async (request, signal, listener) => {
    // What is ended may be somebody else's, should they have the message by now.
    await admitted(signal, listener)
    let left: Awaited<ReturnType<typeof endEarlier>>
    try {
      left = await abortable(signal, endEarlier)
    } catch (error) {
      if (!signal.aborted) throw error
      return notBegun({ reason: 'cancelled', message: 'Cancelled' }, listener, now)
    }
    const [unknown] = left
    if (!unknown) return run(request, signal, listener)
    const problem = `An earlier run of this conversation was made in ${describePod(unknown.address)}, and whether it has ended cannot be seen, so no other is begun.`
    const advice = 'Check that the cluster answers ("aetheel doctor" tells more), then try it again.'
    return notBegun({ reason: 'spawn', message: `${problem} ${advice}`, podProblem: 'unreachable' }, listener, now)
  }
}

/**
 * The directory is checked again when it is used: since the project was made, it may have been replaced by a link, or its
 * root taken back. Directories of the configuration file may be anywhere.
 */
export const insideRoots: Stage = (run, { project }, _plan, { config, now }) => {
  if (project?.source !== 'api' || project.pod) return run
  return async (request, signal, listener) => {
    try {
      await checkStillInRoots(project.directory, config)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return notBegun({ reason: 'refused', message: error.message }, listener, now)
    }
    return run(request, signal, listener)
  }
}

/** What the agent wants to do is asked for, where the operator says so, and what the gateway has to say is told. */
export const askingAndTelling: Stage = (run, { message, conversation }, plan, { approvals }) => {
  const { backend, notices = [], isAsking } = plan
  if (!isAsking && notices.length === 0) return run
  return async (request, signal, listener) => {
    const { onEvent, tell } = withNotices(listener.onEvent, notices)
    const about = { id: request.runId, backend, message, conversation }
    const asking = isAsking ? approvals.asking(about, tell) : undefined
    const asked = asking ? { ...request, approve: asking.approve } : request
    const outcome = await run(asked, signal, { ...listener, onEvent })
    return asking ? { ...outcome, notes: [...outcome.notes, ...asking.notes] } : outcome
  }
}

/** What the run gets of the credential store, for itself alone. */
export const withSecrets: Stage = (run, { project }, { takesSecrets }, { credentials }) => {
  if (!takesSecrets) return run
  return async (request, signal, listener) => {
    const values = await credentials.valuesFor(project?.id)
    const variables = values.filter(({ kind }) => kind === 'variable').map(({ name, value }) => [name, value])
    const environment = Object.fromEntries(variables) as Record<string, string>
    const files = values.filter(({ kind }) => kind === 'file')
    const secretFiles = files.map(({ name, value }) => ({ variable: name, content: value }))
    return run({ ...request, environment, secretFiles }, signal, listener)
  }
}

/** Contract: rejects where the turn may not begin, or was stopped before it could. */
export async function admitted(signal: AbortSignal, { mayBegin }: Pick<TurnListener, 'mayBegin'>): Promise<void> {
  await mayBegin
  if (signal.aborted) throw new Error('It was stopped before it began.')
}

/** A turn that ends without having begun ends as any other. */
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
