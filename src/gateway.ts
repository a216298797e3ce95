// The composition root: the parts of a running gateway, and the order in which they start and stop.

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { ApprovalService } from './approvals/approval-service.js'
import { Archive } from './archive/archive.js'
import { databaseFile, isOpenToOthers } from './config/data-directory.js'
import type { GatewayConfig } from './config.js'
import type { ContinueDependencies } from './conversation/continuing.js'
import { ConversationCommands } from './conversation/conversation-commands.js'
import { within } from './core/async.js'
import { CredentialStore } from './credentials/credential-store.js'
import { KeyRing } from './credentials/key-ring.js'
import { createScrubber } from './credentials/scrubber.js'
import { messageOf } from './errors.js'
import type { Gateway, GatewayDependencies, GatewayParts } from './gateway-parts.js'
import { UploadedFiles } from './media/uploaded-files.js'
import { createMetrics } from './metrics.js'
import { startGuardian } from './processes/guardian.js'
import { thisProcess } from './processes/reaper.js'
import { syncConfiguredProjects } from './projects/configured-projects.js'
import { configuredPods } from './runtime/configured-pods.js'
import { openAgents } from './runtime/gateway-agents.js'
import { HookManager } from './runtime/hook-manager.js'
import { reconfigure } from './runtime/reconfigure.js'
import { Scheduler } from './schedule/scheduler.js'
import { openStore } from './store/store.js'
import { ActivityHub } from './streams/activity-hub.js'
import { StreamHub } from './streams/stream-hub.js'
import { channelHost, type GatewayHost } from './turns/accept.js'
import { Audience } from './turns/audience.js'
import { deleteConversation } from './turns/delete-conversation.js'
import { Sender } from './turns/deliver.js'
import { turnPlanner } from './turns/plan.js'
import { Queue } from './turns/queue.js'
import { deregister, ledgerOwner, Recovery } from './turns/recover.js'
import { stopMessage } from './turns/stop.js'
import { removeUntakenUploads } from './turns/untaken-uploads.js'
import { Worker } from './turns/work.js'

export { databaseFile, makeHome } from './config/data-directory.js'
export type { Gateway, GatewayDependencies, GatewayParts } from './gateway-parts.js'

type OnClose = (closer: () => unknown) => void

