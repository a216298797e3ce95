// The composition root of a running gateway: what it is made of, and in which order that starts and stops.

import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { within } from './core/async.js'
import { ApprovalService } from './approvals/approval-service.js'
import { Archive } from './archive/archive.js'
import { BackendRegistry } from './backends/registry.js'
import type { BackendName } from './backends/types.js'
import { channelHost, type GatewayHost } from './turns/channel-host.js'
import type { Acceptance, Channel, QueueMode } from './channels/types.js'
import type { GatewayConfig } from './config.js'
import { applyConfig, type ConfigChange } from './config/reload.js'
import type { ReplyConfig } from './config/inbound.js'
import { secretsOfConfig } from './config/secrets.js'
import { agentProblem, ConfiguredAgents } from './runtime/configured-agents.js'
import { configuredPods } from './runtime/configured-pods.js'
import { CredentialStore } from './credentials/credential-store.js'
import { KeyRing } from './credentials/key-ring.js'
import { createScrubber, type Scrubber } from './credentials/scrubber.js'
import { ConversationCommands } from './conversation/conversation-commands.js'
import { GatewayError, messageOf } from './errors.js'
import { endRunsInPods, HOUSEKEEPING_MS, keepHouse, leaveHouse } from './turns/housekeeping.js'
import { isDirectory } from './core/is-directory.js'
import type { Pods } from './kubernetes/types.js'
import type { Log } from './log.js'
import { createMetrics, type Metrics, storeOperation } from './metrics.js'
import { makePrivateDirectory } from './core/private-directory.js'
import { startGuardian } from './processes/guardian.js'
import type { ProcessOwner } from './processes/process-owner.js'
import { thisProcess } from './processes/reaper.js'
import { MarkdownConfigLoader } from './prompt/markdown-config-loader.js'
import { SystemPromptAssembler } from './prompt/system-prompt-assembler.js'
import { Queue } from './turns/queue.js'
import { Sender } from './turns/sender.js'
import { type Step, Worker } from './turns/worker.js'
import { AgentRuntime } from './runtime/agent-runtime.js'
import { CommandRuntime } from './runtime/command-runtime.js'
import { HookManager } from './runtime/hook-manager.js'
import { SessionManager } from './runtime/session-manager.js'
import { Scheduler } from './schedule/scheduler.js'
import type { Message } from './store/inbox.js'
import type { Delivery } from './store/outbox.js'
import { openStore, type Store } from './store/store.js'
import { ActivityHub } from './streams/activity-hub.js'
import { StreamHub } from './streams/stream-hub.js'
import { planAfterEarlier, planInRoots } from './turns/project-plans.js'
import { planCommand, planTurn } from './turns/turn-plans.js'

export interface GatewayDependencies {
  environment: NodeJS.ProcessEnv
  log: Log
  channels: Channel[]
  /** Knows every secret that must not be told. */
  scrubber?: Scrubber
  metrics?: Metrics
  /** Left out, those that kubectl reaches. */
  pods?: Pods
  /** Serves this conversation alone, and leaves the others to a gateway that stays. */
  address?: string
  /** Hears of each step of each message. */
  onStep?(step: Step): void
  /** The last thing before it takes messages. Contract: when it rejects, the gateway does not start. */
  beforeWork?(gateway: GatewayParts): Promise<void>
}

/** What a gateway is made of, for whoever serves it. */
export interface GatewayParts {
  id: string
  store: Store
  queue: Queue
  agents: BackendRegistry
  credentials: CredentialStore
  scrubber: Scrubber
  metrics: Metrics
  /** What agents ask to be allowed. */
  approvals: ApprovalService
  /** The events of messages, from the first one and as they come. */
  streams: StreamHub
  /** What goes on in all conversations. */
  activity: ActivityHub
  /** Ends the work on a message, or takes it out. Contract: `asked` when another gateway works on it. */
  cancel(messageId: string): Promise<'stopped' | 'dropped' | 'asked' | 'finished'>
  /** Looks for work and replies now; for whoever changed the queue from outside. */
  wake(): void
  /** The names of its channels. */
  channels: string[]
  /** What people can tell the gateway about a conversation. */
  commands: Pick<ConversationCommands, 'act' | 'stopMessage'>
  /** As a channel would: for a channel's messages that come another way. */
  hostOf(channel: string): GatewayHost
}

