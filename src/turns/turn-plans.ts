// What is run for a message: a turn of an agent, a command, or nothing but a text.

import { randomUUID } from 'node:crypto'
import type { ApprovalService } from '../approvals/approval-service.js'
import { unheldLimits } from '../backends/engine/agent-limits.js'
import { joinedPrompt } from '../backends/engine/joined-prompt.js'
import type { BackendRegistry } from '../backends/registry.js'
import type { AgentEvent, AgentResult, BackendName, SecretFile } from '../backends/types.js'
import type { Channel, Reply } from '../channels/types.js'
import type { ReplyConfig } from '../config/inbound.js'
import type { GatewayConfig } from '../config.js'
import type { CredentialStore } from '../credentials/credential-store.js'
import { GatewayError } from '../errors.js'
import type { Work } from './queue.js'
import type { TurnPlan } from './worker.js'
import { expandText } from './inbound-reply/command-template.js'
import { composeReply } from './inbound-reply/compose-reply.js'
import { finishReply } from './inbound-reply/finish-reply.js'
import { readMessage } from './inbound-reply/reply-prompt.js'
import { chooseAgent, chooseWorkplace, homeOf, replyConfigOf } from '../runtime/agent-choice.js'
import type { AgentRuntime, GatewayEvent } from '../runtime/agent-runtime.js'
import { commandRunner, type CommandRuntime } from '../runtime/command-runtime.js'
import { limitTime, limitTurn } from '../runtime/turn-limits.js'
import { withNotices } from '../runtime/turn-notices.js'
import type { Message } from '../store/inbox.js'
import type { Project } from '../store/projects.js'

/** A message's turn of its agent. Contract: throws for what the person or the operator must put right. */
export function planTurn(
  work: Work,
  config: GatewayConfig,
  agents: Pick<BackendRegistry, 'resolve'>,
  runtimes: ReadonlyMap<BackendName, AgentRuntime>,
  channels: Channel[],
  credentials: CredentialStore,
  approvals: Pick<ApprovalService, 'asking'>,
  newId: () => string = randomUUID,
): TurnPlan {
  const { conversation, message, merged, project, wasInterrupted } = work
  const { projectId } = conversation
  if (projectId !== undefined && !project) {
    throw new GatewayError('not_found', `The project ${projectId} of this conversation is not known.`)
  }
  const { options = {} } = message
  const reply = replyConfigOf(conversation.channel, config)
  if (reply?.mode === 'text' && message.kind === 'message') return planText(work, reply, config)
  const { backend: name, model: chosen } = chooseAgent(conversation, project, config)
  const { agent, missing } = agents.resolve(name)
  const backend = agent.name()
  // A model of one agent is unknown to another.
  const model = options.model ?? (missing === undefined ? chosen : undefined)
  const runtime = runtimes.get(backend)
  if (!runtime) throw new GatewayError('backend_unknown', `The agent ${backend} is not there.`)
  const capabilities = agent.capabilities()
  const usual = reply ? { ...config, queryTimeoutMs: reply.timeoutSeconds * 1000 } : config
  const limits = limitTurn(options, project, usual, capabilities)
  const workplace = chooseWorkplace(conversation.channel, project, config)
  const { agentMode: mode } = config.projects.find(({ id }) => id === projectId) ?? {}
  const isAsking = (project?.agentPermissions ?? config.agentPermissions) === 'ask'
  const { directory, pod } = workplace
  const takesFiles = channels.some((channel) => channel.name === conversation.channel && channel.takesFiles)
  // What is in a pod cannot be opened here.
  const canSendFiles = takesFiles && !pod
  const notices = [
    ...(missing === undefined ? [] : [fallbackNotice(missing, backend)]),
    ...(limits.allowedTools ? [] : unheldLimits(config, capabilities)),
  ]
  return {
    backend,
    ...(model !== undefined && { model }),
    directory: homeOf(workplace),
    canSendFiles,
    awaitsLeave: true,
    run: async (runId, signal, turnListener) => {
      const { onEvent, tell } = withNotices(turnListener.onEvent, notices)
      const asking = isAsking ? approvals.asking({ id: runId, backend, message, conversation }, tell) : undefined
      const outcome = await runtime.runTurn(
        {
          ...(await secretsFor(project, credentials)),
          ...(project?.isUntrusted && { isUntrusted: true }),
          channelId: conversation.id,
          prompt: joinedPrompt(message.text, textsOf(merged)),
          kind: message.kind,
          runId,
          wasInterrupted,
          ...(mode && { mode }),
          ...(model !== undefined && { model }),
          workingDir: directory,
          ...(pod && { pod }),
          canSendFiles,
          ...(options.session && { session: options.session }),
          ...(reply && relayed(work, reply, { backend, canSendFiles, newId })),
          ...limits,
          ...(options.metadata && { metadata: options.metadata }),
          ...(project?.maxTurns !== undefined && { maxTurns: project.maxTurns }),
          ...(asking && { approve: asking.approve }),
        },
        signal,
        { ...turnListener, onEvent },
      )
      return asking ? { ...outcome, notes: [...outcome.notes, ...asking.notes] } : outcome
    },
    ...(reply && { finish: (answer: Reply) => finishReply(answer, reply) }),
  }
}

