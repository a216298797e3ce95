// Schemas of pod addresses, for the configuration file and every other input.

import { z } from 'zod'
import { quote } from './problems.js'
import { isObject } from './values.js'
import { POD_PATTERNS } from '../kubernetes/types.js'

export const kubernetesName = (what: string) =>
  z.string().regex(POD_PATTERNS.name, {
    error: ({ input }) => `${quote(input)} is not a ${what}: use lowercase letters, digits, "-" and "."`,
  })

export const contextName = () =>
  z.string().regex(POD_PATTERNS.context, {
    error: ({ input }) => `${quote(input)} is not a kubectl context: list them with "kubectl config get-contexts"`,
  })

export const labelKey = () =>
  z.string().regex(/^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/, {
    error: ({ input }) => `${quote(input)} is not a label key, such as example.com/agent`,
  })

export const podSchema = z
  .strictObject({
    context: contextName().exactOptional().describe('The kubeconfig context. Default: kubernetesContext.'),
    namespace: kubernetesName('namespace').exactOptional().describe('The namespace. Default: kubernetesNamespace.'),
    name: kubernetesName('pod name').exactOptional().describe('The pod.'),
    selector: z
      .string()
      .regex(POD_PATTERNS.selector, { error: 'must be labels, such as app=web,tier=dev' })
      .exactOptional()
      .describe('Labels, such as app=web. Of the ready pods that have them, the first by name is used.'),
    container: kubernetesName('container name')
      .exactOptional()
      .describe("The container. Default: the pod's default one."),
  })
  .refine((pod) => (pod.name === undefined) !== (pod.selector === undefined), {
    error: 'needs either "name" or "selector", not both',
    when: isObject,
  })
  .meta({ oneOf: [{ required: ['name'] }, { required: ['selector'] }] })

export const NO_POD_DIRECTORY = 'must be an absolute path in the pod, such as /workspace'
export const UNTRUSTED_POD = 'cannot be set for a project in a pod: the pod itself is the sandbox'

export function isPodDirectory(directory: string): boolean {
  return /^\/\P{Cc}*$/u.test(directory)
}