export interface Gateway extends GatewayParts {
  /** Heartbeats and cron jobs. */
  scheduler: Scheduler
  /** Goes on with another configuration, as far as that can be done; turns that run go on as they began. Contract: the
   *  object it was started with is changed. */
  reconfigure(next: GatewayConfig): Promise<ConfigChange>
  /** Drains, gives back what is not finished, ends everything it started. */
  stop(): Promise<void>
}

/** Where SQLite keeps its file. */
export function databaseFile(config: Pick<GatewayConfig, 'home'>): string {
  return join(config.home, 'aetheel.db')
}

export async function startGateway(config: GatewayConfig, dependencies: GatewayDependencies): Promise<Gateway> {
  // What is opened is closed in the reverse order, also when the start fails half-way.
  const closers: Array<() => Promise<void>> = []
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) {
      // What cannot be closed, as when the database is away, must not keep the rest open.
      await closer().catch((error: unknown) => dependencies.log.warn('stop.incomplete', { error: messageOf(error) }))
    }
  }
  try {
    const gateway = await compose(config, dependencies, (closer) => closers.push(closer))
    return { ...gateway, stop: close }
  } catch (error) {
    await close()
    throw error
  }
}

async function compose(
  config: GatewayConfig,
  {
    environment,
    log,
    channels,
    scrubber = createScrubber(),
    metrics = createMetrics({ now: Date.now }),
    pods: givenPods,
    address,
    onStep = () => {},
    beforeWork,
  }: GatewayDependencies,
  onClose: (closer: () => Promise<void>) => void,
): Promise<Omit<Gateway, 'stop'>> {
  const now = Date.now
  const newId = randomUUID
  const id = newId()
  let stoppingSince: number | undefined
  /** What is left of the time to stop in, from the first who asks. */
  const drainMs = (): number => {
    stoppingSince ??= now()
    return Math.max(0, config.drainTimeoutMs - (now() - stoppingSince))
  }
  const location = { file: databaseFile(config), databaseUrl: config.databaseUrl }
  const store = await openStore(location, log, (kind, durationMs) => {
    metrics.storeAnswered(storeOperation(kind), durationMs)
  })
  onClose(() => store.close())
  // Whoever may write there may also put a configuration file there, which names executables; who may read finds files
  // whose names tell something.
  if (isOpenToOthers(config.home)) log.warn('home.open-to-others', { home: config.home, advice: 'chmod 700' })
  const self = thisProcess()
  const owner: ProcessOwner = {
    id,
    started: (process) => store.ledger.add({ ...self, ...process, ownerId: id }),
    ended: (runId) =>
      store.ledger.remove([runId]).catch((error: unknown) => {
        log.warn('ledger.not-written', { runId, error: messageOf(error) })
      }),
  }
  const pods = givenPods ?? configuredPods(config, environment, { owner, scrubber })
  const record = { ...self, id, startedAt: now(), seenAt: now() }
  await store.ledger.announceGateway(record)
  onClose(() => leaveHouse(id, store))
  await keepProjects(config, store, now())
  const keyRing = new KeyRing({ home: config.home, masterKey: environment['AETHEEL_MASTER_KEY'], scrubber })
  const credentials = new CredentialStore({ store, keyRing, scrubber, now })
  for (const { message } of await credentials.hideAll()) log.warn('credential.unreadable', { message })
  const guardian = startGuardian(id, log)
  onClose(() => guardian.stop())

  const streams = new StreamHub(store, now)
  const activity = new ActivityHub(store, streams, now)
  const onDropped = (message: Message): void => {
    streams.settled(message.id)
    activity.changed()
    const channel = channels.find(({ name }) => name === message.channel)
    if (!channel?.forget) return
    void store.conversations
      .get(message.conversationId)
      .then((conversation) => conversation && channel.forget?.(conversation.address, message.id))
      .catch((error: unknown) => log.warn('drop.not-shown', { messageId: message.id, error: messageOf(error) }))
  }
  const defaultMode = (): QueueMode => config.queueMode
  const queue = new Queue(store, { ...config, defaultMode, gatewayId: id, now, newId, onDropped })
  const sessions = new SessionManager(store.sessions, { idleMs: config.sessionIdleMs, now })
  const { agentEnvPass: passVariables } = config
  const workingDir = (): string => config.workingDir
  const hooks = new HookManager(config.hooks, { log, environment, passVariables, workingDir, now, owner })
  onClose(async () => {
    await within(drainMs(), hooks.drained())
    await hooks.stop()
  })
  const scrub = (text: string): string => scrubber.scrub(text)
  const archive = new Archive(join(config.home, 'archive'), store, log, now, scrub)
  onClose(() => archive.written())
  const markdown = new MarkdownConfigLoader(config.promptDir, log)
  const assembler = new SystemPromptAssembler()
  const agents = new BackendRegistry(now)
  const configured = new ConfiguredAgents(config, { environment, passVariables, log, owner, pods, scrubber })
  onClose(() => configured.stop())
  const runtimes = new Map<BackendName, AgentRuntime>()
  const openAgents = (): void => {
    for (const backend of configured.all()) {
      agents.register(backend)
      runtimes.set(backend.name(), new AgentRuntime(config, backend, sessions, markdown, assembler, hooks, scrubber))
    }
  }
  openAgents()
  // Channels have theirs from the configuration.
  agents.setDefault(config.codeAgentDefault)
  const commandRuntime = new CommandRuntime({ environment, passVariables, now, owner, pods, scrubber })

  for (const channel of channels) onClose(() => channel.close())
  const only = address === undefined ? {} : { address }
  const tellUndelivered = ({ id: replyId, conversationId, channel, problem }: Delivery): void => {
    log.error('reply.undelivered', { replyId, conversationId, channel, problem })
    hooks.fire('error', { replyId, conversationId, channel, reason: 'undelivered', message: problem })
    archive.update({ id: conversationId })
  }
  const approvals = new ApprovalService({
    config,
    store,
    channels,
    scrubber,
    onAsked: () => sender.wake(),
    log,
    now,
    newId,
  })
  const sender = new Sender({
    ...only,
    gatewayId: id,
    channels,
    store,
    onSent: ({ id: replyId, conversationId, channel, messageId, reply }) => {
      hooks.fire('reply-sent', { replyId, conversationId, channel, messageId })
      // It may have been answered while it was on its way.
      if (reply.question) approvals.closeQuestions()
    },
    onUndelivered: tellUndelivered,
    onStep,
    scrub,
    log,
    now,
  })
  onClose(() => sender.stop(drainMs()))
  const worker = new Worker({
    ...config,
    ...only,
    channels: channels.map(({ name }) => name),
    queue,
    store,
    replies: sender,
    plan: (work) =>
      metrics.measured(
        work,
        planAfterEarlier(
          planInRoots(
            work.message.options?.command
              ? planCommand(work, work.message.options.command, config, commandRuntime, credentials)
              : planTurn(work, config, agents, runtimes, channels, credentials, approvals),
            work.project,
            config,
            now,
          ),
          work,
          { gatewayId: id, ledger: store.ledger, pods, log, now },
        ),
      ),
    onSettled: ({ conversation, message, merged }) => {
      for (const { id: messageId } of [message, ...merged]) streams.settled(messageId)
      activity.changed()
      approvals.closeQuestions()
      archive.update(conversation)
    },
    onCancelled: ({ conversation, message }) => {
      channels.find(({ name }) => name === conversation.channel)?.forget?.(conversation.address, message.id)
    },
    onEvents: ({ conversation, message }, runId, events) => {
      const channel = channels.find(({ name }) => name === conversation.channel)
      // Whether it has anything to tell is known at its end.
      if (message.kind === 'heartbeat') return
      for (const { seq, event } of events) {
        const { id: messageId, platformId } = message
        channel?.show?.({ address: conversation.address, messageId, platformId, runId, seq, event })
      }
    },
    onRecorded: ({ message }, runId, events) => {
      streams.push(message.id, runId, events)
      activity.wrote(runId)
    },
    onStep,
    scrub,
    log,
    now,
    newId,
  })
  onClose(() => worker.stop(drainMs()))
  const isInstalled = async (name: BackendName): Promise<boolean> => (await agents.get(name)?.validate()) ?? false
  const modelsOf = (name: BackendName): string[] => agents.get(name)?.capabilities().supportedModels ?? []
  const commands = new ConversationCommands({
    config,
    agents,
    store,
    queue,
    worker,
    sessions,
    approvals,
    isInstalled,
    modelsOf,
    now,
    newId,
  })

  metrics.watch({
    queueDepth: () => store.inbox.countByState(),
    processes: async () => (await store.ledger.processesOf(id)).length,
  })

  const wake = (): void => {
    worker.wake()
    sender.wake()
    activity.changed()
  }

  const onTaken = (acceptance: Acceptance): void => {
    onStep('accepted')
    activity.changed()
    if (acceptance.status === 'accepted' && acceptance.interrupts !== undefined)
      worker.endMessage(acceptance.interrupts)
    if (acceptance.status !== 'refused') return
    sender.wake()
    archive.update({ id: acceptance.conversationId })
  }
  const hostOf = (channel: string): GatewayHost =>
    channelHost(channel, {
      config,
      store,
      queue,
      worker,
      commands,
      hooks,
      onTaken,
      wake,
      onUndelivered: tellUndelivered,
      now,
    })

  const parts: GatewayParts = {
    id,
    channels: channels.map(({ name }) => name),
    store,
    queue,
    agents,
    approvals,
    streams,
    activity,
    credentials,
    scrubber,
    metrics,
    wake,
    commands,
    hostOf,
    cancel: (messageId) => cancelMessage(messageId, store, queue, worker),
  }
  await beforeWork?.(parts)
  const house = { store, pods, log, now }
  await keepHouse(record, house)
  let isOpen = true
  let keeping: Promise<void> | undefined
  // A cluster that does not answer may take longer than the time between.
  const keepPods = (): Promise<void> =>
    (keeping ??= endRunsInPods(record, house).finally(() => {
      keeping = undefined
    }))
  const tell = (error: unknown): void => {
    if (isOpen) log.warn('housekeeping.failed', { error: messageOf(error) })
  }
  // Not waited for: the start of a gateway does not hang on a cluster.
  void keepPods().catch(tell)
  const housekeeping = setInterval(() => {
    approvals.closeQuestions()
    keepHouse(record, house).then(wake).then(keepPods).catch(tell)
  }, HOUSEKEEPING_MS)
  onClose(async () => {
    isOpen = false
    clearInterval(housekeeping)
  })
  onClose(await store.listen((cancelledId) => (cancelledId === undefined ? wake() : worker.endMessage(cancelledId))))
  for (const channel of channels) {
    onClose(() => channel.stop())
    await channel.start(hostOf(channel.name))
  }
  const scheduler = new Scheduler({
    config,
    channels: channels.map(({ name }) => name),
    hostOf,
    store,
    markdown,
    commands: commandRuntime,
    log,
    now,
  })
  onClose(() => scheduler.stop())
  // Who serves one conversation leaves the rest to a gateway that stays.
  if (address === undefined) scheduler.start()
  wake()
  approvals.closeQuestions()
  log.info('gateway.started', { id, store: store.engine, channels: channels.map(({ name }) => name) })
  onClose(async () => log.info('gateway.stopping', { id }))
  return {
    ...parts,
    scheduler,
    reconfigure: async (next) => {
      scrubber.add(secretsOfConfig(next))
      // First: this alone can fail, and then nothing has changed.
      if (!isDeepStrictEqual(config.projects, next.projects)) await keepProjects(next, store, now())
      const { changed, waiting } = applyConfig(config, next)
      if (changed.includes('hooks')) hooks.replace(config.hooks)
      if (changed.includes('codeAgentDefault')) agents.setDefault(config.codeAgentDefault)
      if (changed.length > 0) openAgents()
      return { changed, waiting }
    },
  }
}

