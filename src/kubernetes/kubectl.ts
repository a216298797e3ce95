// The only place that calls kubectl. No user text goes on its command line.

import { randomUUID } from 'node:crypto'
import { delimiter, resolve } from 'node:path'
import { agentEnvironment } from '../core/agent-environment.js'
import { BoundedText } from '../processes/output.js'
import { findExecutable } from '../core/paths.js'
import { type LocalProcess, type ProcessOptions, startProcess } from '../processes/local-process.js'
import { OWNER_MARKER } from '../processes/process-owner.js'
import { NO_KUBECTL, podError } from './pod-problems.js'
import { POD_PATTERNS, type PodAddress, PodError } from './types.js'

/** In addition to the common ones: how it finds the cluster, and what its login plug-ins need. */
const KUBECTL_VARIABLES = [
  ...['KUBE*', 'AWS_*', 'AZURE_*', 'AAD_*', 'MSI_*', 'IDENTITY_*', 'ARM_*'],
  ...['GOOGLE_*', 'CLOUDSDK_*', 'USE_GKE_GCLOUD_AUTH_PLUGIN', 'GCE_METADATA_HOST'],
  ...['OCI_*', 'DIGITALOCEAN_*', 'LINODE_*', 'IBMCLOUD_*', 'OS_*', 'VAULT_*', 'TSH_*', 'TELEPORT_*'],
]

export interface KubectlDependencies {
  /** The operator's; filtered before kubectl sees it. */
  environment: NodeJS.ProcessEnv
  /** Additional variables to pass on, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  /** A path, or a name looked up in PATH. Default: `kubectl`. */
  kubectlPath?: string
  /** Put into the environment, so that the process can be found. */
  ownerId?: string | undefined
}

export interface KubectlOutcome {
  exitCode: number
  stdout: Buffer
  stderr: string
}

type StartOptions = Pick<ProcessOptions, 'stdin' | 'keepsInput' | 'runId' | 'owner' | 'onStdout' | 'onStderr'>

/** More than any cluster lists. */
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024

export class Kubectl {
  constructor(private readonly dependencies: KubectlDependencies) {}

  /** Contract: throws a `PodError` if there is no kubectl. */
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
        ...(environment['KUBECONFIG'] && { KUBECONFIG: absolutePaths(environment['KUBECONFIG']) }),
        ...(ownerId !== undefined && { [OWNER_MARKER]: ownerId }),
      },
      stopSignal: 'SIGTERM',
      ...options,
    })
  }

  /** Contract: rejects with a `PodError` if there is no kubectl or it does not end in time. */
  async run(args: string[], timeoutMs: number, stdin = ''): Promise<KubectlOutcome> {
    const stdout: Buffer[] = []
    const stderr = new BoundedText()
    let bytes = 0
    const child = this.start(args, {
      stdin,
      runId: `kubectl-${randomUUID()}`,
      onStdout(chunk) {
        bytes += chunk.length
        if (bytes > MAX_OUTPUT_BYTES) child.stop()
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
      const message = `kubectl did not answer within ${timeoutMs / 1000} s. Check that "kubectl get pods" works.`
      throw new PodError('unreachable', message)
    }
    if ('spawnError' in exit) {
      throw new PodError('unreachable', `kubectl could not be started: ${exit.spawnError.message}`)
    }
    return { exitCode: exit.exitCode, stdout: Buffer.concat(stdout), stderr: stderr.toString() }
  }
}

/** kubectl runs elsewhere, but the operator's relative paths start from the gateway's directory. */
function absolutePaths(paths: string): string {
  const absolute = paths.split(delimiter).map((path) => (path === '' ? path : resolve(path)))
  return absolute.join(delimiter)
}

/** Contract: throws a `PodError` for anything that could be parsed as an option. */
export function requireAddress(address: PodAddress): void {
  const { context, namespace, name, selector, container } = address
  const isSound =
    (name === undefined) !== (selector === undefined) &&
    [namespace, name, container].every((word) => word === undefined || POD_PATTERNS.name.test(word)) &&
    (context === undefined || POD_PATTERNS.context.test(context)) &&
    (selector === undefined || POD_PATTERNS.selector.test(selector))
  if (!isSound) throw podError('pod_not_found', address, 'has an invalid address')
}

/** Each is one word, so that no value is parsed as an option. */
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
