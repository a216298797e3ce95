// The client of the HTTP API, `aetheel/client`. It runs wherever there is `fetch`, and loads only its own folder and the
// parts of `core` that run in browsers.

import type { Login, Me, Ticket } from '../service/api/access.js'
import type { Agent, AgentList, DefaultAgent } from '../service/api/agents.js'
import type {
  Approval,
  ApprovalAnswer,
  ApprovalPage,
  ApprovalQuery,
  ApprovalRule,
  ApprovalRuleList,
  ApprovalRuleQuery,
} from '../service/api/approvals.js'
import type {
  CommandPage,
  CommandQuery,
  ExecuteRequest,
  GitRequest,
  ShellRequest,
  SubmittedCommand,
} from '../service/api/commands.js'
import type { ActivityEvent, RunEvents, RunEventsQuery } from '../service/api/events.js'
import type { AuditPage, AuditQuery, Figures, FiguresQuery, Health } from '../service/api/operation.js'
import type {
  Credential,
  CredentialList,
  NewCredential,
  NewProject,
  Project,
  ProjectChanges,
  ProjectFiles,
  ProjectList,
  Rotated,
  Template,
  TemplateList,
} from '../service/api/projects.js'
import type { QueueEntry, QueueOverview } from '../service/api/queue.js'
import type { CreatedToken, NewToken, Token, TokenList } from '../service/api/tokens.js'
import type { GivenProvider, PageQuery, Provider } from '../service/api/values.js'
import { activity } from './activity.js'
import { Command, GivenCommand } from './command.js'
import { Connection, type ConnectionOptions } from './connection.js'
import { ConversationsClient } from './conversations-client.js'
import type { StreamOptions } from './event-stream.js'
import { queryOf } from './query.js'

export { AetheelApiError, type ApiErrorCode, type FieldProblem } from './api-error.js'
export type { EventsOptions } from './command-events.js'
export type { Command, GivenCommand } from './command.js'
export type { StreamOptions } from './event-stream.js'
export type * from './types.js'

export type AetheelClientOptions = ConnectionOptions

export interface SubmitOptions {
  /** Your own key for the command: sending it again with the same key does not create a second command. */
  idempotencyKey?: string
}

export class AetheelClient {
  readonly projects: ProjectsClient
  readonly agents: AgentsClient
  readonly queue: QueueClient
  readonly credentials: CredentialsClient
  readonly conversations: ConversationsClient
  readonly approvals: ApprovalsClient
  readonly tokens: TokensClient
  readonly #connection: Connection

