import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { BackendRegistry } from '../../backends/registry.js'
import type { BackendName } from '../../backends/types.js'
import type { GatewayConfig } from '../../config.js'
import { ConfiguredAgents } from '../../runtime/configured-agents.js'
import { configuredPods } from '../../runtime/configured-pods.js'
import { GatewayError } from '../../errors.js'
import { databaseFile, makeHome } from '../../gateway.js'
import { describePod, type PodAddress, type Pods } from '../../kubernetes/types.js'
import type { Log } from '../../log.js'
import { showable } from '../../core/one-line.js'
import { gitRunner } from '../../projects/git-clone.js'
import { type NewProject, ProjectService } from '../../projects/project-service.js'
import { describePlace } from '../../runtime/agent-choice.js'
import { type Note, notesOf } from '../../store/audit.js'
import type { ProjectRecord } from '../../store/projects.js'
import { openStore, type Store } from '../../store/store.js'
import { type ListOptions, section } from '../listing.js'
import { table } from '../table.js'

/** What changes projects: in the database itself, which a gateway that runs reads anew for each message. */
export interface ProjectChanger {
  store: Store
  agents: BackendRegistry
  projects: ProjectService
  pods: Pods
  now: () => number
  /** For the audit log. */
  note: Note
}

/** The options of `aetheel projects create`. */
export interface ProjectFlags {
  id?: string
  name?: string
  directory?: string
  pod?: string
  podSelector?: string
  context?: string
  namespace?: string
  container?: string
  git?: string
  ref?: string
  template?: string
  /** `name=value` each. */
  variable?: string[]
  backend?: BackendName
  model?: string
  untrusted?: boolean
}

export async function withProjects<T>(
  config: GatewayConfig,
  environment: NodeJS.ProcessEnv,
  log: Log,
  work: (changer: ProjectChanger) => Promise<T>,
): Promise<T> {
  makeHome(config)
  const store = await openStore({ file: databaseFile(config), databaseUrl: config.databaseUrl }, log)
  try {
    const now = Date.now
    const agents = new BackendRegistry(now)
    const configured = new ConfiguredAgents(config, { environment, passVariables: config.agentEnvPass, log })
    for (const backend of configured.all()) agents.register(backend)
    agents.setDefault(config.codeAgentDefault)
    const run = gitRunner(environment)
    return await work({
      store,
      agents,
      pods: configuredPods(config, environment),
      now,
      projects: new ProjectService({ store, config, agents, run, now, newId: randomUUID, log }),
      note: notesOf('terminal', now),
    })
  } finally {
    await store.close()
  }
}

/** What `aetheel projects list` prints. */
export async function projectsList(
  { projects }: Pick<Store, 'projects'>,
  { limit, isJson, width }: Omit<ListOptions, 'now'>,
): Promise<string> {
  const listed = (await projects.list()).slice(0, limit)
  if (isJson) return JSON.stringify(listed, null, 2)
  const rows = listed.map(({ id, name, backend, source, ...place }) => [
    id,
    name ?? id,
    backend ?? '',
    source === 'api' ? '' : source,
    describePlace(place),
  ])
  const advice = 'There are no projects. "aetheel projects create" makes one.'
  return section('', ['ID', 'NAME', 'AGENT', 'DEFINED IN', 'DIRECTORY'], rows, width) || advice
}

/** What `aetheel projects show` prints. */
export async function projectsShow(
  { projects }: Pick<Store, 'projects'>,
  id: string,
  isJson: boolean,
): Promise<string> {
  const project = await projects.get(id)
  if (!project) {
    throw new GatewayError('not_found', `There is no project ${id}. "aetheel projects list" shows them.`)
  }
  return isJson ? JSON.stringify(project, null, 2) : describe(project)
}

