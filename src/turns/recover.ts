// What each gateway does, at start and every minute, about dead gateways on its database.
//
// Invariants:
// - No message is worked on twice at once. What a dead gateway left running on this machine is ended before its
//   messages are released. What it left in a pod is ended before its message is retried (`afterEarlierAttempts`), not
//   here: a cluster that does not answer must not delay the rest.
// - A run in a pod stays on record until it is known to have ended, or for a day after its end.

import { within } from '../core/async.js'
import { messageOf } from '../errors.js'
import type { PodAddress, Pods } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import type { ProcessOwner } from '../processes/process-owner.js'
import { endOrphans, isProcessAlive, type LedgerEntry } from '../processes/reaper.js'
import { removeRunDirectories } from '../processes/run-directory.js'
import type { GatewayRecord } from '../store/ledger.js'
import type { Store } from '../store/store.js'

export interface RecoveryDependencies {
  store: Store
  pods: Pick<Pods, 'endRun'>
  log: Log
  now: () => number
}

const EVERY_MS = 60_000
/** A live gateway would have announced itself within this time. */
const SILENCE_MS = 2 * EVERY_MS
/** A gateway silent for this long does not come back under its id. */
const FORGET_GATEWAY_MS = 24 * 3_600_000
/** A pod unreachable for this long is gone, or its supervisor has ended the run. */
const GIVE_UP_RUN_MS = 24 * 3_600_000
/** No platform redelivers a message after this long. */
const FORGET_CLAIMS_MS = 7 * 24 * 3_600_000
const END_IN_POD_MS = 30_000
/** Each takes up to three kubectl processes. */
const MAX_CONCURRENT = 4

/** Ends processes that dead gateways left on this machine, and releases their messages and replies. */
export async function recoverOrphans(self: GatewayRecord, dependencies: RecoveryDependencies): Promise<void> {
  const { store, log, now } = dependencies
  await store.ledger.announceGateway({ ...self, seenAt: now() })
  await store.channelValues.forgetClaims(now() - FORGET_CLAIMS_MS)
  for (const { gateway, state } of await lostGateways(self, dependencies)) {
    const entries = await store.ledger.processesOf(gateway.id)
    const inPods = entries.filter(({ pod }) => pod !== undefined)
    const isForgotten = now() - gateway.seenAt > FORGET_GATEWAY_MS
    if (state === 'dead') {
      const settled = await endOrphans(entries, log)
      await store.ledger.remove(settled.filter(({ pod }) => pod === undefined).map(({ runId }) => runId))
      if (settled.length < entries.length) continue
      removeRunDirectories(gateway.id, (path, error) => log.warn('run.files-left', { path, error: messageOf(error) }))
      const messages = await store.jobs.expireLeases(gateway.id, now())
      await store.outbox.expireLeases(gateway.id, now())
      // Logged once, not every round while something may be left in a pod.
      if (messages > 0 || inPods.length === 0) log.info('gateway.taken-over', { gatewayId: gateway.id, messages })
    }
    if (isForgotten && inPods.length > 0) log.warn('pod.runs-left', { runIds: inPods.map(({ runId }) => runId) })
    if (isForgotten || (state === 'dead' && inPods.length === 0)) await store.ledger.removeGateway(gateway.id)
  }
}

/**
 * Ends runs left in pods, which any machine can reach: those of dead gateways, and those of turns that ended while
 * their cluster did not answer.
 */
export async function endRunsInPods(self: GatewayRecord, dependencies: RecoveryDependencies): Promise<void> {
  const { store, log, now } = dependencies
  const lost = await lostGateways(self, dependencies)
  const entries = (await Promise.all(lost.map(({ gateway }) => store.ledger.processesOf(gateway.id)))).flat()
  const { ended, left } = await endInPods([...entries, ...(await store.ledger.overInPods())], dependencies)
  await store.ledger.remove(ended)
  if (ended.length > 0) log.warn('pod.runs-ended', { runIds: ended })
  const unknown = left.map(({ runId }) => runId)
  const old = new Set((await store.ledger.overInPods(now() - GIVE_UP_RUN_MS)).map(({ runId }) => runId))
  const givenUp = unknown.filter((runId) => old.has(runId))
  await store.ledger.remove(givenUp)
  if (givenUp.length > 0) log.warn('pod.runs-left', { runIds: givenUp })
  if (unknown.length > givenUp.length) {
    log.warn('pod.runs-unknown', { runIds: unknown.filter((runId) => !old.has(runId)) })
  }
}