function textsOf(messages: Message[]): string[] {
  return messages.map(({ text }) => text)
}

/** What `inbound.reply` says about a turn. */
function relayed(
  { message: { text, kind, options }, merged }: Work,
  reply: ReplyConfig,
  turn: { backend: BackendName; canSendFiles: boolean; newId: () => string },
): Pick<GatewayEvent, 'session' | 'sessionIdleMs' | 'compose'> {
  const { idleMinutes, heartbeatIdleMinutes = idleMinutes } = reply.session ?? {}
  const minutes = kind === 'heartbeat' ? heartbeatIdleMinutes : idleMinutes
  const first = readMessage(text, options?.variables)
  const message = { ...first, body: joinedPrompt(first.body, textsOf(merged)) }
  // Nobody would know the id of a session to continue.
  const isPlain = turn.backend === reply.agent?.kind && reply.agent.format === 'text'
  return {
    ...(isPlain && { session: 'own' }),
    ...(minutes !== undefined && { sessionIdleMs: minutes * 60_000 }),
    compose: (sessionId) => composeReply(reply, message, { ...turn, sessionId }),
  }
}

/** A fixed answer, for which no agent is asked. */
function planText({ message, claimedAt }: Work, reply: ReplyConfig, { workingDir }: GatewayConfig): TurnPlan {
  const { body, variables } = readMessage(message.text, message.options?.variables)
  const text = expandText(reply.text ?? '', { ...variables, Body: body, BodyStripped: body, IsNewSession: 'true' })
  return {
    backend: 'text',
    directory: workingDir,
    // The text may repeat what the person wrote: nobody gets a file by that.
    canSendFiles: false,
    run: async (_runId, _signal, { onEvent }) => {
      const result: AgentResult = { isError: false, finalOutput: text, durationMs: 0 }
      const events: AgentEvent[] = [
        { type: 'output', content: text, stream: 'stdout', timestamp: claimedAt },
        { type: 'complete', result, timestamp: claimedAt },
      ]
      events.forEach(onEvent)
      return { result, notes: [] }
    },
    finish: (answer) => finishReply(answer, reply),
  }
}

/** Who answers where an agent is asked for that this gateway has not. */
function fallbackNotice(missing: string, backend: BackendName): string {
  return `The agent ${JSON.stringify(missing)} is not registered in this gateway, so ${backend} answers.`
}

/** Contract: throws when an earlier attempt was cut off, since nobody knows how far that one came. */
export function planCommand(
  { conversation, message, project, wasInterrupted }: Work,
  argv: string[],
  config: GatewayConfig,
  runtime: CommandRuntime,
  credentials: CredentialStore,
): TurnPlan {
  const { projectId } = conversation
  // What the operator has scheduled may belong to no project.
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
    directory: homeOf(workplace),
    canSendFiles: false,
    run: async (runId, signal, { onEvent }) => {
      const secrets = await secretsFor(project, credentials)
      const request = {
        argv,
        ...workplace,
        runId,
        timeoutMs,
        ...secrets,
        ...(project?.isUntrusted && { isUntrusted: true }),
      }
      return { result: await runtime.run(request, signal, onEvent), notes: [], isFinal: true }
    },
  }
}

/** What a run gets of the credential store, for itself alone. */
async function secretsFor(
  project: Project | undefined,
  credentials: CredentialStore,
): Promise<{ environment: Record<string, string>; secretFiles: SecretFile[] }> {
  const values = await credentials.valuesFor(project?.id)
  return {
    environment: Object.fromEntries(
      values.filter(({ kind }) => kind === 'variable').map(({ name, value }) => [name, value]),
    ),
    secretFiles: values
      .filter(({ kind }) => kind === 'file')
      .map(({ name, value }) => ({ variable: name, content: value })),
  }
}
