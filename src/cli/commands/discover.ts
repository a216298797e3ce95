import { findBackendName } from '../../backends/agents.js'
import type { GatewayConfig } from '../../config.js'
import { contextName, kubernetesName, labelKey } from '../../config/kubernetes.js'
import { defined } from '../../core/defined.js'
import { GatewayError } from '../../errors.js'
import { describePod, type LabelledPod, PodError, type Pods } from '../../kubernetes/types.js'
import { type Discovered, discoverProjects, type SearchScope } from '../../projects/discovery.js'
import { listing } from '../listing.js'
import type { ProjectTools } from '../project-tools.js'
import type { Output } from '../turn-printer.js'

/** The options of `aetheel projects discover`. */
export interface DiscoverFlags {
  context?: string
  namespace?: string
  allNamespaces?: true
  label?: string
  removeMissing?: true
  json?: true
}

interface DiscoverDependencies extends Omit<ProjectTools, 'pods'> {
  config: Pick<GatewayConfig, 'kubernetesContext' | 'kubernetesNamespace' | 'kubernetesLabel'>
  pods: Pick<Pods, 'labelled'>
  /** Terminal width in characters. */
  width: number
  /** For progress. */
  stderr: Output
}

/** Creates projects from labelled pods. Contract: throws `cluster_unavailable`, which says what to do. */
export async function projectsDiscover(flags: DiscoverFlags, dependencies: DiscoverDependencies): Promise<string> {
  const { config, pods, width, stderr } = dependencies
  const { label, where } = searchOf(flags, config)
  stderr.write(`Looking for pods with the label ${label} ${describeSearch(where)} …\n`)
  const found = await labelled(pods, label, where)
  const { length } = found.filter(({ isEnding }) => !isEnding)
  stderr.write(`Found ${length === 1 ? '1 pod' : `${length} pods`}.\n`)
  const projects = await discoverProjects(found, where, { removesMissing: flags.removeMissing === true }, dependencies)
  const none = `No pod has the label ${label} ${describeSearch(where)}, and no project came from one.`
  return listing(projects, { isJson: flags.json === true, width }, none, {
    PROJECT: ({ id }) => id,
    AGENT: agentOf,
    RESULT: ({ outcome }) => OUTCOMES[outcome],
    POD: ({ pod }) => describePod(pod),
  })
}

const OUTCOMES: Record<Discovered['outcome'], string> = {
  made: 'new',
  changed: 'changed',
  unchanged: 'unchanged',
  taken: 'skipped: its id is taken',
  ending: 'unchanged; its pod is terminating',
  gone: 'gone; --remove-missing removes it',
  removed: 'gone; removed',
  kept: 'gone; kept because it is in use',
}

/** Contract: throws `request_invalid` for names that kubectl would reject. */
function searchOf(
  { context, namespace, allNamespaces, label, removeMissing }: DiscoverFlags,
  { kubernetesContext, kubernetesNamespace, kubernetesLabel }: DiscoverDependencies['config'],
): { label: string; where: SearchScope } {
  if (allNamespaces && namespace !== undefined) {
    throw new GatewayError('request_invalid', 'Use either --namespace or --all-namespaces, not both.')
  }
  if (label !== undefined && removeMissing) {
    const advice = 'Set KUBERNETES_LABEL instead.'
    const problem = '--remove-missing with --label would remove projects found by another label.'
    throw new GatewayError('request_invalid', `${problem} ${advice}`)
  }
  const given = [
    ['--context', contextName(), context],
    ['--namespace', kubernetesName('namespace'), namespace],
    ['--label', labelKey(), label],
  ] as const
  for (const [flag, schema, value] of given) {
    const parsed = value === undefined ? undefined : schema.safeParse(value)
    if (parsed?.error) throw new GatewayError('request_invalid', `${flag}: ${parsed.error.issues[0]?.message}.`)
  }
  const inNamespace = allNamespaces ? '*' : (namespace ?? kubernetesNamespace)
  const where = defined({ context: context ?? kubernetesContext, namespace: inNamespace })
  return { label: label ?? kubernetesLabel, where }
}

async function labelled(pods: Pick<Pods, 'labelled'>, label: string, where: SearchScope): Promise<LabelledPod[]> {
  try {
    return await pods.labelled(label, where)
  } catch (error) {
    if (!(error instanceof PodError)) throw error
    throw new GatewayError('cluster_unavailable', error.message, { cause: error })
  }
}

function describeSearch({ context, namespace }: SearchScope): string {
  const ofContext = context === undefined ? '' : ` of the context ${context}`
  if (namespace === undefined) return `in the namespace${ofContext || ' of the current context'}`
  return namespace === '*' ? `in all namespaces${ofContext}` : `in the namespace ${namespace}${ofContext}`
}

function agentOf({ agent, label }: Discovered): string {
  const isMeant = label === undefined || label === '' || findBackendName(label) === agent
  return isMeant ? agent : `${agent}, because ${label} is unknown`
}