/** Called when a gateway stops. Runs it could not end in pods stay on record for other gateways. */
export async function deregister(id: string, { ledger }: Pick<Store, 'ledger'>): Promise<void> {
  const entries = await ledger.processesOf(id)
  await ledger.remove(entries.filter(({ pod }) => pod === undefined).map(({ runId }) => runId))
  if (entries.every(({ pod }) => pod === undefined)) await ledger.removeGateway(id)
}

/** Contract: never rejects, and settles in bounded time even if no cluster answers: half a minute for a few runs. */
export async function endInPods(
  entries: LedgerEntry[],
  { pods }: Pick<RecoveryDependencies, 'pods'>,
): Promise<{ ended: string[]; left: Array<{ runId: string; address: PodAddress }> }> {
  const byRun = new Map(entries.map(({ runId, pod }) => [runId, pod]))
  const runs = [...byRun].flatMap(([runId, pod]) =>
    pod === undefined ? [] : [{ runId, address: JSON.parse(pod) as PodAddress }],
  )
  const ended: string[] = []
  const waiting = runs.values()
  const endNext = async (): Promise<void> => {
    for (const { runId, address } of waiting) {
      if (await within(END_IN_POD_MS, pods.endRun(address, runId))) ended.push(runId)
    }
  }
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, endNext))
  return { ended, left: runs.filter(({ runId }) => !ended.includes(runId)) }
}

/** Gateways known to be dead, and silent ones on other machines. */
async function lostGateways(
  self: GatewayRecord,
  { store, now }: RecoveryDependencies,
): Promise<Array<{ gateway: GatewayRecord; state: 'dead' | 'elsewhere' }>> {
  return (await store.ledger.gateways()).flatMap((gateway) => {
    const state = gateway.id === self.id ? 'alive' : isProcessAlive(gateway)
    if (state === 'alive') return []
    // It may belong to another machine of the same name; a live one would have announced itself.
    const isElsewhere = state === 'elsewhere' || gateway.bootId !== self.bootId
    return isElsewhere && now() - gateway.seenAt < SILENCE_MS ? [] : [{ gateway, state }]
  })
}

/** Records each process in the ledger before it gets its input, and removes it when nothing of it is alive. */
export function ledgerOwner(self: GatewayRecord, { ledger }: Pick<Store, 'ledger'>, log: Log): ProcessOwner {
  return {
    id: self.id,
    started: (process) => ledger.add({ ...self, ...process, ownerId: self.id }),
    ended: (runId) =>
      ledger.remove([runId]).catch((error: unknown) => {
        log.warn('ledger.not-written', { runId, error: messageOf(error) })
      }),
  }
}

export class Recovery {
  #timer: NodeJS.Timeout | undefined
  #inPods: Promise<void> | undefined
  #isStopped = false

  constructor(
    private readonly self: GatewayRecord,
    private readonly dependencies: RecoveryDependencies,
    /** Called after each round, when there may be work. */
    private readonly onRound: () => void,
  ) {}

  /** Contract: rejects if the database does not answer. Does not wait for clusters. */
  async start(): Promise<void> {
    await recoverOrphans(this.self, this.dependencies)
    void this.#endInPods().catch((error: unknown) => this.#warn(error))
    this.#timer = setInterval(() => {
      recoverOrphans(this.self, this.dependencies)
        .then(this.onRound)
        .then(() => this.#endInPods())
        .catch((error: unknown) => this.#warn(error))
    }, EVERY_MS)
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
  }

  /** One at a time: an unresponsive cluster may take longer than the interval. */
  #endInPods(): Promise<void> {
    this.#inPods ??= endRunsInPods(this.self, this.dependencies).finally(() => {
      this.#inPods = undefined
    })
    return this.#inPods
  }

  #warn(error: unknown): void {
    if (!this.#isStopped) this.dependencies.log.warn('housekeeping.failed', { error: messageOf(error) })
  }
}
