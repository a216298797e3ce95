// The client of the HTTP API: `aetheel/client`. It loads nothing but its own folder, and runs wherever there is `fetch`.

import { Command } from './command.js'
import { Connection, type ConnectionOptions } from './connection.js'
import type {
  Agent,
  CommandPage,
  ExecuteRequest,
  GitRequest,
  GivenProvider,
  Health,
  NewProject,
  Project,
  ProjectChanges,
  Provider,
  QueueEntry,
  QueueOverview,
  ShellRequest,
  SubmittedCommand,
} from './types.js'

export { AetheelApiError, type ApiErrorCode, type FieldProblem } from './api-error.js'
export type { EventsOptions } from './command-events.js'
export type { Command } from './command.js'
export type * from './types.js'

export type AetheelClientOptions = ConnectionOptions

export interface SubmitOptions {
  /** Your own name for the command: sent again under it, it is the same command and not a second one. */
  idempotencyKey?: string
}

export class AetheelClient {
  readonly projects: ProjectsClient
  readonly agents: AgentsClient
  readonly queue: QueueClient
  readonly #connection: Connection

  constructor(options: AetheelClientOptions) {
    this.#connection = new Connection(options)
    this.projects = new ProjectsClient(this.#connection)
    this.agents = new AgentsClient(this.#connection)
    this.queue = new QueueClient(this.#connection)
  }

  /** Has the agent of a project do something. Settles when the gateway has it on disk. */
  execute(projectId: string, request: ExecuteRequest, options?: SubmitOptions): Promise<Command> {
    return this.#submit(projectId, 'execute', request, options)
  }

  /** Runs a program in a project, without a shell in between. */
  shell(projectId: string, request: ShellRequest, options?: SubmitOptions): Promise<Command> {
    return this.#submit(projectId, 'shell', request, options)
  }

  git(projectId: string, request: GitRequest, options?: SubmitOptions): Promise<Command> {
    return this.#submit(projectId, 'git', request, options)
  }

  /** One that was given before, by its id. Asks nothing. */
  command(projectId: string, commandId: string): Command {
    return new Command(this.#connection, projectId, commandId)
  }

  /** The commands of a project, newest first. */
  commands(projectId: string, page: { limit?: number; before?: string } = {}): Promise<CommandPage> {
    return this.#connection.json('GET', `${projectPath(projectId)}/commands${queryOf(page)}`)
  }

  /** Contract: an unhealthy gateway is no error here. */
  health(): Promise<Health> {
    const isHealth = (body: unknown): boolean => typeof body === 'object' && body !== null && 'agents' in body
    return this.#connection.json('GET', '/health', {}, isHealth)
  }

  async #submit(
    projectId: string,
    kind: string,
    body: object,
    { idempotencyKey }: SubmitOptions = {},
  ): Promise<Command> {
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    const path = `${projectPath(projectId)}/${kind}`
    const submitted = await this.#connection.json<SubmittedCommand>('POST', path, { body, headers })
    return this.command(projectId, submitted.command_id)
  }
}

class ProjectsClient {
  constructor(private readonly connection: Connection) {}

  async list(): Promise<Project[]> {
    return (await this.connection.json<{ projects: Project[] }>('GET', '/projects')).projects
  }

  get(id: string): Promise<Project> {
    return this.connection.json('GET', projectPath(id))
  }

  create(project: NewProject): Promise<Project> {
    return this.connection.json('POST', '/projects', { body: project })
  }

  /** What is left out stays; null takes a setting back. */
  update(id: string, changes: ProjectChanges): Promise<Project> {
    return this.connection.json('PATCH', projectPath(id), { body: changes })
  }

  /** Its files stay, unless they were made with it and are to go. */
  remove(id: string, { deletesFiles = false }: { deletesFiles?: boolean } = {}): Promise<void> {
    return this.connection.done('DELETE', `${projectPath(id)}${deletesFiles ? '?delete_files=true' : ''}`)
  }
}

class AgentsClient {
  constructor(private readonly connection: Connection) {}

  async list(): Promise<Agent[]> {
    return (await this.connection.json<{ agents: Agent[] }>('GET', '/agents')).agents
  }

  /** That of new projects. */
  async default(): Promise<Provider> {
    return (await this.connection.json<{ agent_provider: Provider }>('GET', '/agents/default')).agent_provider
  }

  async setDefault(provider: GivenProvider): Promise<Provider> {
    const body = { agent_provider: provider }
    return (await this.connection.json<{ agent_provider: Provider }>('PUT', '/agents/default', { body })).agent_provider
  }
}

class QueueClient {
  constructor(private readonly connection: Connection) {}

  list(page: { limit?: number } = {}): Promise<QueueOverview> {
    return this.connection.json('GET', `/queue${queryOf(page)}`)
  }

  get(id: string): Promise<QueueEntry> {
    return this.connection.json('GET', entryPath(id))
  }

  /** Takes up a dead letter, or sends an undelivered reply again. */
  retry(id: string): Promise<QueueEntry> {
    return this.connection.json('POST', `${entryPath(id)}/retry`)
  }

  /** Takes a message out that nobody works on, or lets go of a reply. */
  drop(id: string): Promise<QueueEntry> {
    return this.connection.json('DELETE', entryPath(id))
  }
}

function projectPath(id: string): string {
  return `/projects/${encodeURIComponent(id)}`
}

function entryPath(id: string): string {
  return `/queue/${encodeURIComponent(id)}`
}

function queryOf(values: Record<string, string | number | undefined>): string {
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  return given.length === 0 ? '' : `?${given.join('&')}`
}
