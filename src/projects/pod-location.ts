import { posix } from 'node:path'
import { isPodDirectory, NO_POD_DIRECTORY, podSchema, UNTRUSTED_POD } from '../config/kubernetes.js'
import { dotted, sentenceOf } from '../config/problems.js'
import { GatewayError } from '../errors.js'
import { POD_DIRECTORY, type PodAddress } from '../kubernetes/types.js'

/** Checks where a project in a pod works. Contract: throws `request_invalid` for whatever the configuration file would
 *  reject. */
export function checkPodLocation(pod: PodAddress, directory = POD_DIRECTORY): { pod: PodAddress; directory: string } {
  const parsed = podSchema.safeParse(pod, { error: sentenceOf })
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${dotted(['pod', ...path])}: ${message}`)
    throw new GatewayError('request_invalid', `${problems.join('; ')}.`)
  }
  if (!isPodDirectory(directory)) throw new GatewayError('request_invalid', `directory: ${NO_POD_DIRECTORY}.`)
  return { pod: parsed.data, directory: posix.resolve(directory) }
}

/** Contract: throws `request_invalid`. */
export function refuseUntrusted({ isUntrusted }: { isUntrusted?: boolean }): void {
  if (isUntrusted) throw new GatewayError('request_invalid', `is_untrusted: ${UNTRUSTED_POD}.`)
}
