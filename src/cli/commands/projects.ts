import { resolve } from 'node:path'
import type { Command } from 'commander'
import { BACKEND_NAMES, type BackendName } from '../../backends/types.js'
import type { GatewayConfig } from '../../config.js'
import { defined } from '../../core/defined.js'
import { printable } from '../../core/one-line.js'
import { GatewayError } from '../../errors.js'
import { describePod, type PodAddress } from '../../kubernetes/types.js'
import type { NewProject } from '../../projects/project-service.js'
import { describeWorkplace } from '../../runtime/agent-choice.js'
import type { ProjectRecord } from '../../store/projects.js'
import type { Store } from '../../store/store.js'
import { backendArgument } from '../arguments.js'
import { type CommandContext, STOP_SIGNALS } from '../command-context.js'
import { defineList } from '../list-command.js'
import { listing, type ListOptions, terminalWidth } from '../listing.js'
import { table } from '../table.js'
import { terminalSafe } from '../terminal-safe.js'
import { type ProjectTools, projectTools } from '../project-tools.js'
import { type DiscoverFlags, projectsDiscover } from './discover.js'

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

export function registerProjects(program: Command, context: CommandContext): void {
  const change = (work: (tools: ProjectTools, config: GatewayConfig) => Promise<string>): Promise<void> =>
    context.change((store, config, log) => work(projectTools(store, config, log, context.environment), config))
  const projects = program.command('projects').description('Manage projects, the directories in which agents work.')
  defineList(projects.command('list', { isDefault: true }), 'List projects.', context, projectsList)
  projects
    .command('show')
    .description('Show a project.')
    .argument('<id>')
    .option('--json', 'print JSON')
    .action((id: string, flags: { json?: true }) =>
      context.inspect((store) => projectsShow(store, id, flags.json === true)),
    )
  projects
    .command('create')
    .description('Create a project from a directory, a git repository, a template or a pod.')
    .option('--id <id>', 'derived from the name by default')
    .option('--name <name>', 'display name')
    .option('--directory <directory>', 'an existing directory inside PROJECT_ROOTS; with a pod, one in the pod')
    .option('--pod <name>', 'run the agent in this pod')
    .option('--pod-selector <labels>', 'run the agent in a pod with these labels, such as app=web')
    .option('--namespace <name>', 'namespace of the pod')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--container <name>', 'container of the pod')
    .option('--git <url>', 'a repository to clone')
    .option('--ref <ref>', 'its branch or tag')
    .option('--template <name>', 'a template to start from')
    .option('--variable <name=value...>', 'variables of the template')
    .option('-b, --backend <name>', `agent: ${BACKEND_NAMES.join(', ')}`, backendArgument)
    .option('-m, --model <model>', 'model, as the agent names it')
    .option('--untrusted', 'let nothing in its directory configure the agent')
    .action((flags: ProjectFlags) =>
      change((tools) => projectsCreate(tools, flags, process.cwd(), context.abortOn(STOP_SIGNALS))),
    )
  projects
    .command('discover')
    .description('Create projects from pods with the label KUBERNETES_LABEL, whose value names the agent.')
    .option('--namespace <name>', 'where to look; by default KUBERNETES_NAMESPACE')
    .option('--all-namespaces', 'look everywhere')
    .option('--context <name>', 'context of the kubeconfig; by default KUBERNETES_CONTEXT')
    .option('--label <key>', 'the label; by default KUBERNETES_LABEL')
    .option('--remove-missing', 'remove projects whose pods are gone')
    .option('--json', 'print JSON')
    .action((flags: DiscoverFlags) =>
      change((tools, config) =>
        projectsDiscover(flags, { ...tools, config, width: terminalWidth(), stderr: terminalSafe(process.stderr) }),
      ),
    )
  projects
    .command('remove')
    .description('Remove a project. Its files are kept.')
    .argument('<id>')
    .option('--delete-files', 'also delete its files, if Aetheel created them')
    .action((id: string, flags: { deleteFiles?: true }) =>
      change((tools) => projectsRemove(tools, id, flags.deleteFiles === true)),
    )
}

