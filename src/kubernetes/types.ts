/** The contract between the gateway and a cluster, which it reaches through `kubectl`. */

import type { ProcessExit } from '../processes/local-process.js'
import type { ProcessOwner } from '../processes/process-owner.js'

/** Which container an agent works in. Exactly one of `name` and `selector` is set. */
export interface PodAddress {
  /** In the kubeconfig. Default: the current one. */
  context?: string
  /** Default: the context's. */
  namespace?: string
  name?: string
  /** Labels, as for `kubectl get -l`: the first pod by name that is ready. */
  selector?: string
  /** Default: the pod's default container, else its first. */
  container?: string
}

/** The parts of an address. They go on kubectl's command line, so none begins with a dash. */
export const POD_PATTERNS = {
  name: /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/,
  context: /^[^\s\p{Cc}-][^\s\p{Cc}]*$/u,
  selector: /^[^\s\p{Cc}-][^\p{Cc}]*$/u,
}

/** The default working directory in pods. */
export const POD_DIRECTORY = '/workspace'

/**
 * Why an agent in a pod cannot work.
 *
 * - `pod_not_found`: no such pod, or none that matches the selector
 * - `pod_not_running`: it exists but is not ready for work
 * - `pod_gone`: it was evicted, deleted or restarted during the run
 * - `container_not_found`: the pod has no such container
 * - `cli_missing`: the image does not have the agent's CLI
 * - `directory_missing`: the directory does not exist, /tmp is not writable, or a needed file is not readable
 * - `forbidden`: the cluster denies access
 * - `unreachable`: the cluster does not answer, or kubectl cannot be used
 * - `stream_lost`: the connection ended before the agent's end was reported
 */
export type PodProblem =
  | 'pod_not_found'
  | 'pod_not_running'
  | 'pod_gone'
  | 'container_not_found'
  | 'cli_missing'
  | 'directory_missing'
  | 'forbidden'
  | 'unreachable'
  | 'stream_lost'

/** A pod with the discovery label. */
export interface LabelledPod {
  address: PodAddress
  /** The id for its project: the same for every pod of a Deployment. */
  projectId: string
  /** The label's value, unchanged. */
  provider: string
  /** It is terminating or has terminated; another may replace it. */
  isEnding?: true
}

/** One container that answers. */
export interface Pod {
  /** For people: `pod x in namespace y`. */
  title: string
  /** The pod that was found, by name and with everything filled in. */
  address: PodAddress
  /** What the container sets for every process in it. */
  environment: Record<string, string>
  /** The output of `executable --version`; undefined if it is missing or fails. Cached for the life of the container.
   *  Contract: rejects with a `PodError` if it cannot be determined. */
  version(executable: string, signal: AbortSignal): Promise<string | undefined>
  /** Undefined if there is no such file. Concurrent reads share one request. Contract: rejects with a `PodError`, which
   *  includes files that are unreadable or larger than a megabyte. */
  readFile(path: string, signal: AbortSignal): Promise<string | undefined>
  /** The names in a directory; empty if it does not exist. Otherwise like `readFile`. */
  list(directory: string, signal: AbortSignal): Promise<string[]>
  start(options: PodProcessOptions): PodProcess
}

export interface PodProcessOptions {
  executable: string
  args: string[]
  directory: string
  /** Overrides the container's. */
  environment: Record<string, string>
  /** Applies where the container sets nothing. */
  defaults: Record<string, string>
  stdin: string
  files: PodFile[]
  /** The name of a file that the process leaves among `files` on success. */
  expects?: string
  runId: string
  owner?: ProcessOwner
  stopSignal: NodeJS.Signals
  /** Contract: returns at once. */
  onStdout(chunk: Buffer): void
  onStderr(chunk: Buffer): void
}

/** Names are relative to `podFilesPath(runId)` and are removed with the run; a `directory` is created if missing, and
 *  stays. */
export type PodFile = { name: string; content: string } | { name: string; linkTo: string } | { directory: string }

export type PodExit = PodProcessExit | Extract<ProcessExit, { spawnError: Error }> | PodLoss

export interface PodProcessExit {
  exitCode: number
  /** Whether the expected file exists. */
  hasExpected: boolean
}

export interface PodLoss {
  problem: PodProblem
  message: string
}

export interface PodProcess {
  /** Contract: never rejects; settles when nothing of the run is alive in the pod, or the pod is out of reach. */
  ended: Promise<PodExit>
  stop(): void
}

export interface Pods {
  /** Reads that open a container, or its files, belong to no run and change nothing: after the signal they continue for
   *  the next caller. Contract: rejects with a `PodError`. */
  open(address: PodAddress, signal: AbortSignal): Promise<Pod>
  /** Ends a whole run and removes its files. Contract: never rejects; true if nothing of it is left, even because the pod
   *  is gone. */
  endRun(address: PodAddress, runId: string): Promise<boolean>
  /** Pods with the label, in the namespace, or in all if it is `*`. Contract: rejects with a `PodError`. */
  labelled(label: string, where: { context?: string; namespace?: string }): Promise<LabelledPod[]>
  /** What an operator should know about kubectl, one sentence each. */
  problems(): Promise<string[]>
}

/** Why a pod cannot be used; the message says what to do. */
export class PodError extends Error {
  constructor(
    readonly problem: PodProblem,
    message: string,
  ) {
    super(message)
    this.name = 'PodError'
  }
}

/** The directory of a run's files in its pod. */
export function podFilesPath(runId: string): string {
  return `/tmp/aetheel-run-${runId}`
}

/** For people. */
export function describePod({ context, namespace, name, selector, container }: PodAddress): string {
  const pod = name === undefined ? `the pod with ${selector}` : `the pod ${name}`
  const parts = [
    ...(container === undefined ? [] : [`container ${container}`]),
    ...(namespace === undefined ? [] : [`namespace ${namespace}`]),
    ...(context === undefined ? [] : [`context ${context}`]),
  ]
  return parts.length === 0 ? pod : `${pod} (${parts.join(', ')})`
}

/** Identifies a session's directory in a pod: equal for the same directory of the same pod, and never a local path. */
export function podDirectory({ context, namespace, name, selector, container }: PodAddress, directory: string): string {
  const parts = [context, namespace, name ?? selector, container].map((part) => part ?? '')
  return `pod:${parts.join(':')}:${directory}`
}

/** The plain directory, from a result of `podDirectory` or a path on this machine. */
export function directoryWithin(directory: string): string {
  return directory.startsWith('pod:') ? directory.replace(/^pod:(?:[^:]*:){4}/, '') : directory
}
