import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { MessageOptions } from '../../channels/types.js'
import { chooseAgent } from '../../runtime/agent-choice.js'
import { commandRunner } from '../../runtime/command-runtime.js'
import type { AuditAction } from '../../store/audit.js'
import type { Conversation } from '../../store/conversations.js'
import type { Project } from '../../store/projects.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { providerOf } from '../../backends/engine/provider-names.js'
import { callerOf, noteOf } from './changes.js'
import { streamUrl } from './command-view.js'
import { millisecondsOf, modelSchema, projectParams, timeoutSchema, toolsSchema } from './schemas.js'
import { submitCommand } from './submit-command.js'

// Of any agent: what one takes for a session of its own is judged by its backend.
export const sessionIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][\w.:-]{0,127}$/, 'invalid session_id: take the one of an earlier command, or leave it out')

export const streamIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,127}$/, 'invalid stream_id: letters, digits and . _ - alone')

const common = {
  timeout: timeoutSchema.optional(),
  stream_id: streamIdSchema
    .optional()
    .describe('A name for the stream of its events, which no other command of the project has.'),
  metadata: z
    .record(z.string().min(1).max(100), z.string().max(2_000))
    .refine((metadata) => Object.keys(metadata).length <= 50, 'at most 50 entries')
    .optional()
    .describe('Kept with the command and its runs, and told to hooks.'),
}

const PROMPT_REQUIRED = 'prompt is required'

export const executeBodySchema = z.strictObject({
  prompt: z
    .string(PROMPT_REQUIRED)
    .max(1_000_000)
    .refine((prompt) => prompt.trim() !== '', PROMPT_REQUIRED),
  model: modelSchema.optional(),
  session_id: sessionIdSchema
    .optional()
    .describe('A session of this project and its agent to go on in; left out, a new one begins.'),
  allowed_tools: toolsSchema.optional(),
  ...common,
})

const argumentSchema = z
  .string()
  .max(100_000)
  .refine((argument) => !argument.includes('\0'), 'an argument cannot hold NUL')

export const shellBodySchema = z.strictObject({
  command: z
    .array(argumentSchema)
    .min(1)
    .max(1_000)
    .refine(([executable]) => executable !== '', 'the executable is missing')
    .describe('The executable and its arguments. No shell sees them.'),
  ...common,
})

export const gitBodySchema = z.strictObject({
  command: z.array(argumentSchema).min(1).max(1_000).describe('The arguments of git, such as ["status", "--short"].'),
  ...common,
})

export const submitHeadersSchema = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, 'invalid Idempotency-Key: 1 to 200 visible ASCII characters')
    .optional()
    .describe('The same command is taken once under it.'),
})

export const submittedSchema = z.object({
  command_id: z.string(),
  stream_url: z.string().describe('Where its events are.'),
  session_id: z.string().nullable().describe('Null until the agent has begun a new one.'),
  agent_provider: z.string().describe('Who works on it: an agent, `shell` or `git`.'),
})

type Submitted = z.output<typeof submittedSchema>

interface Asked {
  text: string
  options: MessageOptions
  action: AuditAction
}

export function registerExecuteRoutes(app: App, dependencies: ServiceDependencies): void {
  const { config, gateway, projects, now } = dependencies
  const response = { 202: submittedSchema }

  for (const path of ['claude', 'execute']) {
    app.route({
      method: 'POST',
      url: `/projects/:id/${path}`,
      config: { scope: 'run' },
      schema: {
        summary: 'Have the agent of a project do something',
        tags: ['commands'],
        params: projectParams,
        headers: submitHeadersSchema,
        body: executeBodySchema,
        response,
      },
      handler: async (request, reply) => {
        const { prompt, model, session_id: sessionId, allowed_tools: allowedTools, ...rest } = request.body
        const options = {
          ...(model !== undefined && { model }),
          ...(sessionId !== undefined && { sessionId }),
          ...(allowedTools && { allowedTools }),
          ...commonOptions(rest),
        }
        return reply.code(202).send(await submit(request, { text: prompt, options, action: 'command.execute' }))
      },
    })
  }

  for (const [path, body] of [
    ['shell', shellBodySchema],
    ['git', gitBodySchema],
  ] as const) {
    app.route({
      method: 'POST',
      url: `/projects/:id/${path}`,
      config: { scope: 'admin' },
      schema: {
        summary: path === 'git' ? 'Run git in a project' : 'Run a command in a project',
        tags: ['commands'],
        params: projectParams,
        headers: submitHeadersSchema,
        body,
        response,
      },
      handler: async (request, reply) => {
        const { command: given, ...rest } = request.body
        const command = path === 'git' ? ['git', ...given] : given
        const options = { command, ...commonOptions(rest) }
        return reply
          .code(202)
          .send(await submit(request, { text: commandLine(command), options, action: `command.${path}` }))
      },
    })
  }

  async function submit(
    request: Pick<FastifyRequest, 'caller'> & { params: { id: string }; headers: z.output<typeof submitHeadersSchema> },
    { text, options, action }: Asked,
  ): Promise<Submitted> {
    const project = await projects.get(request.params.id)
    const key = request.headers['idempotency-key']
    const { id, conversationId, isNew } = await submitCommand(
      { project, text, options, author: callerOf(request).name, ...(key !== undefined && { idempotencyKey: key }) },
      dependencies,
    )
    if (isNew) await noteOf(request, now)(gateway.store, { action, subject: id, detail: project.id })
    return {
      command_id: id,
      stream_url: streamUrl(project.id, id),
      session_id: options.sessionId ?? null,
      agent_provider: agentOf(project, options, isNew ? {} : await gateway.store.conversations.get(conversationId)),
    }
  }

  function agentOf(project: Project, { command }: MessageOptions, conversation: Partial<Conversation> = {}): string {
    if (command) return commandRunner(command)
    return providerOf(gateway.agents.resolve(chooseAgent(conversation, project, config).backend).agent.name())
  }
}

function commonOptions({
  timeout,
  stream_id: streamId,
  metadata,
}: Pick<z.output<typeof executeBodySchema>, 'timeout' | 'stream_id' | 'metadata'>): MessageOptions {
  return {
    ...(timeout !== undefined && { timeoutMs: millisecondsOf(timeout) }),
    ...(streamId !== undefined && { streamId }),
    ...(metadata && { metadata }),
  }
}

/** For people: as one would type it. */
function commandLine(argv: string[]): string {
  return argv
    .map((argument) => (/^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`))
    .join(' ')
}