/** Contract: `signal` stops a clone; nothing is left of the project then. */
export async function projectsCreate(
  { projects, note }: ProjectChanger,
  flags: ProjectFlags,
  cwd: string,
  signal?: AbortSignal,
): Promise<string> {
  const project = await projects.create(fromFlags(flags, cwd), signal, note)
  return `Made the project ${project.id} in ${describePlace(project)}`
}

export async function projectsRemove(
  { projects, note }: ProjectChanger,
  id: string,
  deletesFiles: boolean,
): Promise<string> {
  const project = await projects.get(id)
  await projects.remove(id, { deletesFiles }, note)
  return deletesFiles
    ? `Removed the project ${id} and deleted ${project.directory}`
    : `Removed the project ${id}. Its files are still in ${describePlace(project)}`
}

function fromFlags(flags: ProjectFlags, cwd: string): NewProject {
  const { id, name, directory, git, ref, template, variable = [], backend, model, untrusted } = flags
  if (ref !== undefined && git === undefined) throw new GatewayError('request_invalid', '--ref belongs to --git.')
  if (variable.length > 0 && template === undefined) {
    throw new GatewayError('request_invalid', '--variable belongs to --template.')
  }
  const pod = podFrom(flags)
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    ...(directory !== undefined && { directory: pod ? directory : resolve(cwd, directory) }),
    ...(pod && { pod }),
    ...(git !== undefined && { git: { url: git, ...(ref !== undefined && { ref }) } }),
    ...(template !== undefined && { template: { name: template, variables: variablesOf(variable) } }),
    ...(backend !== undefined && { backend }),
    ...(model !== undefined && { model }),
    ...(untrusted !== undefined && { isUntrusted: untrusted }),
  }
}

function podFrom({ pod, podSelector, context, namespace, container }: ProjectFlags): PodAddress | undefined {
  const place = {
    ...(context !== undefined && { context }),
    ...(namespace !== undefined && { namespace }),
    ...(container !== undefined && { container }),
  }
  if (pod === undefined && podSelector === undefined) {
    const [stray] = Object.keys(place)
    if (stray === undefined) return undefined
    throw new GatewayError('request_invalid', `--${stray} belongs to --pod or --pod-selector.`)
  }
  return {
    ...place,
    ...(pod !== undefined && { name: pod }),
    ...(podSelector !== undefined && { selector: podSelector }),
  }
}

function variablesOf(pairs: string[]): Record<string, string> {
  const entries = pairs.map((pair) => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? []
    if (name !== undefined && value !== undefined) return [name, value] as const
    throw new GatewayError('request_invalid', `--variable ${pair}: write it as name=value.`)
  })
  return Object.fromEntries(entries)
}

const DEFINED_IN: Record<ProjectRecord['source'], string> = {
  file: 'the configuration file',
  api: 'the database',
  cluster: 'the cluster, by the labels of its pod',
}

function describe(project: ProjectRecord): string {
  const { id, name, directory, pod, backend, model, allowedTools, queryTimeoutMs, maxTurns, isUntrusted } = project
  const { agentPermissions } = project
  const rows = [
    ['Project', id],
    ['Name', name ?? id],
    ['Directory', directory],
    ...(pod ? [['Pod', describePod(pod)]] : []),
    ['Agent', backend ?? 'that of AGENT_BACKEND'],
    ['Model', model ?? "the agent's own choice"],
    ['Tools', allowedTools?.join(', ') ?? 'those of ALLOWED_TOOLS'],
    ['Time limit', queryTimeoutMs === undefined ? 'that of QUERY_TIMEOUT_MS' : `${queryTimeoutMs} ms`],
    ['Turns', maxTurns === undefined ? 'that of BACKEND_MAX_TURNS' : String(maxTurns)],
    ['Trusted', isUntrusted ? 'no' : 'yes'],
    ['Permissions', agentPermissions ?? 'those of AGENT_PERMISSIONS'],
    ['Defined in', DEFINED_IN[project.source]],
  ]
  return table(rows.map((row) => row.map(showable)))
}
