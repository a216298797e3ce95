// Projects of the pods that bear the label. The cluster says which there are and which agent each has; everything else of
// them is changed as of other projects.

import { isDeepStrictEqual } from 'node:util'
import { findBackendName } from '../backends/engine/backend-names.js'
import type { BackendRegistry } from '../backends/registry.js'
import { GatewayError } from '../errors.js'
import { type LabelledPod, POD_DIRECTORY, type PodAddress } from '../kubernetes/types.js'
import type { Note } from '../store/audit.js'
import type { ProjectRecord } from '../store/projects.js'
import type { Store } from '../store/store.js'
import { addProject } from './add-project.js'
import { checkProjectId, idFromName } from './project-id.js'
import type { ProjectService } from './project-service.js'

interface DiscoveryDependencies {
  store: Store
  agents: Pick<BackendRegistry, 'resolve' | 'defaultProvider'>
  projects: Pick<ProjectService, 'remove'>
  now: () => number
  note: Note
}

/** Where was looked: what is not found there is gone. */
export interface SearchedPlace {
  context?: string
  /** `*` for all. Left out, one that only kubectl knows. */
  namespace?: string
}

export interface Discovered {
  id: string
  /**
   * - `made`, `changed`, `unchanged`: the project follows its pod
   * - `taken`: another project has the id, and was left alone
   * - `ending`: its pod ends, or has ended and is still there; another may come in its place
   * - `gone`, `removed`: no pod of it was found
   * - `kept`: no pod of it was found, and messages of it still wait or are worked on
   */
  outcome: 'made' | 'changed' | 'unchanged' | 'taken' | 'ending' | 'gone' | 'removed' | 'kept'
  /** What the label says. */
  label?: string
  /** Who answers. */
  agent: string
  pod: PodAddress
}

/** Contract: what it did is on record when it settles, project by project. */
export async function discoverProjects(
  pods: LabelledPod[],
  where: SearchedPlace,
  { removesMissing }: { removesMissing: boolean },
  dependencies: DiscoveryDependencies,
): Promise<Discovered[]> {
  const found: Discovered[] = []
  for (const pod of pods) {
    if (pod.isEnding) found.push(...(await leave(pod, dependencies)))
    else found.push(await adopt(pod, dependencies))
  }
  const isFound = new Set(found.filter(({ outcome }) => outcome !== 'taken').map(({ id }) => id))
  const namespaces = new Set(pods.map(({ address }) => address.namespace))
  const missing = (await dependencies.store.projects.list()).filter(
    (project) => !isFound.has(project.id) && isWithin(project, where, namespaces),
  )
  for (const project of missing) found.push(await letGo(project, removesMissing, dependencies))
  return found
}

async function adopt(
  { projectId, address: pod, provider: label }: LabelledPod,
  { store, agents, now, note }: DiscoveryDependencies,
): Promise<Discovered> {
  const id = await idOf({ projectId, address: pod }, store)
  // Of an agent that nobody knows the name is kept: it may be registered later.
  const backend = agentOf(label) ?? agents.defaultProvider() ?? ''
  const outcome = await store.transaction(async (tables) => {
    // Nobody takes it into use or removes it meanwhile.
    const known = await tables.projects.hold(id, 'removal')
    if (!known) {
      await addProject(tables, { id, directory: POD_DIRECTORY, pod, backend }, 'cluster', now(), note)
      return 'made'
    }
    // What is kept for one must not get to a pod of another namespace that is called the same.
    if (known.source !== 'cluster' || !known.pod || !isSameNamespace(known.pod, pod)) return 'taken'
    const isSwitched = known.backend !== backend
    if (!isSwitched && isDeepStrictEqual(known.pod, pod)) return 'unchanged'
    const { model, ...rest } = known
    // A model of one agent is unknown to another, and so is a session.
    const kept = isSwitched || model === undefined ? rest : known
    await tables.projects.put({ ...kept, pod, backend }, 'cluster', now())
    if (isSwitched) await tables.projects.clearSessions(id, now())
    await note(tables, { action: 'project.update', subject: id, detail: isSwitched ? 'pod, backend' : 'pod' })
    return 'changed'
  })
  return { id, outcome, label, agent: agents.resolve(backend).agent.name(), pod }
}

/** Nothing is made of it, and what was made stays as it is. */
async function leave(
  { address, ...pod }: LabelledPod,
  { store, agents }: DiscoveryDependencies,
): Promise<Discovered[]> {
  const known = await store.projects.get(await idOf({ ...pod, address }, store))
  if (known?.source !== 'cluster' || !known.pod || !isSameNamespace(known.pod, address)) return []
  const agent = agents.resolve(known.backend ?? '').agent.name()
  return [{ id: known.id, outcome: 'ending', agent, pod: known.pod }]
}

/** It keeps the id under which it was found first, also when others of that name have come. */
async function idOf({ projectId, address }: Pick<LabelledPod, 'projectId' | 'address'>, store: Store): Promise<string> {
  const earlier = (await store.projects.list()).find(
    (one) => one.source === 'cluster' && isDeepStrictEqual(one.pod, address),
  )
  return earlier?.id ?? checkProjectId(idFromName(projectId))
}

async function letGo(
  { id, backend = '', pod = {} }: ProjectRecord,
  removesMissing: boolean,
  { agents, projects, note }: DiscoveryDependencies,
): Promise<Discovered> {
  const about = { id, agent: agents.resolve(backend).agent.name(), pod }
  if (!removesMissing) return { ...about, outcome: 'gone' }
  try {
    await projects.remove(id, {}, note)
    return { ...about, outcome: 'removed' }
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'conflict') return { ...about, outcome: 'kept' }
    throw error
  }
}

function isWithin(
  { source, pod }: ProjectRecord,
  { context, namespace }: SearchedPlace,
  namespaces: ReadonlySet<string | undefined>,
): boolean {
  if (source !== 'cluster' || pod?.context !== context) return false
  if (namespace === undefined) return namespaces.has(pod?.namespace)
  return namespace === '*' || namespace === pod?.namespace
}

function isSameNamespace(one: PodAddress, other: PodAddress): boolean {
  return one.context === other.context && one.namespace === other.namespace
}

/** A name that nobody knows, as it stands there. */
function agentOf(label: string): string | undefined {
  return findBackendName(label) ?? (label || undefined)
}