/** The output of `aetheel projects list`. */
export async function projectsList(
  { projects }: Pick<Store, 'projects'>,
  options: Omit<ListOptions, 'now'>,
): Promise<string> {
  const listed = (await projects.list()).slice(0, options.limit)
  return listing(listed, options, 'There are no projects. "aetheel projects create" creates one.', {
    ID: ({ id }) => id,
    NAME: ({ id, name }) => name ?? id,
    AGENT: ({ backend }) => backend ?? '',
    'DEFINED IN': ({ source }) => (source === 'api' ? '' : source),
    DIRECTORY: describeWorkplace,
  })
}

/** The output of `aetheel projects show`. */
export async function projectsShow(
  { projects }: Pick<Store, 'projects'>,
  id: string,
  isJson: boolean,
): Promise<string> {
  const project = await projects.get(id)
  if (!project) {
    throw new GatewayError('not_found', `There is no project ${id}. "aetheel projects list" lists them.`)
  }
  return isJson ? JSON.stringify(project, null, 2) : describe(project)
}

/** Contract: `signal` stops a clone, and nothing of the project is left. */
export async function projectsCreate(
  { projects, note }: ProjectTools,
  flags: ProjectFlags,
  cwd: string,
  signal?: AbortSignal,
): Promise<string> {
  const project = await projects.create(fromFlags(flags, cwd), signal, note)
  return `Created the project ${project.id} in ${describeWorkplace(project)}`
}

export async function projectsRemove(
  { projects, note }: ProjectTools,
  id: string,
  deletesFiles: boolean,
): Promise<string> {
  const project = await projects.get(id)
  await projects.remove(id, { deletesFiles }, note)
  return deletesFiles
    ? `Removed the project ${id} and deleted ${project.directory}`
    : `Removed the project ${id}. Its files are still in ${describeWorkplace(project)}`
}

function fromFlags(flags: ProjectFlags, cwd: string): NewProject {
  const { id, name, directory, git, ref, template, variable = [], backend, model, untrusted } = flags
  if (ref !== undefined && git === undefined) throw new GatewayError('request_invalid', '--ref needs --git.')
  if (variable.length > 0 && template === undefined) {
    throw new GatewayError('request_invalid', '--variable needs --template.')
  }
  const pod = podFrom(flags)
  return defined({
    id,
    name,
    directory: directory === undefined || pod ? directory : resolve(cwd, directory),
    pod,
    git: git === undefined ? undefined : defined({ url: git, ref }),
    template: template === undefined ? undefined : { name: template, variables: variablesOf(variable) },
    backend,
    model,
    isUntrusted: untrusted,
  })
}

function podFrom({ pod, podSelector, context, namespace, container }: ProjectFlags): PodAddress | undefined {
  const place = defined({ context, namespace, container })
  if (pod === undefined && podSelector === undefined) {
    const [stray] = Object.keys(place)
    if (stray === undefined) return undefined
    throw new GatewayError('request_invalid', `--${stray} needs --pod or --pod-selector.`)
  }
  return defined({ ...place, name: pod, selector: podSelector })
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
  cluster: 'the cluster, by its pod labels',
}

function describe(project: ProjectRecord): string {
  const { id, name, directory, pod, backend, model, allowedTools, queryTimeoutMs, maxTurns, isUntrusted } = project
  const { agentPermissions } = project
  const rows = [
    ['Project', id],
    ['Name', name ?? id],
    ['Directory', directory],
    ...(pod ? [['Pod', describePod(pod)]] : []),
    ['Agent', backend ?? 'from AGENT_BACKEND'],
    ['Model', model ?? "the agent's own choice"],
    ['Tools', allowedTools?.join(', ') ?? 'from ALLOWED_TOOLS'],
    ['Time limit', queryTimeoutMs === undefined ? 'from QUERY_TIMEOUT_MS' : `${queryTimeoutMs} ms`],
    ['Turn limit', maxTurns === undefined ? 'from BACKEND_MAX_TURNS' : String(maxTurns)],
    ['Trusted', isUntrusted ? 'no' : 'yes'],
    ['Permissions', agentPermissions ?? 'from AGENT_PERMISSIONS'],
    ['Defined in', DEFINED_IN[project.source]],
  ]
  return table(rows.map((row) => row.map(printable)))
}
