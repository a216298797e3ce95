// Decides what runs for a message (an agent turn, a command or a fixed text), and wraps every turn in its stages.

import { randomUUID } from 'node:crypto'
import type { ApprovalService } from '../approvals/approval-service.js'
import { unenforcedLimits } from '../backends/engine/refusals.js'
import { joinedPrompt, resumedPrompt } from '../backends/engine/starting-over.js'
import type { BackendRegistry } from '../backends/registry.js'
import type { AgentCapabilities, AgentResult, BackendName } from '../backends/types.js'
import type { Channel, Reply } from '../channels/types.js'
import type { ReplyConfig } from '../config/inbound.js'
import type { GatewayConfig } from '../config.js'
import { abortable } from '../core/async.js'
import type { CredentialStore } from '../credentials/credential-store.js'
import { EventScrubber, type Scrubber } from '../credentials/scrubber.js'
import { GatewayError, messageOf } from '../errors.js'
import { describePod, type Pods } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import type { Metrics } from '../metrics.js'
import { endOrphans } from '../processes/reaper.js'
import { checkStillInRoots } from '../projects/project-roots.js'
import { chooseWorkplace, workplaceKey, replyConfigOf, resolveAgent } from '../runtime/agent-choice.js'
import {
  type AgentRuntime,
  answerTurn,
  failTurn,
  type GatewayEvent,
  type TurnListener,
} from '../runtime/agent-runtime.js'
import { commandRunner, type CommandRuntime } from '../runtime/command-runtime.js'
import { withNotices } from '../runtime/turn-notices.js'
import type { Message } from '../store/inbox.js'
import type { Ledger } from '../store/ledger.js'
import type { Session } from '../store/sessions.js'
import { expandText } from './inbound-reply/command-template.js'
import { composeReply } from './inbound-reply/compose-reply.js'
import { finishReply } from './inbound-reply/finish-reply.js'
import { readMessage } from './inbound-reply/reply-prompt.js'
import { limitTime, limitTurn, MAX_INTERRUPTIONS } from './limits.js'
import type { PlanRun } from './queue.js'
import { agentCommandIn, objectionTo } from './agent-command.js'
import { endInPods } from './recover.js'
import type { EarlierAttempts, PlannedRun, RunTurn, TurnPlan, Work } from './types.js'

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
  /** Whether the output already arrives redacted: secrets are hidden before it is truncated. */
  hidesOutput?: boolean
}

/** Wraps a run. */
type Stage = (run: RunTurn, work: Work, plan: BarePlan, dependencies: StageDependencies) => RunTurn

const measured: Stage = (run, work, { backend }, { metrics }) => metrics.measured(work, backend, run)

/**
 * Hides known secrets in everything a run says: its events, result, notes and errors, and the id of its session. No
 * later code has to deal with them.
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
 * Ends whatever is left of earlier attempts before the turn starts.
 *
 * In a pod, an attempt may outlive its gateway. Earlier messages of the conversation count too, since they may share
 * the session. If it is unknown whether they ended, this attempt fails and is retried later.
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
    // Only then is the message certainly ours, so no process of another gateway is ended.
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
    const where = describePod(unknown.address)
    const problem = `An earlier run of this conversation in ${where} may still be active, so no new one was started.`
    const advice = 'Check that the cluster responds ("aetheel doctor" shows more), then try again.'
    const failure = { reason: 'spawn', message: `${problem} ${advice}`, podProblem: 'unreachable' } as const
    return failTurn(failure, listener, now())
  }
}

/**
 * Checks the directory again on use: since the project was created it may have been replaced by a link, or its root
 * revoked. Directories from the configuration file may be anywhere.
 */