/** The configuration file says which of its projects there are. */
async function keepProjects({ projects }: GatewayConfig, store: Store, now: number): Promise<void> {
  for (const project of projects) await store.projects.put(project, 'file', now)
  for (const { id, source } of await store.projects.list()) {
    if (source === 'file' && !projects.some((project) => project.id === id)) await store.projects.remove(id)
  }
}

/**
 * Looks whether the chosen agents are there and have a directory to work in, before anything else.
 *
 * Contract: throws `backend_missing` with the agent's name and path, or `config_invalid`.
 */
export async function requireBackend(config: GatewayConfig, environment: NodeJS.ProcessEnv, log: Log): Promise<void> {
  if (!isDirectory(config.workingDir)) {
    const advice = 'Make it, or set WORKING_DIR to another.'
    throw new GatewayError('config_invalid', `The working directory ${config.workingDir} does not exist. ${advice}`)
  }
  const { cwd } = replyOf(config) ?? {}
  if (cwd !== undefined && !isDirectory(cwd)) {
    const advice = 'Make it, or set inbound.reply.cwd to another.'
    throw new GatewayError(
      'config_invalid',
      `The directory ${cwd} for messages from WhatsApp does not exist. ${advice}`,
    )
  }
  for (const { name, executable } of neededAgents(config)) {
    const problem = await agentProblem(name, executable, config, { environment, log })
    if (problem === undefined) continue
    // It may come later, and what comes until then says so.
    if (isElsewhere(name, executable, config)) {
      log.warn('opencode-server.unavailable', { url: config.opencodeUrl, problem })
      continue
    }
    log.error('backend.missing', { backend: name, path: executable ?? config.backendCliPath })
    throw new GatewayError('backend_missing', `The agent ${name} cannot be used. ${problem}`)
  }
}

