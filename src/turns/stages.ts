// The stages around every turn. `plan.ts` orders them.

import type { ApprovalService } from '../approvals/approval-service.js'
import type { AgentResult } from '../backends/types.js'
import type { GatewayConfig } from '../config.js'
import { abortable } from '../core/async.js'
import type { CredentialStore } from '../credentials/credential-store.js'
import { EventScrubber } from '../credentials/event-scrubber.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { GatewayError, messageOf } from '../errors.js'
import { describePod, type Pods } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import type { Metrics } from '../metrics.js'
import { endOrphans } from '../processes/reaper.js'
import { checkStillInRoots } from '../projects/project-roots.js'
import { failTurn, type TurnListener } from '../runtime/agent-runtime.js'
import { withNotices } from '../runtime/turn-notices.js'
import type { Ledger } from '../store/ledger.js'
import type { Session } from '../store/sessions.js'
import { endInPods } from './recover.js'
import type { RunTurn, TurnPlan, Work } from './types.js'

export interface StageDependencies {
  gatewayId: string
  config: Pick<GatewayConfig, 'projectRoots' | 'home'>
  ledger: Pick<Ledger, 'atWorkFor' | 'inPods' | 'remove'>
  pods: Pick<Pods, 'endRun'>
  credentials: Pick<CredentialStore, 'secretsFor'>
  approvals: Pick<ApprovalService, 'approverFor'>
  metrics: Pick<Metrics, 'measured'>
  scrubber: Scrubber
  log: Log
  now: () => number
}

/** A plan before any stage wraps it. */
export interface BarePlan extends TurnPlan {
  /** Notices to add to its events. */
  notices?: string[]
  /** Whether the agent asks before it uses a tool. */
  needsApproval?: boolean
  /** Whether it gets its project's credentials. */
  takesSecrets?: boolean
  /** Whether its output comes without known secrets: they are hidden before it is cut. */
  hidesOutput?: boolean
}

/** Wraps a run. */
export type Stage = (run: RunTurn, work: Work, plan: BarePlan, dependencies: StageDependencies) => RunTurn

export const measured: Stage = (run, work, { backend }, { metrics }) => metrics.measured(work, backend, run)

/**
 * Hides known secrets in all that a run says: in its events, result, notes and errors, and in the id of its session.
 * After this nobody has to think of them.
 */
export const hidingSecrets: Stage = (run, _work, { hidesOutput }, { scrubber }) => {
  const hidden = (session: Session): Session => ({ ...session, sessionId: scrubber.scrub(session.sessionId) })
  return async (request, signal, listener) => {
    const events = new EventScrubber(scrubber)
    let result: AgentResult | undefined
    const onEvent: TurnListener['onEvent'] = (said) => {
      for (const event of hidesOutput && said.type === 'output' ? [said] : events.scrub(said)) {
        if (event.type === 'complete') ({ result } = event)
        listener.onEvent(event)
      }
    }
    try {
      const { session, ...outcome } = await run(request, signal, {
        ...listener,
        onEvent,
        keepSession: (begun) => listener.keepSession(hidden(begun)),
      })
      if (!result) throw new Error('A run ended without its complete event')
      const notes = outcome.notes.map((note) => scrubber.scrub(note))
      return { ...outcome, result, notes, ...(session && { session: hidden(session) }) }
    } catch (error) {
      throw new Error(scrubber.scrub(messageOf(error)), { cause: error })
    }
  }
}

/**
 * Ends whatever is left of earlier attempts before the turn begins.
 *
 * In a pod, an attempt may outlive its gateway. Earlier messages of the conversation count too, since they may share
 * the session. If nobody can tell whether they ended, this attempt fails and is retried later.
 *
 * On this machine, a gateway that was frozen for longer than its leases is not dead, and its agents keep working. Which
 * of its warm agents has the session is unknown, so all are ended; other turns continue in another process.
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
    // Only then is the message surely ours, and nobody else's process is ended.
    await awaitAdmission(signal, listener)
    let left: Awaited<ReturnType<typeof endEarlier>>
    try {
      left = await abortable(signal, endEarlier)
    } catch (error) {
      if (!signal.aborted) throw error
      return failTurn({ reason: 'cancelled', message: 'Cancelled' }, listener, now())
    }
    const [unknown] = left
    if (!unknown) return run(request, signal, listener)
    const problem = `An earlier run of this conversation was made in ${describePod(unknown.address)}, and whether it has ended cannot be seen, so no other is begun.`
    const advice = 'Check that the cluster answers ("aetheel doctor" tells more), then try it again.'
    const failure = { reason: 'spawn', message: `${problem} ${advice}`, podProblem: 'unreachable' } as const
    return failTurn(failure, listener, now())
  }
}

/**
 * Checks the directory again on use: since the project was created it may have been replaced by a link, or its root
 * revoked. Directories from the configuration file may be anywhere.
 */
export const insideRoots: Stage = (run, { project }, _plan, { config, now }) => {
  if (project?.source !== 'api' || project.pod) return run
  return async (request, signal, listener) => {
    try {
      await checkStillInRoots(project.directory, config)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return failTurn({ reason: 'refused', message: error.message }, listener, now())
    }
    return run(request, signal, listener)
  }
}

/** Asks for approval where the operator requires it, and adds the gateway's notices to the events. */
export const withApprovalsAndNotices: Stage = (run, work, plan, { approvals }) => {
  const { message, conversation } = work
  const { backend, notices = [], needsApproval = false } = plan
  if (!needsApproval && notices.length === 0) return run
  return async (request, signal, listener) => {
    const { onEvent, notify } = withNotices(listener.onEvent, notices)
    const about = { id: request.runId, backend, message, conversation }
    const approver = needsApproval ? approvals.approverFor(about, notify) : undefined
    const asked = approver ? { ...request, approve: approver.approve } : request
    const outcome = await run(asked, signal, { ...listener, onEvent })
    return approver ? { ...outcome, notes: [...outcome.notes, ...approver.notes] } : outcome
  }
}

/** Gives the run its credentials, and only this run. */
export const withSecrets: Stage = (run, { project }, { takesSecrets }, { credentials }) => {
  if (!takesSecrets) return run
  return async (request, signal, listener) =>
    run({ ...request, ...(await credentials.secretsFor(project?.id)) }, signal, listener)
}

/** Contract: rejects if the turn may not begin or was stopped before it could. */
export async function awaitAdmission(signal: AbortSignal, { mayBegin }: Pick<TurnListener, 'mayBegin'>): Promise<void> {
  await mayBegin
  if (signal.aborted) throw new Error('It was stopped before it began.')
}
