import { randomBytes, randomUUID } from 'node:crypto'
import { abortable } from '../core/async.js'
import { defined } from '../core/defined.js'
import { oneLine } from '../core/one-line.js'
import { z } from 'zod'
import { compareVersions, parseVersion } from '../core/versions.js'
import type { ProcessOwner } from '../processes/process-owner.js'
import { ContainerInspector } from './container-inspector.js'
import {
  execArgs,
  Kubectl,
  type KubectlDependencies,
  type KubectlOutcome,
  requireAddress,
  scopeArgs,
} from './kubectl.js'
import { labelledPods } from './labelled-pods.js'
import { POD_LIMITS, type PodLimits, startInPod } from './pod-process.js'
import { errorFromStderr, podError } from './pod-problems.js'
import {
  containerOf,
  instanceOf,
  isReady,
  lossOf,
  obstacleIn,
  parsePod,
  parsePods,
  type PodState,
} from './pod-state.js'
import { END_SCRIPT, LOADER } from './supervisor.js'
import {
  describePod,
  type LabelledPod,
  type Pod,
  POD_PATTERNS,
  type PodAddress,
  PodError,
  type PodProcess,
  type PodProcessOptions,
  type Pods,
} from './types.js'

export interface PodsDependencies extends Omit<KubectlDependencies, 'ownerId'> {
  owner?: ProcessOwner
  limits?: Partial<PodLimits>
  /** Receives the environment of each container that is opened. */
  onEnvironment?(environment: Record<string, string>): void
}

export function createPods(dependencies: PodsDependencies): Pods {
  return new ClusterPods(dependencies)
}

/** Older ones speak only SPDY, which newer clusters are about to drop. */
const OLDEST_KUBECTL = '1.30.0'
const MAX_CACHED = 500
const VERSION_CHARACTERS = 10_000
/** How much of an answer that is not valid JSON is shown. */
const SHOWN_CHARACTERS = 100

/** A container that answered, and what is known about it. */
interface FoundContainer {
  address: PodAddress & { name: string; container: string }
  instance: string
  inspector: ContainerInspector
  versions: Map<string, string | undefined>
}

class ClusterPods implements Pods {
  readonly #kubectl: Kubectl
  readonly #limits: PodLimits
  readonly #onEnvironment: (environment: Record<string, string>) => void
  readonly #found = new Map<string, { until: number; found: Promise<FoundContainer> }>()
  #current: { until: number; name: Promise<string | undefined> } | undefined
  readonly #containers = new Map<string, Pick<FoundContainer, 'inspector' | 'versions'>>()

  constructor({ owner, limits, onEnvironment = () => {}, ...dependencies }: PodsDependencies) {
    this.#onEnvironment = onEnvironment
    this.#kubectl = new Kubectl({ ...dependencies, ownerId: owner?.id })
    this.#limits = { ...POD_LIMITS, ...limits }
  }

