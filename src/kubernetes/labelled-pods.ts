import { createHash } from 'node:crypto'
import { defined } from '../core/defined.js'
import type { PodState } from './pod-state.js'
import type { LabelledPod, PodAddress } from './types.js'

/** The label that a Deployment gives to its pods, which come and go. Each version has its own. */
const TEMPLATE_HASH = 'pod-template-hash'
const MAX_ID_CHARACTERS = 64

/** Contract: keeps the order; a Deployment appears once, represented by a pod that is not ending if it has one; ids are
 *  unique. */
export function labelledPods(states: PodState[], label: string, context: string | undefined): LabelledPod[] {
  const found = new Map<string, LabelledPod & { namespace: string; title: string }>()
  for (const state of states) {
    const { namespace, labels, deletionTimestamp } = state.metadata
    const isOver = state.status.phase === 'Succeeded' || state.status.phase === 'Failed'
    const provider = labels[label]
    if (provider === undefined) continue
    const title = workloadName(state)
    const address = { ...defined({ context }), namespace, ...addressPart(state) }
    const key = `${namespace}/${title}`
    const isEnding = isOver || !!deletionTimestamp
    const known = found.get(key)
    if (known && (isEnding || !known.isEnding)) continue
    const pod = { address, projectId: idOf(title), provider, namespace, title }
    found.set(key, isEnding ? { ...pod, isEnding } : pod)
  }
  const pods = [...found.values()]
  const names = countsOf(pods.map(({ projectId }) => projectId))
  const named = pods.map((pod) => ({
    ...pod,
    projectId: names.get(pod.projectId) === 1 ? pod.projectId : idOf(`${pod.namespace}-${pod.title}`),
  }))
  const taken = countsOf(named.map(({ projectId }) => projectId))
  return named.map(({ projectId, namespace, title, ...pod }) => ({
    ...pod,
    projectId: taken.get(projectId) === 1 ? projectId : withHash(projectId, `${namespace}/${title}`),
  }))
}

/** The Deployment's name, or the pod's own. */
function workloadName({ metadata: { name, labels } }: PodState): string {
  const hash = labels[TEMPLATE_HASH]
  const at = hash === undefined ? -1 : name.lastIndexOf(`-${hash}-`)
  return at > 0 ? name.slice(0, at) : name
}

function addressPart({ metadata: { name, labels } }: PodState): Pick<PodAddress, 'name' | 'selector'> {
  if (labels[TEMPLATE_HASH] === undefined) return { name }
  const stable = Object.entries(labels).filter(([key]) => key !== TEMPLATE_HASH)
  const words = stable.map(([key, value]) => `${key}=${value}`)
  return { selector: words.toSorted().join(',') }
}

function idOf(title: string): string {
  return title.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(0, MAX_ID_CHARACTERS)
}

function withHash(id: string, title: string): string {
  const hash = createHash('sha256').update(title).digest('hex').slice(0, 8)
  return `${id.slice(0, MAX_ID_CHARACTERS - hash.length - 1)}-${hash}`
}

function countsOf(ids: string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}
