// The one place that knows how kubectl is called. No text of a person stands on its command line.

import { randomUUID } from 'node:crypto'
import { delimiter, resolve } from 'node:path'
import { agentEnvironment } from '../core/agent-environment.js'
import { BoundedText } from '../processes/bounded-text.js'
import { findExecutable } from '../processes/find-executable.js'
import { type LocalProcess, type ProcessOptions, startProcess } from '../processes/local-process.js'
import { OWNER_MARKER } from '../processes/process-owner.js'
import { NO_KUBECTL, podError } from './pod-problems.js'
import { POD_WORDS, type PodAddress, PodError } from './types.js'

/** Beside what any program gets: how it finds the cluster, and what the plug-ins that log it in need. */
const KUBECTL_VARIABLES = [
  ...['KUBE*', 'AWS_*', 'AZURE_*', 'AAD_*', 'MSI_*', 'IDENTITY_*', 'ARM_*'],
  ...['GOOGLE_*', 'CLOUDSDK_*', 'USE_GKE_GCLOUD_AUTH_PLUGIN', 'GCE_METADATA_HOST'],
  ...['OCI_*', 'DIGITALOCEAN_*', 'LINODE_*', 'IBMCLOUD_*', 'OS_*', 'VAULT_*', 'TSH_*', 'TELEPORT_*'],
]

export interface KubectlDependencies {
  /** The operator's environment; filtered before kubectl sees it. */
  environment: NodeJS.ProcessEnv
  /** Further variables to pass on, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  /** A name looked up in PATH, or a path; left out, `kubectl`. */
  kubectlPath?: string
  /** Of whoever answers for what is started: in the environment, so that it is found. */
  ownerId?: string
}

export interface KubectlOutcome {
  exitCode: number
  stdout: Buffer
  stderr: string
}

type StartOptions = Pick<ProcessOptions, 'stdin' | 'keepsInput' | 'runId' | 'owner' | 'onStdout' | 'onStderr'>

/** More than any cluster lists: what goes on longer is not an answer. */
const MOST_OUTPUT_BYTES = 256 * 1024 * 1024

export class Kubectl {
  constructor(private readonly dependencies: KubectlDependencies) {}

  /** Contract: throws a `PodError` when there is no kubectl. */
  start(args: string[], options: StartOptions): LocalProcess {
    const { environment, passVariables, kubectlPath = 'kubectl', ownerId } = this.dependencies
    const executable = findExecutable(kubectlPath, environment['PATH'] ?? '')
    if (executable === undefined) throw new PodError('unreachable', NO_KUBECTL)
    return startProcess({
      executable,
      args,
      cwd: '/',
      environment: {
        ...agentEnvironment(environment, [...KUBECTL_VARIABLES, ...passVariables]),
        ...(environment['KUBECONFIG'] && { KUBECONFIG: fromHere(environment['KUBECONFIG']) }),
        ...(ownerId !== undefined && { [OWNER_MARKER]: ownerId }),
      },
      stopSignal: 'SIGTERM',
      ...options,
    })
  }

  /** Contract: rejects with a `PodError` when there is no kubectl or it does not end in time. */
  async run(args: string[], timeoutMs: number, stdin = ''): Promise<KubectlOutcome> {
    const stdout: Buffer[] = []
    const stderr = new BoundedText()
    let bytes = 0
    const child = this.start(args, {
      stdin,
      runId: `kubectl-${randomUUID()}`,
      onStdout(chunk) {
        bytes += chunk.length
        if (bytes > MOST_OUTPUT_BYTES) child.stop()
        else stdout.push(chunk)
      },
      onStderr: (chunk) => stderr.append(chunk.toString('utf8')),
    })
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      child.stop()
    }, timeoutMs)
    const exit = await child.ended
    clearTimeout(timer)
    if (isLate) {
      const message = `kubectl did not answer within ${timeoutMs / 1000} s. Check that "kubectl get pods" answers.`
      throw new PodError('unreachable', message)
    }
    if ('spawnError' in exit) {
      throw new PodError('unreachable', `kubectl could not be started: ${exit.spawnError.message}`)
    }
    return { exitCode: exit.exitCode, stdout: Buffer.concat(stdout), stderr: stderr.toString() }
  }
}

/** kubectl does not run in the gateway's directory, from which the operator's paths go. */
function fromHere(paths: string): string {
  const absolute = paths.split(delimiter).map((path) => (path === '' ? path : resolve(path)))
  return absolute.join(delimiter)
}

/** Contract: throws a `PodError` for anything that could be taken for an option. */
export function requireAddress(address: PodAddress): void {
  const { context, namespace, name, selector, container } = address
  const isSound =
    (name === undefined) !== (selector === undefined) &&
    [namespace, name, container].every((word) => word === undefined || POD_WORDS.name.test(word)) &&
    (context === undefined || POD_WORDS.context.test(context)) &&
    (selector === undefined || POD_WORDS.selector.test(selector))
  if (!isSound) throw podError('pod_not_found', address, 'is not named as pods are')
}

/** Which cluster and namespace. Each is one word, so that none is taken for an option. */
export function scopeArgs({ context, namespace }: Pick<PodAddress, 'context' | 'namespace'>): string[] {
  return [
    ...(context === undefined ? [] : [`--context=${context}`]),
    ...(namespace === undefined ? [] : [namespace === '*' ? '--all-namespaces' : `--namespace=${namespace}`]),
  ]
}

/** Contract: the address names its pod. */
export function execArgs(address: PodAddress, command: string[]): string[] {
  const { name = '', container } = address
  const inContainer = container === undefined ? [] : [`--container=${container}`]
  return ['exec', '-i', ...scopeArgs(address), ...inContainer, name, '--', ...command]
}
