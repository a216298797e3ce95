// Creates and changes projects at run time. Those in the configuration file are read-only here.

import { rm } from 'node:fs/promises'
import { requireEnforceable } from '../backends/engine/refusals.js'
import type { BackendRegistry } from '../backends/registry.js'
import type { BackendName } from '../backends/types.js'
import { type GatewayConfig, podOf } from '../config.js'
import { defined } from '../core/defined.js'
import { GatewayError, messageOf } from '../errors.js'
import type { PodAddress } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import { oneLine } from '../core/one-line.js'
import type { Note } from '../store/audit.js'
import type { Project, ProjectRecord, ProjectSettings } from '../store/projects.js'
import type { Store } from '../store/store.js'
import { checkGitSource, cloneInto, type GitSource, type RunGit } from './git-clone.js'
import { addProject, idIsTaken, revokeGrants } from './add-project.js'
import { filesBelow, filesInCheckout, matchingFiles } from './file-names.js'
import { checkPodLocation, refuseUntrusted } from './pod-location.js'
import { checkProjectId, idFromName, nameFromPath } from './project-id.js'
import { directoryInRoots, isInside, isStillInRoots, makeProjectDirectory } from './project-roots.js'
import { writeTemplateFiles } from './template-files.js'
import { type Template, Templates } from './templates.js'

export interface ProjectServiceOptions {
  store: Store
  config: Pick<
    GatewayConfig,
    | 'projectRoots'
    | 'templateDir'
    | 'agentBackend'
    | 'codeAgentDefault'
    | 'home'
    | 'configFile'
    | 'kubernetesContext'
    | 'kubernetesNamespace'
  >
  agents: Pick<BackendRegistry, 'availableAgents' | 'defaultProvider' | 'resolve'>
  run: RunGit
  now: () => number
  newId: () => string
  log: Log
}

/**
 * Exactly one of `directory`, `git`, `template` and `pod` says where the files come from. Absent limits default to the
 * configured ones.
 */
export interface NewProject extends Partial<
  Pick<Project, 'model' | 'allowedTools' | 'queryTimeoutMs' | 'maxTurns' | 'isUntrusted' | 'agentPermissions'>
> {
  /** Default: derived from the name. */
  id?: string
  /** Default: that of the directory or repository. */
  name?: string
  /** An existing directory: absolute and inside the project roots, or with `pod` in the pod. */
  directory?: string
  git?: GitSource
  template?: { name: string; variables?: Record<string, string> }
  /** The configured context and namespace are filled in. */
  pod?: PodAddress
  /** Default: the agent of new projects. */
  backend?: BackendName
}

/** `null` clears a setting; absent ones are left unchanged. */
export type ProjectChanges = Omit<ProjectSettings, 'backend'> & { backend?: BackendName }

type Source =
  | { kind: 'directory'; directory: string }
  | { kind: 'git'; git: GitSource }
  | { kind: 'template'; name: string; variables: Record<string, string> }
  | { kind: 'pod'; pod: PodAddress; directory: string }

const MAX_NAME_CHARACTERS = 200
const NAMES_KEPT_MS = 5_000

export class ProjectService {
  readonly #options: ProjectServiceOptions
  readonly #templates: Templates
  /** A short-lived cache, by directory. */
  readonly #names = new Map<string, { readAt: number; names: Promise<string[]> }>()

  constructor(options: ProjectServiceOptions) {
    this.#options = options
    this.#templates = new Templates(options.log, options.config.templateDir)
  }

  /** Ordered by id. */
  async list(): Promise<ProjectRecord[]> {
    return this.#options.store.projects.list()
  }