  constructor(options: AetheelClientOptions) {
    this.#connection = new Connection(options)
    this.projects = new ProjectsClient(this.#connection)
    this.agents = new AgentsClient(this.#connection)
    this.queue = new QueueClient(this.#connection)
    this.credentials = new CredentialsClient(this.#connection)
    this.conversations = new ConversationsClient(this.#connection)
    this.approvals = new ApprovalsClient(this.#connection)
    this.tokens = new TokensClient(this.#connection)
  }

  /** For a client without a token: logs this browser in, in all tabs, until logout or for 30 days. */
  async login(token: string): Promise<Me> {
    return this.#login('/login', { token })
  }

  /** Like `login`, with the code of a link that "aetheel dashboard" prints. It works once. */
  async loginWithCode(code: string): Promise<Me> {
    return this.#login('/login/code', { code })
  }

  /** The token stays valid. Logs this browser out even if the gateway does not answer and this rejects. */
  async logout(): Promise<void> {
    try {
      await this.#connection.done('POST', '/logout')
    } finally {
      this.#connection.pageKey.clear()
    }
  }

  /** What the token allows. */
  me(): Promise<Me> {
    return this.#connection.json('GET', '/me')
  }

  /** Gives the project's agent a prompt. Settles when the gateway has stored it. */
  execute(projectId: string, request: ExecuteRequest, options?: SubmitOptions): Promise<GivenCommand> {
    return this.#submit(projectId, 'execute', request, options)
  }

  /** Runs a program in a project, without a shell. */
  shell(projectId: string, request: ShellRequest, options?: SubmitOptions): Promise<GivenCommand> {
    return this.#submit(projectId, 'shell', request, options)
  }

  git(projectId: string, request: GitRequest, options?: SubmitOptions): Promise<GivenCommand> {
    return this.#submit(projectId, 'git', request, options)
  }

  /** A command submitted earlier. Sends no request. */
  command(projectId: string, commandId: string): Command {
    return new Command(this.#connection, projectId, commandId)
  }

  /** The commands of a project, newest first. */
  commands(projectId: string, page: CommandQuery = {}): Promise<CommandPage> {
    return this.#connection.json('GET', `${projectPath(projectId)}/commands${queryOf(page)}`)
  }

  /** Live activity in all conversations. Reconnects when the connection breaks. */
  activity(options?: StreamOptions): AsyncGenerator<ActivityEvent, void> {
    return activity(this.#connection, options)
  }

  /** The stored events of a run, in order. */
  runEvents(runId: string, page: RunEventsQuery = {}): Promise<RunEvents> {
    return this.#connection.json('GET', `/runs/${encodeURIComponent(runId)}/events${queryOf(page)}`)
  }

  /** Usage and outcomes of runs by day, agent or project. */
  figures(query: FiguresQuery = {}): Promise<Figures> {
    return this.#connection.json('GET', `/figures${queryOf(query)}`)
  }

  /** Templates for new projects. */
  async templates(): Promise<Template[]> {
    return (await this.#connection.json<TemplateList>('GET', '/templates')).templates
  }

  /** Allows opening one event stream once, for an `EventSource`. `path` is that of a `stream_url`. */
  ticket(path: string): Promise<Ticket> {
    return this.#connection.json('POST', '/tickets', { body: { path } })
  }

  /** Who changed what, newest first. */
  audit(page: AuditQuery = {}): Promise<AuditPage> {
    return this.#connection.json('GET', `/audit${queryOf(page)}`)
  }

  /** Contract: an unhealthy gateway is not an error here. */
  health(): Promise<Health> {
    const isHealth = (body: unknown): boolean => typeof body === 'object' && body !== null && 'agents' in body
    return this.#connection.json('GET', '/health', {}, isHealth)
  }

  async #login(path: string, body: object): Promise<Me> {
    const { page_key: pageKey, ...me } = await this.#connection.json<Login>('POST', path, { body })
    this.#connection.pageKey.save(pageKey)
    return me
  }

  async #submit(
    projectId: string,
    kind: string,
    body: object,
    { idempotencyKey }: SubmitOptions = {},
  ): Promise<GivenCommand> {
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    const path = `${projectPath(projectId)}/${kind}`
    const submitted = await this.#connection.json<SubmittedCommand>('POST', path, { body, headers })
    return new GivenCommand(this.#connection, projectId, submitted)
  }
}

class ProjectsClient {
  constructor(private readonly connection: Connection) {}

  async list(): Promise<Project[]> {
    return (await this.connection.json<ProjectList>('GET', '/projects')).projects
  }

  get(id: string): Promise<Project> {
    return this.connection.json('GET', projectPath(id))
  }

  /** The names of at most 50 files and directories in it that match `query`. */
  files(id: string, query = ''): Promise<ProjectFiles> {
    return this.connection.json('GET', `${projectPath(id)}/files${queryOf({ query })}`)
  }

  create(project: NewProject): Promise<Project> {
    return this.connection.json('POST', '/projects', { body: project })
  }

  /** Omitted settings stay; null resets one. */
  update(id: string, changes: ProjectChanges): Promise<Project> {
    return this.connection.json('PATCH', projectPath(id), { body: changes })
  }

  /** Keeps the files, unless they were created with it and `deletesFiles` is set. */
  remove(id: string, { deletesFiles = false }: { deletesFiles?: boolean } = {}): Promise<void> {
    return this.connection.done('DELETE', `${projectPath(id)}${deletesFiles ? '?delete_files=true' : ''}`)
  }
}

class AgentsClient {
  constructor(private readonly connection: Connection) {}

  async list(): Promise<Agent[]> {
    return (await this.connection.json<AgentList>('GET', '/agents')).agents
  }

  /** The agent of new projects. */
  async default(): Promise<Provider> {
    return (await this.connection.json<DefaultAgent>('GET', '/agents/default')).agent_provider
  }

  async setDefault(provider: GivenProvider): Promise<Provider> {
    const body = { agent_provider: provider }
    return (await this.connection.json<DefaultAgent>('PUT', '/agents/default', { body })).agent_provider
  }
}

class QueueClient {
  constructor(private readonly connection: Connection) {}

  list(page: PageQuery = {}): Promise<QueueOverview> {
    return this.connection.json('GET', `/queue${queryOf(page)}`)
  }

  get(id: string): Promise<QueueEntry> {
    return this.connection.json('GET', entryPath(id))
  }

  /** Retries a dead letter, or resends an undelivered reply. */
  retry(id: string): Promise<QueueEntry> {
    return this.connection.json('POST', `${entryPath(id)}/retry`)
  }

  /** Discards a message that is not running, or a reply. */
  drop(id: string): Promise<QueueEntry> {
    return this.connection.json('DELETE', entryPath(id))
  }
}

/** Approvals that agents ask for. */
class ApprovalsClient {
  constructor(private readonly connection: Connection) {}

  /** Newest first. */
  list(page: ApprovalQuery = {}): Promise<ApprovalPage> {
    return this.connection.json('GET', `/approvals${queryOf(page)}`)
  }

  get(id: string): Promise<Approval> {
    return this.connection.json('GET', approvalPath(id))
  }

  /** Only the first answer counts; a later one gets a `conflict` that says who answered. */
  answer(id: string, answer: ApprovalAnswer): Promise<Approval> {
    return this.connection.json('POST', approvalPath(id), { body: answer })
  }

  /** What is allowed without asking. */
  async rules(page: ApprovalRuleQuery = {}): Promise<ApprovalRule[]> {
    return (await this.connection.json<ApprovalRuleList>('GET', `/approval-rules${queryOf(page)}`)).rules
  }

  removeRule(id: string): Promise<void> {
    return this.connection.done('DELETE', `/approval-rules/${encodeURIComponent(id)}`)
  }
}

/** Who may use the API. */
class TokensClient {
  constructor(private readonly connection: Connection) {}

  /** Newest first, without their values. */
  async list(): Promise<Token[]> {
    return (await this.connection.json<TokenList>('GET', '/tokens')).tokens
  }

  /** Only this response has its value. */
  create(token: NewToken): Promise<CreatedToken> {
    return this.connection.json('POST', '/tokens', { body: token })
  }

  /** Rejects for the token that this client uses, and for the last admin token for all projects. */
  remove(id: string): Promise<void> {
    return this.connection.done('DELETE', `/tokens/${encodeURIComponent(id)}`)
  }
}

/** Credentials of one project or, without `projectId`, of all projects. */
class CredentialsClient {
  constructor(private readonly connection: Connection) {}

  async list({ projectId }: CredentialOwner = {}): Promise<Credential[]> {
    const path = credentialsPath(projectId)
    return (await this.connection.json<CredentialList>('GET', path)).credentials
  }

  set(name: string, credential: NewCredential, { projectId }: CredentialOwner = {}): Promise<void> {
    return this.connection.done('PUT', credentialsPath(projectId, name), { body: credential })
  }

  remove(name: string, { projectId }: CredentialOwner = {}): Promise<void> {
    return this.connection.done('DELETE', credentialsPath(projectId, name))
  }

  /** Encrypts all of them with a new key, and returns their number. */
  async rotate(): Promise<number> {
    return (await this.connection.json<Rotated>('POST', '/credentials/rotate')).count
  }
}

interface CredentialOwner {
  projectId?: string
}

function credentialsPath(projectId: string | undefined, name?: string): string {
  const owner = projectId === undefined ? '' : projectPath(projectId)
  return `${owner}/credentials${name === undefined ? '' : `/${encodeURIComponent(name)}`}`
}

function projectPath(id: string): string {
  return `/projects/${encodeURIComponent(id)}`
}

function approvalPath(id: string): string {
  return `/approvals/${encodeURIComponent(id)}`
}

function entryPath(id: string): string {
  return `/queue/${encodeURIComponent(id)}`
}