export async function startGateway(config: GatewayConfig, dependencies: GatewayDependencies): Promise<Gateway> {
  // Everything is closed in reverse order, even if the start fails half-way.
  const closers: Array<() => unknown> = []
  const stop = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) {
      try {
        await closer()
      } catch (error) {
        // One part that cannot be closed, for example without its database, must not keep the rest open.
        dependencies.log.warn('stop.incomplete', { error: messageOf(error) })
      }
    }
  }
  try {
    const gateway = await compose(config, dependencies, (closer) => closers.push(closer))
    return { ...gateway, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function compose(
  config: GatewayConfig,
  dependencies: GatewayDependencies,
  onClose: OnClose,
): Promise<Omit<Gateway, 'stop'>> {
  const { channels, log, address, onStep, beforeWork } = dependencies
  const base = await openBase(config, dependencies, onClose)
  const { self, store, scrubber, scrub, metrics, pods, credentials, hooks, drainMs, now } = base
  const { agents, sessions, markdown, commandRuntime } = openAgents(config, dependencies, base)
  const { registry, runtimes, isInstalled, modelsOf } = agents
  onClose(() => agents.stop())
  const archive = new Archive(join(config.home, 'archive'), store, log, now, scrub)
  onClose(() => archive.flush())
  const uploads = new UploadedFiles(join(config.home, 'uploads'))
  onClose(removeUntakenUploads({ store, uploads, log, now }))
  const streams = new StreamHub(store, now)
  const activity = new ActivityHub(store, streams, now)

  const names = channels.map(({ name }) => name)
  const told = onStep && { onStep }
  const shared = { config, gatewayId: self.id, store, scrubber, scrub, ...told, log, now, newId: randomUUID }
  const only = address === undefined ? {} : { address }
  for (const channel of channels) onClose(() => channel.close())
  const approvals = new ApprovalService({ ...shared, channels, onAsked: () => sender.wake() })
  const audience = new Audience({ channels, store, streams, activity, archive, hooks, approvals, log })
  const queue = new Queue(store, { ...config, ...shared, onDropped: audience.dropped })
  const { sent: onSent, undelivered: onUndelivered } = audience
  const sender = new Sender({ ...shared, ...only, channels, onSent, onUndelivered })
  onClose(() => sender.stop(drainMs()))
  const planParts = { ...shared, agents: registry, runtimes, commandRuntime, channels, credentials, pods }
  const worker = new Worker({
    ...config,
    ...shared,
    ...only,
    channels: names,
    queue,
    replies: sender,
    plan: turnPlanner({ ...planParts, ledger: store.ledger, approvals, metrics }),
    onEvents: audience.shown,
    onRecorded: audience.recorded,
    onSettled: audience.settled,
    onCancelled: audience.cancelled,
    onRetry: audience.retried,
  })
  onClose(() => worker.stop(drainMs()))
  const wake = (): void => {
    worker.wake()
    sender.wake()
    activity.changed()
  }
  const submit: ContinueDependencies['submit'] = (channel, ...message) => hostOf(channel).onMessage(...message)
  const commandParts = { agents: registry, isInstalled, modelsOf, queue, worker, sessions, approvals, channels, submit }
  const commands = new ConversationCommands({ ...shared, ...commandParts })
  const hostParts = { ...shared, queue, worker, sender, commands, hooks, audience, wake }
  const hostOf = (channel: string): GatewayHost => channelHost(channel, hostParts)
  metrics.watch({
    queueDepth: () => store.inbox.countByState(),
    processes: async () => (await store.ledger.processesOf(self.id)).length,
  })
  const parts: GatewayParts = {
    id: self.id,
    channels: names,
    agents: registry,
    uploads,
    ...{ store, queue, approvals, streams, activity, credentials, scrubber, metrics, wake, commands, hostOf },
    deleteConversation: (conversation, audit) =>
      deleteConversation(conversation, audit, { ...shared, archive, uploads, activity }),
    cancel: async (messageId) => (await stopMessage(messageId, { store, queue, worker })).kind,
  }
  await beforeWork?.(parts)

  const lookAgain = (): void => {
    wake()
    approvals.closeQuestions()
  }
  const recovery = new Recovery(self, { store, pods, log, now }, lookAgain)
  await recovery.start()
  onClose(() => recovery.stop())
  onClose(await store.listen((cancelledId) => (cancelledId === undefined ? wake() : worker.endMessage(cancelledId))))
  for (const channel of channels) {
    onClose(() => channel.stop())
    await channel.start(hostOf(channel.name))
  }
  const scheduler = new Scheduler({ ...shared, channels: names, hostOf, markdown, commands: commandRuntime })
  onClose(() => scheduler.stop())
  if (address === undefined) scheduler.start()
  lookAgain()
  log.info('gateway.started', { id: self.id, store: store.engine, channels: names })
  onClose(() => log.info('gateway.stopping', { id: self.id }))
  return { ...parts, scheduler, reconfigure: (next) => reconfigure(config, next, { ...base, agents }) }
}

/** The parts that everything else depends on. */
async function openBase(config: GatewayConfig, dependencies: GatewayDependencies, onClose: OnClose) {
  const { environment, log, scrubber = createScrubber(), metrics = createMetrics({ now: Date.now }) } = dependencies
  const now = Date.now
  const self = { ...thisProcess(), id: randomUUID(), startedAt: now(), seenAt: now() }
  const location = { file: databaseFile(config), databaseUrl: config.databaseUrl }
  const store = await openStore(location, log, metrics.storeAnswered)
  onClose(() => store.close())
  if (isOpenToOthers(config)) log.warn('home.open-to-others', { home: config.home, advice: 'chmod 700' })
  const owner = ledgerOwner(self, store, log)
  const pods = dependencies.pods ?? configuredPods(config, environment, { owner, scrubber })
  await store.ledger.announceGateway(self)
  onClose(() => deregister(self.id, store))
  await syncConfiguredProjects(config, store, now())
  const keyRing = new KeyRing({ home: config.home, masterKey: environment['AETHEEL_MASTER_KEY'], scrubber })
  const credentials = new CredentialStore({ store, keyRing, scrubber, now })
  for (const { message } of await credentials.hideAll()) log.warn('credential.unreadable', { message })
  const guardian = startGuardian(self.id, log)
  onClose(() => guardian.stop())
  const { agentEnvPass: passVariables } = config
  const workingDir = (): string => config.workingDir
  const hooks = new HookManager(config.hooks, { log, environment, passVariables, workingDir, now, owner, scrubber })
  const drainMs = drainClock(config, now)
  onClose(() => hooks.stop())
  onClose(() => within(drainMs(), hooks.drained()))
  const scrub = (text: string): string => scrubber.scrub(text)
  return { self, store, owner, pods, credentials, hooks, scrubber, scrub, metrics, drainMs, now }
}

/** The time left to stop in, counted from the first call. */
function drainClock(config: Pick<GatewayConfig, 'drainTimeoutMs'>, now: () => number): () => number {
  let stoppingSince: number | undefined
  return () => {
    stoppingSince ??= now()
    return Math.max(0, config.drainTimeoutMs - (now() - stoppingSince))
  }
}