  /** Contract: throws `not_found`. */
  async get(id: string): Promise<ProjectRecord> {
    return requireKnown(id, await this.#options.store.projects.get(id))
  }

  /**
   * The names of files and directories in it that match the typed text, best first. Undefined if they are in a pod.
   *
   * Contract: throws `not_found`.
   */
  async files(id: string, typed: string, limit: number): Promise<string[] | undefined> {
    const { directory, pod } = await this.get(id)
    if (pod) return undefined
    return matchingFiles(await this.#namesIn(directory), typed).slice(0, limit)
  }

  /** Cached, since every keystroke asks again. */
  async #namesIn(directory: string): Promise<string[]> {
    const { now, run } = this.#options
    const at = now()
    for (const [known, { readAt }] of this.#names) if (at - readAt > NAMES_KEPT_MS) this.#names.delete(known)
    const kept = this.#names.get(directory)
    if (kept) return kept.names
    const names = filesInCheckout(directory, run).then((found) => found ?? filesBelow(directory))
    this.#names.set(directory, { readAt: at, names })
    return names
  }

  async templates(): Promise<Template[]> {
    return this.#templates.list()
  }

  /**
   * Contract: if it throws, nothing of the project is left. `conflict` if the id or its directory is taken,
   * `backend_missing` if the agent is not available, `not_found` for an unknown template, otherwise `request_invalid`,
   * which includes limits the agent cannot enforce.
   */
  async create(project: NewProject, signal?: AbortSignal, note?: Note): Promise<ProjectRecord> {
    const { config, agents, store } = this.#options
    const source = sourceOf(project)
    const name = checkName(project.name ?? defaultName(source))
    const id = project.id === undefined ? this.#idFor(name) : checkProjectId(project.id)
    const backend = project.backend ?? agents.defaultProvider() ?? config.codeAgentDefault
    // Which agents a pod has is known only once it is used.
    if (project.backend !== undefined && source.kind !== 'pod') await this.requireAvailable(project.backend)
    if (source.kind === 'pod') refuseUntrusted(project)
    this.#requireEnforceable(project, backend)
    if (await store.projects.get(id)) throw idIsTaken(id)

    const record = { ...project, id, ...defined({ name }), backend }
    if (source.kind === 'pod') {
      await this.#add({ ...record, directory: source.directory, pod: podOf(source.pod, config) }, note)
    } else if (source.kind === 'directory') {
      const directory = await directoryInRoots(source.directory, config)
      await this.#add({ ...record, directory }, note)
    } else {
      await this.#make(record, await this.#contentOf(source, id, name ?? id), signal, note)
    }
    this.#options.log.info('project.created', { projectId: id, from: source.kind })
    return this.get(id)
  }

  /** Contract: throws `conflict` for a project in the configuration file and for a change of agent where the pod's label
   *  decides it, and `backend_missing` as `create` does. */
  async update(id: string, changes: ProjectChanges, note?: Note): Promise<ProjectRecord> {
    const { store, now } = this.#options
    const name = changes.name === null ? null : checkName(changes.name)
    const project = await this.#changeable(id)
    const { backend: chosen = this.#options.config.agentBackend, pod, source } = project
    const isSwitched = changes.backend !== undefined && changes.backend !== chosen
    if (isSwitched && source === 'cluster') throw agentSetByLabel(id)
    if (changes.backend !== undefined && isSwitched && !pod) await this.requireAvailable(changes.backend)
    if (pod) refuseUntrusted(changes)
    const limits = {
      allowedTools: changedSetting(changes.allowedTools, project.allowedTools),
      maxTurns: changedSetting(changes.maxTurns, project.maxTurns),
    }
    this.#requireEnforceable(limits, changes.backend ?? chosen)
    await store.transaction(async (tables) => {
      const settings = {
        ...changes,
        ...defined({ name }),
        // A model belongs to one agent.
        ...(isSwitched && changes.model === undefined && { model: null }),
      }
      await tables.projects.change(id, settings, now())
      // So is a session.
      if (isSwitched) await tables.projects.clearSessions(id, now())
      await note?.(tables, { action: 'project.update', subject: id, detail: Object.keys(changes).join(', ') })
    })
    return this.get(id)
  }

  /**
   * Keeps the files, unless they were created here and `deletesFiles` is set.
   *
   * Contract: throws `conflict`, and removes nothing, for a project in the configuration file, while any of its messages
   * is queued or running, and for files that are not ours to delete.
   */
  async remove(id: string, { deletesFiles = false }: { deletesFiles?: boolean } = {}, note?: Note): Promise<void> {
    const { store, log } = this.#options
    const project = await this.#changeable(id)
    const { directory } = project
    if (deletesFiles) await this.#requireDeletable(project)
    await store.transaction(async (tables) => {
      // Locked: otherwise a command could be accepted between the count and the removal.
      await tables.projects.hold(id, 'removal')
      const open = await tables.projects.countOpenMessages(id)
      if (open > 0) {
        const messages = open === 1 ? 'message is' : 'messages are'
        const problem = `The project ${id} is in use: ${open} ${messages} waiting or running.`
        throw new GatewayError('conflict', `${problem} Cancel them, or wait until they finish.`)
      }
      await tables.projects.remove(id)
      await revokeGrants(tables, id)
      const detail = deletesFiles ? { detail: 'with its files' } : {}
      await note?.(tables, { action: 'project.remove', subject: id, ...detail })
    })
    if (deletesFiles) await deleteFiles(id, directory)
    log.info('project.removed', { projectId: id, filesDeleted: deletesFiles })
  }

  /** Returns a function that fills a new project's directory, after checking whatever can be checked first. */
  async #contentOf(
    source: Extract<Source, { kind: 'git' | 'template' }>,
    id: string,
    name: string,
  ): Promise<(directory: string, signal?: AbortSignal) => Promise<void>> {
    if (source.kind === 'git') {
      const git = await checkGitSource(source.git, this.#options.config)
      return (directory, signal) => cloneInto(directory, git, this.#options.run, signal)
    }
    const entries = await this.#templates.render(source.name, source.variables, { id, name })
    return (directory) => writeTemplateFiles(directory, entries)
  }

  async #make(
    project: Omit<Project, 'directory'>,
    fill: (directory: string, signal?: AbortSignal) => Promise<void>,
    signal?: AbortSignal,
    note?: Note,
  ): Promise<void> {
    const { config } = this.#options
    const { id } = project
    // This also reserves the id against concurrent requests.
    const directory = await makeProjectDirectory(id, config)
    try {
      await fill(directory, signal)
      await this.#add({ ...project, directory, isMadeHere: true }, note)
    } catch (error) {
      await rm(directory, { recursive: true, force: true })
      throw error
    }
  }

  async #add(project: Project, note: Note | undefined): Promise<void> {
    const { store, now } = this.#options
    await store.transaction((tables) => addProject(tables, project, 'api', now(), note))
  }

  async #changeable(id: string): Promise<ProjectRecord> {
    const project = await this.get(id)
    if (project.source !== 'file') return project
    const file = this.#options.config.configFile ?? 'the configuration file'
    throw new GatewayError('conflict', `The project ${id} is defined in ${file}. Change it there.`)
  }

  async #requireDeletable({ id, directory, isMadeHere }: ProjectRecord): Promise<void> {
    const { store, config } = this.#options
    if (!isMadeHere || !(await isStillInRoots(directory, config))) {
      const problem = `The files in ${directory} were not created with the project ${id}, or have been moved.`
      throw new GatewayError('conflict', `${problem} Remove the project without its files, and delete them yourself.`)
    }
    const others = (await store.projects.list()).filter((other) => other.id !== id && !other.pod)
    const inside = others.find((other) => other.directory === directory || isInside(other.directory, directory))
    if (!inside) return
    const message = `The project ${inside.id} works in ${inside.directory}, which would be deleted too.`
    throw new GatewayError('conflict', `${message} Remove that project first.`)
  }

