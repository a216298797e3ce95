/** The contract between the gateway and a cluster, which is reached by `kubectl`. */

import type { ProcessExit } from '../processes/local-process.js'
import type { ProcessOwner } from '../processes/process-owner.js'

/** Which container an agent works in. `name` or `selector` is given, and not both. */
export interface PodAddress {
  /** Of the kubeconfig; left out, its current one. */
  context?: string
  /** Left out, that of the context. */
  namespace?: string
  name?: string
  /** Labels, as `kubectl get -l` takes them: the first pod by name that is ready. */
  selector?: string
  /** Left out, the first one, or the one that the pod itself names as its default. */
  container?: string
}

/** How the parts of an address look. They stand on the command line of kubectl: none begins with a dash. */
export const POD_WORDS = {
  name: /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/,
  context: /^[^\s\p{Cc}-][^\s\p{Cc}]*$/u,
  selector: /^[^\s\p{Cc}-][^\p{Cc}]*$/u,
}

/** Where agents in pods work unless something else is said. */
export const POD_DIRECTORY = '/workspace'

/**
 * What keeps an agent in a pod from its work.
 *
 * - `pod_not_found`: no such pod, or none that the selector means
 * - `pod_not_running`: it is there, but not ready for work
 * - `pod_gone`: it was evicted, deleted or restarted during the run
 * - `container_not_found`: the pod has no such container
 * - `cli_missing`: the image has not the agent's command line
 * - `directory_missing`: the directory is not there, /tmp cannot be written to, or a needed file cannot be read
 * - `forbidden`: the cluster does not let us
 * - `unreachable`: the cluster does not answer, or kubectl cannot be used
 * - `stream_lost`: the connection ended without a word on how the agent did
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

/** A pod with the label by which projects are discovered. */
export interface LabelledPod {
  address: PodAddress
  /** The id that its project gets: the same for each pod of a deployment. */
  projectId: string
  /** What the label says, as it stands there. */
  provider: string
  /** It is ending or has ended: another one may come in its place. */
  isEnding?: true
}

/** One container that answers. */
export interface Pod {
  /** For people: `pod x in namespace y`. */
  title: string
  /** The one that was found, by its name and with everything filled in. */
  address: PodAddress
  /** The environment that the container gives to what runs in it. */
  environment: Record<string, string>
  /** What `executable --version` prints; undefined when it is not there or does not end well. Kept for the life of the
   *  container. Contract: rejects with a `PodError` when nobody can tell. */
  version(executable: string, signal: AbortSignal): Promise<string | undefined>
  /** Undefined when there is no such file. What is asked for at once is asked of the cluster at once. Contract: rejects
   *  with a `PodError`, also when the file cannot be read or is larger than a megabyte. */
  readFile(path: string, signal: AbortSignal): Promise<string | undefined>
  /** The names in a directory; none when there is no such directory. Otherwise as `readFile`. */
  list(directory: string, signal: AbortSignal): Promise<string[]>
  start(options: PodProcessOptions): PodProcess
}

export interface PodProcessOptions {
  executable: string
  args: string[]
  directory: string
  /** Set whatever the container says. */
  environment: Record<string, string>
  /** Set where the container says nothing. */
  defaults: Record<string, string>
  stdin: string
  files: PodFile[]
  /** Of a file that the process leaves among `files` when all goes as intended. */
  expects?: string
  runId: string
  owner?: ProcessOwner
  stopSignal: NodeJS.Signals
  /** Contract: returns at once. */
  onStdout(chunk: Buffer): void
  onStderr(chunk: Buffer): void
}

/** Names are below `podFilesPath(runId)` and gone with the run; a directory is made where it is not there, and stays. */
export type PodFile = { name: string; content: string } | { name: string; linkTo: string } | { directory: string }

export type PodExit = PodProcessExit | Extract<ProcessExit, { spawnError: Error }> | PodLoss

export interface PodProcessExit {
  exitCode: number
  /** Whether the file that was expected is there. */
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
  /** What is read of a container to open it, or of its files, is of no run, changes nothing and ends by itself: it goes on
   *  for whoever asks next when the signal comes. Contract: rejects with a `PodError`. */
  open(address: PodAddress, signal: AbortSignal): Promise<Pod>
  /** Ends everything of a run and removes its files. Contract: never rejects; whether nothing of it is left, also because
   *  there is no such pod any more. */
  endRun(address: PodAddress, runId: string): Promise<boolean>
  /** Those with the label, in the namespace or, where it is `*`, in all. Contract: rejects with a `PodError`. */
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

/** Where the files of a run are in its pod. */
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

/** Where a session is at home: the same text for the same directory of the same pod, and never a path of this machine. */
export function podDirectory({ context, namespace, name, selector, container }: PodAddress, directory: string): string {
  const parts = [context, namespace, name ?? selector, container].map((part) => part ?? '')
  return `pod:${parts.join(':')}:${directory}`
}
