import type { FastifyRequest } from 'fastify'
import type { MessageOptions } from '../../channels/types.js'
import { resolveAgent } from '../../runtime/agent-choice.js'
import { commandRunner } from '../../runtime/command-runtime.js'
import type { AuditAction } from '../../store/audit.js'
import type { Conversation } from '../../store/conversations.js'
import type { Project } from '../../store/projects.js'
import * as api from '../api/commands.js'
import { projectParams } from '../api/projects.js'
import { submitHeaders } from '../api/values.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { providerOf } from '../../backends/agents.js'
import { routesOf } from '../route.js'
import { fromWire, definedFields, millisecondsOf, toWire } from '../wire.js'
import { callerOf, auditFor } from './changes.js'
import { streamUrl } from './command-view.js'
import { submitCommand } from './submit-command.js'

interface Submission {
  text: string
  options: MessageOptions
  action: AuditAction
}

export function registerExecuteRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'commands')
  const { config, gateway, projects, now } = dependencies
  const response = { 202: api.submittedSchema }

  for (const path of ['claude', 'execute']) {
    route(
      `POST /projects/:id/${path}`,
      { scope: 'run' },
      'Send a prompt to the agent of a project',
      { params: projectParams, headers: submitHeaders, body: api.executeBodySchema, response },
      async (request, reply) => {
        const { prompt, timeout, ...rest } = request.body
        const options = fromWire({ ...rest, timeoutMs: timeout && millisecondsOf(timeout) })
        return reply.code(202).send(await submit(request, { text: prompt, options, action: 'command.execute' }))
      },
    )
  }

  for (const [path, body] of [
    ['shell', api.shellBodySchema],
    ['git', api.gitBodySchema],
  ] as const) {
    route(
      `POST /projects/:id/${path}`,
      { scope: 'admin' },
      path === 'git' ? 'Run git in a project' : 'Run a program in a project, without a shell',
      { params: projectParams, headers: submitHeaders, body, response },
      async (request, reply) => {
        const { command: args, timeout, ...rest } = request.body
        const command = path === 'git' ? ['git', ...args] : args
        const options = fromWire({ ...rest, command, timeoutMs: timeout && millisecondsOf(timeout) })
        return reply
          .code(202)
          .send(await submit(request, { text: commandLine(command), options, action: `command.${path}` }))
      },
    )
  }

  async function submit(
    request: Pick<FastifyRequest, 'caller'> & {
      params: { id: string }
      headers: { 'idempotency-key'?: string | undefined }
    },
    { text, options, action }: Submission,
  ): Promise<api.SubmittedCommand> {
    const project = await projects.get(request.params.id)
    const idempotencyKey = request.headers['idempotency-key']
    const command = definedFields({ project, text, options, author: callerOf(request).name, idempotencyKey })
    const { id, conversationId, isNew } = await submitCommand(command, dependencies)
    if (isNew) await auditFor(request, now)(gateway.store, { action, subject: id, detail: project.id })
    return toWire(api.submittedSchema, {
      commandId: id,
      streamUrl: streamUrl(project.id, id),
      sessionId: options.sessionId,
      agentProvider: agentOf(project, options, isNew ? {} : await gateway.store.conversations.get(conversationId)),
    })
  }

  function agentOf(project: Project, { command }: MessageOptions, conversation: Partial<Conversation> = {}): string {
    if (command) return commandRunner(command)
    return providerOf(resolveAgent(conversation, project, config, gateway.agents).backend)
  }
}

/** As one would type it in a shell. */
function commandLine(argv: string[]): string {
  return argv
    .map((argument) => (/^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`))
    .join(' ')
}