const insideRoots: Stage = (run, { project }, _plan, { config, now }) => {
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
const withApprovalsAndNotices: Stage = (run, work, plan, { approvals }) => {
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
const withSecrets: Stage = (run, { project }, { takesSecrets }, { credentials }) => {
  if (!takesSecrets) return run
  return async (request, signal, listener) =>
    run({ ...request, ...(await credentials.secretsFor(project?.id)) }, signal, listener)
}

/** Contract: rejects if the turn may not begin or was stopped before it could. */
export async function awaitAdmission(signal: AbortSignal, { mayBegin }: Pick<TurnListener, 'mayBegin'>): Promise<void> {
  await mayBegin
  if (signal.aborted) throw new Error('It was stopped before it started.')
}

/** The stages of a turn, outermost first. Innermost, `AgentRuntime` finds the session and runs the agent. */
const TURN: readonly Stage[] = [
  measured,
  hidingSecrets,
  afterEarlierAttempts,
  insideRoots,
  withApprovalsAndNotices,
  withSecrets,
]

export interface PlanDependencies extends StageDependencies {
  config: GatewayConfig
  agents: Pick<BackendRegistry, 'resolve'>
  runtimes: ReadonlyMap<BackendName, AgentRuntime>
  commandRuntime: CommandRuntime
  channels: Channel[]
}

/** `planTurn` for a worker. */
export function turnPlanner(dependencies: PlanDependencies): (work: Work) => TurnPlan {
  return (work) => planTurn(work, dependencies)
}

/** Contract: throws for problems that the person or the operator must fix. */
export function planTurn(work: Work, dependencies: PlanDependencies): TurnPlan {
  const plan = barePlan(work, dependencies)
  const run = TURN.reduceRight((inner, stage) => stage(inner, work, plan, dependencies), plan.run)
  return { ...plan, run }
}

/** The plan for a claimed message, or the problem that prevents one. */
export type Prepared = { plan: TurnPlan; run: PlannedRun } | { problem: string }

/** Plans a message's run while it is being claimed, and keeps the plan until the turn begins. */
export class Planner {
  readonly #prepared = new WeakMap<Work, Prepared>()

  constructor(
    /** Contract: throws only for problems that the person or the operator must fix; the error message says how. */
    private readonly plan: (work: Work) => TurnPlan,
    private readonly newId: () => string,
    /** Hides known secrets, which errors may contain. */
    private readonly scrub: (text: string) => string,
  ) {}

  readonly planRun: PlanRun = (work) => {
    const prepared = this.#prepare(work)
    this.#prepared.set(work, prepared)
    return 'run' in prepared ? prepared.run : undefined
  }

  prepared(work: Work): Prepared | undefined {
    return this.#prepared.get(work)
  }

  #prepare(work: Work): Prepared {
    const { interruptions } = work.claim
    if (interruptions > MAX_INTERRUPTIONS) {
      return { problem: `The gateway stopped ${interruptions} times while working on this.` }
    }
    try {
      const plan = this.plan(work)
      const { backend, model, directory } = plan
      return { plan, run: { id: this.newId(), backend, directory, ...(model !== undefined && { model }) } }
    } catch (error) {
      return { problem: this.scrub(messageOf(error)) }
    }
  }
}

function barePlan(work: Work, dependencies: PlanDependencies): BarePlan {
  const { conversation, message, project } = work
  const { config } = dependencies
  const { command } = message.options ?? {}
  if (command) return planCommand(work, command, dependencies)
  const { projectId } = conversation
  if (projectId !== undefined && !project) {
    throw new GatewayError('not_found', `The project ${projectId} of this conversation was not found.`)
  }
  const reply = replyConfigOf(conversation.channel, config)
  const isFixed = reply?.mode === 'text' && message.kind === 'message'
  return isFixed ? planText(work, reply, config) : planAgent(work, reply, dependencies)
}

function planAgent(work: Work, reply: ReplyConfig | undefined, dependencies: PlanDependencies): BarePlan {
  const { conversation, message, merged, project, wasInterrupted, earlier } = work
  const { config, agents, runtimes, channels } = dependencies
  const { options = {} } = message
  const first = earlier && firstAgent(earlier, agents)
  const { agent, backend, missing, model: chosen } = first ?? resolveAgent(conversation, project, config, agents)
  const model = first ? chosen : (options.model ?? chosen)
  const runtime = runtimes.get(backend)
  if (!runtime) throw new GatewayError('backend_unknown', `The agent ${backend} is not available.`)
  const capabilities = agent.capabilities()
  const command = agentCommandIn(message)
  const defaults = reply ? { ...config, queryTimeoutMs: reply.timeoutSeconds * 1000 } : config
  const limits = limitTurn(options, project, defaults, capabilities)
  const needsApproval = (project?.agentPermissions ?? config.agentPermissions) === 'ask'
  const hasToolList = (limits.allowedTools ?? config.allowedTools).length > 0
  const hasTemplate = reply?.command !== undefined
  const isLimited = needsApproval || hasToolList || hasTemplate || project?.isUntrusted === true
  const objection = command && objectionTo(command, backend, capabilities, isLimited)
  if (objection !== undefined) return planFixed(work, objection, config)
  // Every message gets at least one whole turn.
  const totalMs = Math.max(config.messageTimeoutMs, limits.timeoutMs)
  const leftMs = Math.max(1, totalMs - (earlier?.workedMs ?? 0))
  const workplace = chooseWorkplace(conversation.channel, project, config)
  const { agentMode: mode } = config.projects.find(({ id }) => id === conversation.projectId) ?? {}
  const { directory, pod } = workplace
  const takesFiles = channels.some((channel) => channel.name === conversation.channel && channel.takesFiles)
  // Files in a pod cannot be opened from here.
  const canSendFiles = takesFiles && !pod
  const textOf = (sessionId: string | undefined): string => promptFor(message, sessionId, capabilities)
  const relayed = reply && replyOptions(work, reply, { backend, canSendFiles, newId: randomUUID, textOf })
  const event: GatewayEvent = {
    ...(project?.isUntrusted && { isUntrusted: true }),
    channelId: conversation.id,
    prompt: command?.line ?? joinedPrompt(message.text, textsOf(merged)),
    kind: message.kind,
    ...(command ? { isCommand: true } : { wasInterrupted }),
    ...(mode && { mode }),
    ...(model !== undefined && { model }),
    workingDir: directory,
    ...(pod && { pod }),
    canSendFiles,
    ...(options.session && { session: options.session }),
    ...(options.continues && { compose: (sessionId) => ({ prompt: textOf(sessionId) }) }),
    ...relayed,
    ...(command && { compose: (sessionId) => ({ ...relayed?.compose?.(sessionId), prompt: command.line }) }),
    ...limits,
    timeoutMs: Math.min(limits.timeoutMs, leftMs),
    ...(options.metadata && { metadata: options.metadata }),
    ...(project?.maxTurns !== undefined && { maxTurns: project.maxTurns }),
  }
  return {
    backend,
    ...(model !== undefined && { model }),
    directory: workplaceKey(workplace),
    canSendFiles,
    retryLimits: { timeoutRetries: config.queryTimeoutRetries, totalMs },
    maxTurns: project?.maxTurns ?? config.backendMaxTurns,
    notices: [
      ...(missing === undefined ? [] : [fallbackNotice(missing, backend)]),
      ...(limits.allowedTools ? [] : unenforcedLimits(config, capabilities)),
    ],
    needsApproval,
    takesSecrets: true,
    run: (request, signal, listener) => runtime.runTurn({ ...event, ...request }, signal, listener),
    finish: (answer) => {
      const whole = command ? withWords(answer, `${backend} ran ${command.line}.`) : answer
      return reply ? finishReply(whole, reply) : whole
    },
  }
}

/** The prompt. An agent that does not remember a paused turn is told about it. */
function promptFor(
  { text, options: { continues } = {} }: Message,
  sessionId: string | undefined,
  { remembersPausedTurns }: AgentCapabilities,
): string {
  if (!continues || (sessionId !== undefined && remembersPausedTurns)) return text
  const [first = '', ...others] = continues.asked
  return resumedPrompt(joinedPrompt(first, others), continues.said)
}

/** Most agent commands print nothing. */
function withWords(answer: Reply, words: string): Reply {
  return answer.text.trim() === '' ? { ...answer, text: words } : answer
}

/** A choice made since the first attempt applies from the next message on. */
function firstAgent({ backend, model }: EarlierAttempts, agents: Pick<BackendRegistry, 'resolve'>) {
  const { agent, missing } = agents.resolve(backend)
  return missing === undefined ? { agent, backend: agent.name(), missing, model } : undefined
}

function textsOf(messages: Message[]): string[] {
  return messages.map(({ text }) => text)
}

/** The part of a turn that `inbound.reply` determines. */
function replyOptions(
  { message: { kind, options }, merged }: Work,
  reply: ReplyConfig,
  {
    textOf,
    ...turn
  }: {
    backend: BackendName
    canSendFiles: boolean
    newId: () => string
    textOf(sessionId: string | undefined): string
  },
): Pick<GatewayEvent, 'session' | 'sessionIdleMs' | 'compose'> {
  const { idleMinutes, heartbeatIdleMinutes = idleMinutes } = reply.session ?? {}
  const minutes = kind === 'heartbeat' ? heartbeatIdleMinutes : idleMinutes
  // Plain text output does not report a session id to resume.
  const isPlain = turn.backend === reply.agent?.kind && reply.agent.format === 'text'
  return {
    ...(isPlain && { session: 'own' }),
    ...(minutes !== undefined && { sessionIdleMs: minutes * 60_000 }),
    compose(sessionId) {
      const first = readMessage(textOf(sessionId), options?.variables)
      const message = { ...first, body: joinedPrompt(first.body, textsOf(merged)) }
      return composeReply(reply, message, { ...turn, sessionId })
    },
  }
}

/** A fixed answer without an agent. */
function planText(work: Work, reply: ReplyConfig, config: GatewayConfig): BarePlan {
  const { message } = work
  const { body, variables } = readMessage(message.text, message.options?.variables)
  const text = expandText(reply.text ?? '', { ...variables, Body: body, BodyStripped: body, IsNewSession: 'true' })
  return { ...planFixed(work, text, config), finish: (answer) => finishReply(answer, reply) }
}

function planFixed({ claimedAt }: Work, text: string, { workingDir }: GatewayConfig): BarePlan {
  return {
    backend: 'text',
    directory: workingDir,
    // The text may echo the person's message, which must not be able to request files.
    canSendFiles: false,
    run: async (_request, signal, listener) => {
      await awaitAdmission(signal, listener)
      return answerTurn(text, listener, claimedAt)
    },
  }
}

function fallbackNotice(missing: string, backend: BackendName): string {
  return `The agent ${JSON.stringify(missing)} is not registered in this gateway, so ${backend} answers.`
}

/** Contract: throws if an earlier attempt was cut off, since it is unknown how far it got. */
function planCommand(
  { conversation, message, project, wasInterrupted }: Work,
  argv: string[],
  { config, commandRuntime }: PlanDependencies,
): BarePlan {
  const { projectId } = conversation
  // Commands scheduled by the operator need no project.
  if (!project && (message.kind !== 'cron' || projectId !== undefined)) {
    throw new GatewayError('not_found', `The project ${projectId} of this command was not found.`)
  }
  if (wasInterrupted) {
    const { job } = message.options ?? {}
    const again = job === undefined ? 'send it as a new command' : `run it again with: aetheel cron run ${job}`
    const advice = `Check what it already did, then ${again}.`
    throw new GatewayError('request_invalid', `The gateway stopped while the command ran, so it was cut off. ${advice}`)
  }
  const workplace = chooseWorkplace(undefined, project, config)
  const timeoutMs = limitTime(message.options ?? {}, project, config)
  return {
    backend: commandRunner(argv),
    directory: workplaceKey(workplace),
    canSendFiles: false,
    takesSecrets: true,
    hidesOutput: true,
    run: async (request, signal, listener) => {
      await awaitAdmission(signal, listener)
      const untrusted = project?.isUntrusted ? { isUntrusted: true } : {}
      const command = { argv, ...workplace, timeoutMs, ...untrusted, ...request }
      return { result: await commandRuntime.run(command, signal, listener.onEvent), notes: [], isFinal: true }
    },
  }
}