/** Whether it is a server that somebody else starts. */
function isElsewhere(name: BackendName, executable: string | undefined, config: GatewayConfig): boolean {
  return name === 'opencode' && executable === undefined && config.opencodeEnabled && !config.opencodeManaged
}

/** How messages from WhatsApp are answered, where it is served. */
function replyOf({ twilioAccountSid, inbound }: GatewayConfig): ReplyConfig | undefined {
  return twilioAccountSid === undefined ? undefined : inbound?.reply
}

function neededAgents(config: GatewayConfig): NeededAgent[] {
  const { agent, command } = replyOf(config) ?? {}
  const [executable] = command ?? []
  return [
    { name: config.agentBackend },
    ...(agent ? [{ name: agent.kind, ...(executable !== undefined && { executable }) }] : []),
  ]
}

interface NeededAgent {
  name: BackendName
  executable?: string
}

export async function cancelMessage(
  messageId: string,
  store: Store,
  queue: Queue,
  worker: Pick<Worker, 'cancel' | 'endMessage'>,
): Promise<'stopped' | 'dropped' | 'asked' | 'finished'> {
  const message = await store.inbox.get(messageId)
  if (message?.state !== 'open') return 'finished'
  if (await worker.cancel(message.conversationId, messageId)) return 'stopped'
  // Its turn may have come to its end first; a dead letter is kept.
  if ((await store.inbox.get(messageId))?.state !== 'open') return 'finished'
  const outcome = await queue.drop(messageId)
  if (outcome !== 'active') return outcome
  await store.inbox.requestCancel(messageId)
  // It may have been taken up here in this very moment.
  worker.endMessage(messageId)
  return 'asked'
}

function isOpenToOthers(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0
}

/** Makes the data directory, readable by its owner alone. One that is there is left as it is. */
export function makeHome(config: Pick<GatewayConfig, 'home'>): void {
  try {
    makePrivateDirectory(config.home)
  } catch (error) {
    const message = `The data directory ${config.home} cannot be made: ${messageOf(error)}. Set AETHEEL_HOME to another.`
    throw new GatewayError('store_unavailable', message, { cause: error })
  }
}
