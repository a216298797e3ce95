// Why a pod cannot be used, in sentences that say what to do. kubectl exits with 1 whatever went wrong; only its
// messages tell failures apart. They were taken from kubectl 1.32 and 1.33.

import { describePod, type PodAddress, PodError, type PodProblem } from './types.js'

/** The messages of runc and of crun. */
const NO_SHELL = /exec: "sh": .*(?:not found|no such file)|executable file `sh` not found/

/** Contract: the first match decides. Without a match, it may be anything. */
const STDERR_PATTERNS: ReadonlyArray<readonly [RegExp, PodProblem]> = [
  [/\(NotFound\): (?:pods|namespaces) "[^"]*" not found/, 'pod_not_found'],
  // From something in front of the cluster, such as a proxy or a wrong path; it says nothing about the pod.
  [/\(NotFound\)/, 'unreachable'],
  [/\(Forbidden\)|\(Unauthorized\)/, 'forbidden'],
  [/is not valid for pod/, 'container_not_found'],
  [/cannot exec into a container in a completed pod/, 'pod_not_running'],
  [NO_SHELL, 'cli_missing'],
  [
    /^The connection to the server|^Unable to connect to the server|^Error in configuration|^error: .*config|Please enter Username/m,
    'unreachable',
  ],
]

const ADVICE: Record<PodProblem, string> = {
  pod_not_found: 'Start it, or correct the name, namespace or labels in the project.',
  pod_not_running: 'Inspect it with "kubectl describe pod", and try again once it is running.',
  pod_gone: 'Try again once it is back; "kubectl get events" shows what happened.',
  container_not_found: 'Correct the name of the container in the project.',
  cli_missing: 'Install it in the container image, in a directory on its PATH.',
  directory_missing: "Mount it, or correct the project's directory.",
  forbidden: 'Allow the gateway to get and list pods, and to get and create pods/exec, in that namespace.',
  unreachable: 'Check that "kubectl get pods" works with the same context, as the user that runs the gateway.',
  stream_lost: 'If it happens often, check the network between the gateway and the cluster.',
}

/** `what` follows the pod's name in the sentence, and kubectl's message follows `what`. */
export function podError(
  problem: PodProblem,
  address: PodAddress,
  what: string,
  { stderr = '', advice = ADVICE[problem] }: { stderr?: string; advice?: string } = {},
): PodError {
  const name = describePod(address)
  const message = kubectlMessage(stderr)
  const fact = `${name.charAt(0).toUpperCase()}${name.slice(1)} ${what}${message === '' ? '' : `: ${message}`}`
  return new PodError(problem, `${fact.replace(/[.!?]?$/, '.')} ${advice}`)
}

/** Why kubectl failed before anything started; undefined if its message is inconclusive. */
export function errorFromStderr(address: PodAddress, stderr: string): PodError | undefined {
  const [pattern, problem] = STDERR_PATTERNS.find(([pattern]) => pattern.test(stderr)) ?? []
  if (pattern === NO_SHELL) return podError('cli_missing', address, 'has no shell', { stderr, advice: NEEDS_SHELL })
  return problem && podError(problem, address, 'cannot be used', { stderr })
}

const NEEDS_SHELL = 'Use a container image with sh: every agent is started by it.'
const MAX_MESSAGE_CHARACTERS = 1_000

/** kubectl's last message among what it and an agent printed. Never cut, since half a secret could not be scrubbed. */
function kubectlMessage(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim())
  const message = lines.findLast((line) => /^(?:error: |Error |Unable |The connection |Please enter )/.test(line)) ?? ''
  return message.length > MAX_MESSAGE_CHARACTERS ? '' : message
}

export const NO_KUBECTL =
  "kubectl was not found. Install version 1.30 or newer on the gateway's PATH (https://kubernetes.io/docs/tasks/tools/)."
