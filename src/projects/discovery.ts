// Projects discovered from labelled pods. The cluster decides which exist and which agent each has; everything else can
// be changed as in other projects.

import { isDeepStrictEqual } from 'node:util'
import { findBackendName } from '../backends/agents.js'
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

/** Where the search took place. A project missing from the result is gone only if it lies in this scope. */
export interface SearchScope {
  context?: string
  /** `*` for all. Default: kubectl's. */
  namespace?: string
}

export interface Discovered {
  id: string
  /**
   * - `made`, `changed`, `unchanged`: the project follows its pod
   * - `taken`: another project has the id and was left alone
   * - `ending`: its pod is terminating or has terminated; another may replace it
   * - `gone`, `removed`: none of its pods was found
   * - `kept`: none of its pods was found, but some of its messages are still queued or running
   */
  outcome: 'made' | 'changed' | 'unchanged' | 'taken' | 'ending' | 'gone' | 'removed' | 'kept'
  /** The label's value. */
  label?: string
  /** The agent that answers. */
  agent: string
  pod: PodAddress
}

/** Contract: writes project by project; when it settles, everything it did is stored. */
export async function discoverProjects(
  pods: LabelledPod[],
  scope: SearchScope,
  { removesMissing }: { removesMissing: boolean },
  dependencies: DiscoveryDependencies,
): Promise<Discovered[]> {
  const found: Discovered[] = []
  for (const pod of pods) {
    if (pod.isEnding) found.push(...(await keepEnding(pod, dependencies)))
    else found.push(await adopt(pod, dependencies))
  }
  const isFound = new Set(found.filter(({ outcome }) => outcome !== 'taken').map(({ id }) => id))
  const namespaces = new Set(pods.map(({ address }) => address.namespace))
  const missing = (await dependencies.store.projects.list()).filter(
    (project) => !isFound.has(project.id) && isInScope(project, scope, namespaces),
  )
  for (const project of missing) found.push(await handleMissing(project, removesMissing, dependencies))
  return found
}

async function adopt(
  { projectId, address: pod, provider: label }: LabelledPod,
  { store, agents, now, note }: DiscoveryDependencies,
): Promise<Discovered> {
  const id = await idOf({ projectId, address: pod }, store)
  // Keep the name of an unknown agent: it may be registered later.
  const backend = agentOf(label) ?? agents.defaultProvider() ?? ''
  const outcome = await store.transaction(async (tables) => {
    // Locked, so that nobody starts to use it or removes it meanwhile.
    const known = await tables.projects.hold(id, 'removal')
    if (!known) {
      await addProject(tables, { id, directory: POD_DIRECTORY, pod, backend }, 'cluster', now(), note)
      return 'made'
    }
    // A pod of the same name in another namespace must not get this project's data.
    if (known.source !== 'cluster' || !known.pod || !isSameNamespace(known.pod, pod)) return 'taken'
    const isSwitched = known.backend !== backend
    if (!isSwitched && isDeepStrictEqual(known.pod, pod)) return 'unchanged'
    const { model, ...rest } = known
    // Models and sessions belong to one agent.
    const kept = isSwitched || model === undefined ? rest : known
    await tables.projects.put({ ...kept, pod, backend }, 'cluster', now())
    if (isSwitched) await tables.projects.clearSessions(id, now())
    await note(tables, { action: 'project.update', subject: id, detail: isSwitched ? 'pod, backend' : 'pod' })
    return 'changed'
  })
  return { id, outcome, label, agent: agents.resolve(backend).agent.name(), pod }
}

/** Creates nothing, and leaves an existing project as it is. */
async function keepEnding(
  { address, ...pod }: LabelledPod,
  { store, agents }: DiscoveryDependencies,
): Promise<Discovered[]> {
  const known = await store.projects.get(await idOf({ ...pod, address }, store))
  if (known?.source !== 'cluster' || !known.pod || !isSameNamespace(known.pod, address)) return []
  const agent = agents.resolve(known.backend ?? '').agent.name()
  return [{ id: known.id, outcome: 'ending', agent, pod: known.pod }]
}

/** A pod keeps the id it was first found under, even if others of the same name have appeared since. */
async function idOf({ projectId, address }: Pick<LabelledPod, 'projectId' | 'address'>, store: Store): Promise<string> {
  const earlier = (await store.projects.list()).find(
    (one) => one.source === 'cluster' && isDeepStrictEqual(one.pod, address),
  )
  return earlier?.id ?? checkProjectId(idFromName(projectId))
}

async function handleMissing(
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

function isInScope(
  { source, pod }: ProjectRecord,
  { context, namespace }: SearchScope,
  namespaces: ReadonlySet<string | undefined>,
): boolean {
  if (source !== 'cluster' || pod?.context !== context) return false
  if (namespace === undefined) return namespaces.has(pod?.namespace)
  return namespace === '*' || namespace === pod?.namespace
}

function isSameNamespace(one: PodAddress, other: PodAddress): boolean {
  return one.context === other.context && one.namespace === other.namespace
}

/** Unknown names are returned unchanged. */
function agentOf(label: string): string | undefined {
  return findBackendName(label) ?? (label || undefined)
}