  /** Contract: throws `backend_missing` if the agent is not available. */
  async requireAvailable(backend: BackendName): Promise<void> {
    const available = (await this.#options.agents.availableAgents()).map((agent) => agent.name())
    if (available.includes(backend)) return
    const others = available.length === 0 ? 'No agent is available.' : `Available: ${available.join(', ')}.`
    const advice = `"aetheel doctor --agent ${backend}" shows why.`
    throw new GatewayError('backend_missing', `The agent ${backend} is not available here. ${others} ${advice}`)
  }

  #requireEnforceable(limits: Parameters<typeof requireEnforceable>[0], backend: string): void {
    requireEnforceable(limits, this.#options.agents.resolve(backend).agent.capabilities())
  }

  #idFor(name: string | undefined): string {
    if (name === undefined) throw new GatewayError('request_invalid', 'Give the new project a name or an id.')
    return idFromName(name) || `project-${this.#options.newId().slice(0, 8)}`
  }
}

/** A setting's value after a change: `null` clears it. */
function changedSetting<T>(change: T | null | undefined, before: T | undefined): T | undefined {
  return change === undefined ? before : (change ?? undefined)
}

async function deleteFiles(id: string, directory: string): Promise<void> {
  try {
    await rm(directory, { recursive: true, force: true })
  } catch (error) {
    const message = `The project ${id} was removed, but not all of its files were deleted: ${messageOf(error)}`
    throw new GatewayError('internal', `${message}. Delete the rest of ${directory} yourself.`, { cause: error })
  }
}

function sourceOf({ directory, git, template, pod }: NewProject): Source {
  if (pod !== undefined) {
    if (git === undefined && template === undefined) return { kind: 'pod', ...checkPodLocation(pod, directory) }
    const message = 'A project in a pod uses the files in the pod: omit git and template.'
    throw new GatewayError('request_invalid', message)
  }
  const sources: Source[] = [
    ...(directory === undefined ? [] : [{ kind: 'directory' as const, directory }]),
    ...(git === undefined ? [] : [{ kind: 'git' as const, git }]),
    ...(template === undefined ? [] : [{ kind: 'template' as const, variables: {}, ...template }]),
  ]
  const [source] = sources
  if (source && sources.length === 1) return source
  throw new GatewayError('request_invalid', 'A project needs exactly one of directory, git, template and pod.')
}

function agentSetByLabel(id: string): GatewayError {
  const message = `The agent of the project ${id} is set by the label of its pod.`
  return new GatewayError('conflict', `${message} Change the label, then run "aetheel projects discover".`)
}

function defaultName(source: Source): string | undefined {
  if (source.kind === 'template') return undefined
  if (source.kind === 'pod') return source.pod.name
  const name = nameFromPath(source.kind === 'directory' ? source.directory : source.git.url)
  return oneLine(name, MAX_NAME_CHARACTERS) || undefined
}

function checkName(name: string | undefined): string | undefined {
  if (name === undefined) return undefined
  const trimmed = name.trim()
  if (trimmed !== '' && trimmed.length <= MAX_NAME_CHARACTERS && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(trimmed)) return trimmed
  throw new GatewayError('request_invalid', `A name must be one line of 1 to ${MAX_NAME_CHARACTERS} characters.`)
}

function requireKnown(id: string, project: ProjectRecord | undefined): ProjectRecord {
  if (project) return project
  const advice = 'List them with "aetheel projects list" or GET /projects.'
  throw new GatewayError('not_found', `There is no project ${JSON.stringify(id.slice(0, 100))}. ${advice}`)
}