  async open(address: PodAddress, signal: AbortSignal): Promise<Pod> {
    requireAddress(address)
    const key = JSON.stringify(address)
    const found = await inTime(this.#findCached(key, address), signal, address)
    const environment = await inTime(found.inspector.environment(), signal, address)
    this.#onEnvironment(environment)
    const start = (options: PodProcessOptions) => this.#start(key, found, environment, options)
    return {
      title: describePod(found.address),
      address: found.address,
      environment,
      version: (executable, signal) => readVersion(found, start, executable, signal),
      readFile: (path, signal) => inTime(found.inspector.readFile(path), signal, found.address),
      list: (directory, signal) => inTime(found.inspector.list(directory), signal, found.address),
      start,
    }
  }

  async endRun(address: PodAddress, runId: string): Promise<boolean> {
    // No run ever has such an id.
    if (!/^[\w-]+$/.test(runId)) return true
    const nonce = randomBytes(16).toString('hex')
    try {
      requireAddress(address)
      const { address: named } = address.name === undefined ? await this.#find(address) : { address }
      const args = execArgs(named, ['sh', '-c', LOADER, 'aetheel-end'])
      const { stderr } = await this.#run(args, `${END_SCRIPT}${nonce}\n${runId}\n`)
      return stderr.includes(`\x1e${nonce} ended\x1e`) || (await this.#isGone(named, errorFromStderr(named, stderr)))
    } catch (error) {
      if (error instanceof PodError) return NOTHING_ALIVE.has(error.problem)
      throw error
    }
  }

  async labelled(label: string, where: { context?: string; namespace?: string }): Promise<LabelledPod[]> {
    if (!/^[A-Za-z0-9][\w./-]*$/.test(label)) {
      throw new PodError('pod_not_found', `${JSON.stringify(label)} is not a label key.`)
    }
    const { namespace, ...cluster } = where
    // `requireAddress` needs a name or a selector.
    requireAddress({ ...cluster, ...(namespace !== undefined && namespace !== '*' && { namespace }), selector: label })
    const states = await this.#list({ ...where, selector: label })
    return labelledPods(states, label, where.context)
  }

  async problems(): Promise<string[]> {
    try {
      const { stdout, stderr } = await this.#run(['version', '--client', '--output=json'])
      const version = versionOf(stdout.toString('utf8'))
      if (version === undefined) return [`The version of kubectl could not be read: ${stderr.trim().slice(0, 200)}`]
      if (compareVersions(version, OLDEST_KUBECTL) >= 0) return []
      return [`kubectl ${version} is older than 1.30 and reaches pods only over SPDY. Update it to 1.30 or newer.`]
    } catch (error) {
      if (error instanceof PodError) return [error.message]
      throw error
    }
  }

  #start(
    key: string,
    found: FoundContainer,
    environment: Record<string, string>,
    options: PodProcessOptions,
  ): PodProcess {
    const process = startInPod(
      {
        kubectl: this.#kubectl,
        address: found.address,
        environment,
        limits: this.#limits,
        endRun: (runId) => this.endRun(found.address, runId),
        findLoss: () => this.#findLoss(found),
      },
      options,
    )
    const ended = process.ended.then((exit) => {
      // The next run looks again.
      if ('problem' in exit) this.#found.delete(key)
      return exit
    })
    return { ended, stop: process.stop }
  }

  #findCached(key: string, address: PodAddress): Promise<FoundContainer> {
    const known = this.#found.get(key)
    if (known && known.until > Date.now()) return known.found
    const found = this.#find(address)
    keep(this.#found, key, { until: Date.now() + this.#limits.freshMs, found })
    found.catch(() => {
      // A newer lookup may have replaced it.
      if (this.#found.get(key)?.found === found) this.#found.delete(key)
    })
    return found
  }

  async #find(given: PodAddress): Promise<FoundContainer> {
    const address = { ...given, ...(await this.#cluster(given)) }
    const state = address.name === undefined ? await this.#firstReady(address) : await this.#get(address)
    const container = containerOf(address, state) ?? ''
    const { name, namespace } = state.metadata
    const { context } = address
    const named = { ...defined({ context }), namespace, name, container }
    const obstacle = obstacleIn(state, named, container)
    if (obstacle) throw obstacle
    const instance = instanceOf(state, container)
    const key = `${context ?? ''}/${instance}`
    const known = this.#containers.get(key) ?? {
      inspector: new ContainerInspector(this.#kubectl, named, this.#limits.answerMs),
      versions: new Map(),
    }
    keep(this.#containers, key, known)
    return { address: named, instance, ...known }
  }

  /** Pins the current context by name, since it may have changed by the time a run is ended. None inside a cluster. */
  async #cluster({ context }: PodAddress): Promise<Pick<PodAddress, 'context'>> {
    if (context !== undefined) return { context }
    if (!this.#current || this.#current.until <= Date.now()) {
      const name = this.#currentContext()
      this.#current = { until: Date.now() + this.#limits.freshMs, name }
      name.catch(() => (this.#current = undefined))
    }
    const name = await this.#current.name
    return name === undefined ? {} : { context: name }
  }

  async #currentContext(): Promise<string | undefined> {
    const { exitCode, stdout } = await this.#run(['config', 'current-context'])
    const name = stdout.toString('utf8').trim()
    return exitCode === 0 && POD_PATTERNS.context.test(name) ? name : undefined
  }

  async #firstReady(address: PodAddress): Promise<PodState> {
    const states = await this.#list(address)
    const ready = states.find(isReady)
    if (ready) return ready
    if (states.length === 0) throw podError('pod_not_found', address, 'was not found: no pod has these labels')
    throw podError('pod_not_running', address, `is not ready: none of ${states.length} with these labels is`)
  }

  async #get(address: PodAddress): Promise<PodState> {
    const args = ['get', 'pod', ...scopeArgs(address), '--output=json', address.name ?? '']
    return this.#parse(address, await this.#run(args), parsePod)
  }

  async #list(address: PodAddress): Promise<PodState[]> {
    const args = ['get', 'pods', ...scopeArgs(address), '--output=json', `--selector=${address.selector ?? ''}`]
    return this.#parse(address, await this.#run(args), parsePods)
  }

  #parse<T>(address: PodAddress, { exitCode, stdout, stderr }: KubectlOutcome, parse: (json: string) => T): T {
    if (exitCode !== 0) {
      throw errorFromStderr(address, stderr) ?? podError('unreachable', address, 'cannot be inspected', { stderr })
    }
    const answer = stdout.toString('utf8')
    try {
      return parse(answer)
    } catch (error) {
      const shown = answer.trim() === '' ? 'nothing' : `"${oneLine(answer, SHOWN_CHARACTERS)}"`
      const what = `cannot be inspected: kubectl answered with ${shown}`
      throw Object.assign(podError('unreachable', address, what), { cause: error })
    }
  }

