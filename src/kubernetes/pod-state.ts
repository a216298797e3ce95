// The part of `kubectl get pod -o json` that we use.

import { z } from 'zod'
import { podError } from './pod-problems.js'
import type { PodAddress, PodError } from './types.js'

const containerStatusSchema = z.looseObject({
  name: z.string(),
  restartCount: z.number().default(0),
  state: z
    .looseObject({
      running: z.looseObject({}).optional(),
      waiting: z.looseObject({ reason: z.string().optional() }).optional(),
      terminated: z.looseObject({ reason: z.string().optional() }).optional(),
    })
    .default({}),
})

const containersSchema = z.array(z.looseObject({ name: z.string() })).default([])
const statusesSchema = z.array(containerStatusSchema).default([])

const podSchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string(),
    uid: z.string().default(''),
    deletionTimestamp: z.string().nullish(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.looseObject({
    containers: containersSchema,
    initContainers: containersSchema,
    ephemeralContainers: containersSchema,
  }),
  status: z.looseObject({
    phase: z.string().default('Unknown'),
    reason: z.string().optional(),
    message: z.string().optional(),
    conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).default([]),
    containerStatuses: statusesSchema,
    initContainerStatuses: statusesSchema,
    ephemeralContainerStatuses: statusesSchema,
  }),
})

export type PodState = z.infer<typeof podSchema>

/** Contract: throws unless it is a pod. */
export function parsePod(json: string): PodState {
  return podSchema.parse(JSON.parse(json))
}

/** Ordered by name. Contract: throws unless it is a list of pods. */
export function parsePods(json: string): PodState[] {
  const { items } = z.looseObject({ items: z.array(podSchema) }).parse(JSON.parse(json))
  const order = ({ metadata: { namespace, name } }: PodState): string => `${namespace}/${name}`
  return items.toSorted((a, b) => (order(a) < order(b) ? -1 : 1))
}

/** Whether new work should go to it. */
export function isReady({ metadata, status }: PodState): boolean {
  return (
    !metadata.deletionTimestamp && status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  )
}

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

export function containerOf({ container }: PodAddress, { metadata, spec }: PodState): string | undefined {
  return container ?? metadata.annotations[DEFAULT_CONTAINER] ?? spec.containers[0]?.name
}

/** Identifies one life of a container: cached facts are valid as long as this stays the same. */
export function instanceOf(state: PodState, container: string): string {
  return `${state.metadata.uid}/${container}/${statusOf(state, container)?.restartCount ?? 0}`
}

/** Why nothing can run in the container now; undefined if it can. */
export function obstacleIn(state: PodState, address: PodAddress, container: string): PodError | undefined {
  const { spec, status, metadata } = state
  const names = [...spec.containers, ...spec.initContainers, ...spec.ephemeralContainers].map(({ name }) => name)
  if (!names.includes(container)) {
    return podError('container_not_found', address, `has no such container, only ${names.join(', ')}`)
  }
  const current = statusOf(state, container)?.state
  if (current?.running) return undefined
  const reasons = [
    status.reason,
    current?.waiting?.reason ?? current?.terminated?.reason,
    metadata.deletionTimestamp ? 'it is being deleted' : undefined,
    status.message,
  ].filter((reason) => reason !== undefined)
  return podError('pod_not_running', address, `is not running (${[status.phase, ...reasons].join(', ')})`)
}

/** What happened to it since a run began there; undefined if it is still the same. */
export function lossOf(state: PodState, container: string, instance: string): string | undefined {
  const { metadata, status } = state
  if (instanceOf(state, container) !== instance) return 'was restarted during the run'
  if (status.reason === 'Evicted') return `was evicted during the run (${status.message ?? 'no reason was given'})`
  if (metadata.deletionTimestamp) return 'was deleted during the run'
  if (statusOf(state, container)?.state.running) return undefined
  return `ended during the run (${status.reason ?? status.phase})`
}

function statusOf({ status }: PodState, container: string) {
  const statuses = [...status.containerStatuses, ...status.initContainerStatuses, ...status.ephemeralContainerStatuses]
  return statuses.find(({ name }) => name === container)
}
