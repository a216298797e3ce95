// Decides what runs for a message: an agent turn, a command or a fixed text.

import { randomUUID } from 'node:crypto'
import { unenforcedLimits } from '../backends/engine/refusals.js'
import { joinedPrompt } from '../backends/engine/starting-over.js'
import type { BackendRegistry } from '../backends/registry.js'
import type { AgentEvent, AgentResult, BackendName } from '../backends/types.js'
import type { Channel, Reply } from '../channels/types.js'
import type { ReplyConfig } from '../config/inbound.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError, messageOf } from '../errors.js'
import { chooseWorkplace, workplaceKey, replyConfigOf, resolveAgent } from '../runtime/agent-choice.js'
import type { AgentRuntime, GatewayEvent } from '../runtime/agent-runtime.js'
import { commandRunner, type CommandRuntime } from '../runtime/command-runtime.js'
import { limitTime, limitTurn } from '../runtime/turn-limits.js'
import type { Message } from '../store/inbox.js'
import { expandText } from './inbound-reply/command-template.js'
import { composeReply } from './inbound-reply/compose-reply.js'
import { finishReply } from './inbound-reply/finish-reply.js'
import { readMessage } from './inbound-reply/reply-prompt.js'
import { MAX_INTERRUPTIONS } from './limits.js'
import type { PlanRun } from './queue.js'
import {
  awaitAdmission,
  afterEarlierAttempts,
  withApprovalsAndNotices,
  type BarePlan,
  hidingSecrets,
  insideRoots,
  measured,
  type Stage,
  type StageDependencies,
  withSecrets,
} from './stages.js'
import type { EarlierAttempts, PlannedRun, TurnPlan, Work } from './types.js'

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
      return { problem: `The gateway ended ${interruptions} times while this was worked on.` }
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
    throw new GatewayError('not_found', `The project ${projectId} of this conversation is not known.`)
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
  if (!runtime) throw new GatewayError('backend_unknown', `The agent ${backend} is not there.`)
  const capabilities = agent.capabilities()
  const defaults = reply ? { ...config, queryTimeoutMs: reply.timeoutSeconds * 1000 } : config
  const limits = limitTurn(options, project, defaults, capabilities)
  // Every message gets at least one whole turn.
  const totalMs = Math.max(config.messageTimeoutMs, limits.timeoutMs)
  const leftMs = Math.max(1, totalMs - (earlier?.workedMs ?? 0))
  const workplace = chooseWorkplace(conversation.channel, project, config)
  const { agentMode: mode } = config.projects.find(({ id }) => id === conversation.projectId) ?? {}
  const { directory, pod } = workplace
  const takesFiles = channels.some((channel) => channel.name === conversation.channel && channel.takesFiles)
  // Files in a pod cannot be opened from here.
  const canSendFiles = takesFiles && !pod
  const event: GatewayEvent = {
    ...(project?.isUntrusted && { isUntrusted: true }),
    channelId: conversation.id,
    prompt: joinedPrompt(message.text, textsOf(merged)),
    kind: message.kind,
    wasInterrupted,
    ...(mode && { mode }),
    ...(model !== undefined && { model }),
    workingDir: directory,
    ...(pod && { pod }),
    canSendFiles,
    ...(options.session && { session: options.session }),
    ...(reply && replyOptions(work, reply, { backend, canSendFiles, newId: randomUUID })),
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
    needsApproval: (project?.agentPermissions ?? config.agentPermissions) === 'ask',
    takesSecrets: true,
    run: (request, signal, listener) => runtime.runTurn({ ...event, ...request }, signal, listener),
    ...(reply && { finish: (answer: Reply) => finishReply(answer, reply) }),
  }
}

/** What was chosen since the first attempt holds from the next message on. */
function firstAgent({ backend, model }: EarlierAttempts, agents: Pick<BackendRegistry, 'resolve'>) {
  const { agent, missing } = agents.resolve(backend)
  return missing === undefined ? { agent, backend: agent.name(), missing, model } : undefined
}

function textsOf(messages: Message[]): string[] {
  return messages.map(({ text }) => text)
}

/** The part of a turn that `inbound.reply` determines. */
function replyOptions(
  { message: { text, kind, options }, merged }: Work,
  reply: ReplyConfig,
  turn: { backend: BackendName; canSendFiles: boolean; newId: () => string },
): Pick<GatewayEvent, 'session' | 'sessionIdleMs' | 'compose'> {
  const { idleMinutes, heartbeatIdleMinutes = idleMinutes } = reply.session ?? {}
  const minutes = kind === 'heartbeat' ? heartbeatIdleMinutes : idleMinutes
  const first = readMessage(text, options?.variables)
  const message = { ...first, body: joinedPrompt(first.body, textsOf(merged)) }
  // Plain text output does not report a session id to resume.
  const isPlain = turn.backend === reply.agent?.kind && reply.agent.format === 'text'
  return {
    ...(isPlain && { session: 'own' }),
    ...(minutes !== undefined && { sessionIdleMs: minutes * 60_000 }),
    compose: (sessionId) => composeReply(reply, message, { ...turn, sessionId }),
  }
}

/** A fixed answer without an agent. */
function planText({ message, claimedAt }: Work, reply: ReplyConfig, { workingDir }: GatewayConfig): BarePlan {
  const { body, variables } = readMessage(message.text, message.options?.variables)
  const text = expandText(reply.text ?? '', { ...variables, Body: body, BodyStripped: body, IsNewSession: 'true' })
  return {
    backend: 'text',
    directory: workingDir,
    // The text may echo the person's message, which must not be able to request files.
    canSendFiles: false,
    run: async (_request, signal, listener) => {
      await awaitAdmission(signal, listener)
      const result: AgentResult = { isError: false, finalOutput: text, durationMs: 0 }
      const events: AgentEvent[] = [
        { type: 'output', content: text, stream: 'stdout', timestamp: claimedAt },
        { type: 'complete', result, timestamp: claimedAt },
      ]
      events.forEach(listener.onEvent)
      return { result, notes: [] }
    },
    finish: (answer) => finishReply(answer, reply),
  }
}

function fallbackNotice(missing: string, backend: BackendName): string {
  return `The agent ${JSON.stringify(missing)} is not registered in this gateway, so ${backend} answers.`
}

/** Contract: throws if an earlier attempt was cut off, since nobody knows how far it got. */
function planCommand(
  { conversation, message, project, wasInterrupted }: Work,
  argv: string[],
  { config, commandRuntime }: PlanDependencies,
): BarePlan {
  const { projectId } = conversation
  // Commands scheduled by the operator need no project.
  if (!project && (message.kind !== 'cron' || projectId !== undefined)) {
    throw new GatewayError('not_found', `The project ${projectId} of this command is not known.`)
  }
  if (wasInterrupted) {
    const { job } = message.options ?? {}
    const again = job === undefined ? 'send it as a new command' : `do it again with: aetheel cron run ${job}`
    const advice = `Look what is done already, then ${again}.`
    throw new GatewayError('request_invalid', `The gateway ended while the command ran, so it was cut off. ${advice}`)
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