  /** What happened to a container in which a run had started. */
  async #findLoss({ address, instance }: FoundContainer): Promise<PodError | undefined> {
    try {
      const loss = lossOf(await this.#get(address), address.container, instance)
      return loss === undefined ? undefined : podError('pod_gone', address, loss)
    } catch (error) {
      if (!(error instanceof PodError)) throw error
      return error.problem === 'pod_not_found' ? podError('pod_gone', address, 'was deleted during the run') : undefined
    }
  }

  async #isGone(address: PodAddress, error: PodError | undefined): Promise<boolean> {
    if (error) return NOTHING_ALIVE.has(error.problem)
    const state = await this.#get(address)
    return obstacleIn(state, address, containerOf(address, state) ?? '') !== undefined
  }

  #run(args: string[], stdin?: string): Promise<KubectlOutcome> {
    return this.#kubectl.run(args, this.#limits.answerMs, stdin)
  }
}

/** With these, nothing can be alive in the container. */
const NOTHING_ALIVE = new Set<string>(['pod_not_found', 'pod_not_running', 'container_not_found'])

async function readVersion(
  { address, versions }: FoundContainer,
  start: (options: PodProcessOptions) => PodProcess,
  executable: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (versions.has(executable)) return versions.get(executable)
  let printed = ''
  const child = start({
    executable,
    args: ['--version'],
    directory: '/',
    environment: {},
    defaults: {},
    stdin: '',
    files: [],
    runId: `version-${randomUUID()}`,
    stopSignal: 'SIGTERM',
    onStdout: (chunk) => {
      printed = (printed + chunk.toString('utf8')).slice(0, VERSION_CHARACTERS)
    },
    onStderr: () => {},
  })
  if (signal.aborted) child.stop()
  signal.addEventListener('abort', child.stop)
  // Even after a stop: when the turn ends, nothing of it may be alive in the pod.
  const exit = await child.ended
  signal.removeEventListener('abort', child.stop)
  if (signal.aborted) throw tooLate(address)
  if ('spawnError' in exit) throw podError('unreachable', address, `cannot be used: ${exit.spawnError.message}`)
  if ('problem' in exit) {
    if (exit.problem === 'cli_missing') return undefined
    throw new PodError(exit.problem, exit.message)
  }
  versions.set(executable, exit.exitCode === 0 ? printed : undefined)
  return versions.get(executable)
}

function versionOf(json: string): string | undefined {
  const schema = z.looseObject({ clientVersion: z.looseObject({ gitVersion: z.string() }) })
  try {
    return parseVersion(schema.parse(JSON.parse(json)).clientVersion.gitVersion)
  } catch {
    return undefined // Not kubectl's output.
  }
}

/** Contract: rejects with a `PodError` if the signal fires first; the work continues for other waiters. */
async function inTime<T>(work: Promise<T>, signal: AbortSignal, address: PodAddress): Promise<T> {
  try {
    return await abortable(signal, () => work)
  } catch (error) {
    throw signal.aborted ? tooLate(address) : error
  }
}

function tooLate(address: PodAddress): PodError {
  return podError('unreachable', address, 'did not answer in time')
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > MAX_CACHED && oldest !== undefined) map.delete(oldest)
}
