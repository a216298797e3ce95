import { z } from 'zod'
import { REMEMBERED } from '../../approvals/answer-approval.js'
import { GatewayError } from '../../errors.js'
import { storableText } from '../../turns/queue.js'
import type { ApprovalRule } from '../../store/approval-rules.js'
import type { Approval } from '../../store/approvals.js'
import { APPROVAL_STATES } from '../../store/schema.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { runnerName } from '../../backends/engine/provider-names.js'
import { callerOf, mayUse, noteOf } from './changes.js'
import { isoTime, nameSchema, pageQuery, timeSchema } from './schemas.js'
import { sightOf, visibleOf } from './sight.js'

export const approvalSchema = z.object({
  id: z.string(),
  state: z
    .enum(APPROVAL_STATES)
    .describe(
      '`asked`: it waits for an answer; `expired`: nobody answered in time, which counts as denied; `withdrawn`: the run has ended, or the agent asks no longer.',
    ),
  project_id: z.string().nullable(),
  message_id: z.string().describe('The message or command that is worked on.'),
  run_id: z.string(),
  agent_provider: z.string(),
  tool: z.string(),
  input: z.record(z.string(), z.unknown()).describe('Without known secrets; what is long is cut off.'),
  summary: z.string(),
  can_remember: z.boolean().describe('Whether `remember: "this"` is possible.'),
  asked_at: timeSchema,
  deadline: timeSchema,
  answered_at: timeSchema.nullable(),
  answered_by: z.string().nullable(),
})

export const approvalPageSchema = z.object({
  approvals: z.array(approvalSchema),
  next: z.string().nullable().describe('For `before`, to see older ones; null when there are none.'),
})

export const approvalAnswerSchema = z
  .strictObject({
    decision: z.enum(['allow', 'deny']),
    remember: z
      .enum(REMEMBERED)
      .optional()
      .describe('What needs no question from now on: exactly `this`, or all that the `tool` does in this project.'),
    message: z.string().max(2_000).optional().describe('What the agent is told of a refusal.'),
  })
  .refine(({ decision, remember }) => decision === 'allow' || remember === undefined, {
    path: ['remember'],
    error: 'only what is allowed can be remembered',
  })

export const approvalRuleSchema = z.object({
  id: z.string(),
  project_id: z.string().nullable().describe('Null: for conversations without a project.'),
  agent_provider: z.string(),
  tool: z.string(),
  subject: z.string().nullable().describe('What it is for, to the character; null for all that the tool does.'),
  created_at: timeSchema,
  created_by: z.string(),
})

const projectQuery = z.object({ project: nameSchema.optional().describe('Of this project alone.') })

const listQuery = pageQuery.extend({
  ...projectQuery.shape,
  state: z.enum(APPROVAL_STATES).optional(),
  before: z.uuid().optional().describe('The id of an approval: only older ones are listed. `next` of a page before.'),
})

const idParams = z.object({ id: z.uuid() })

export function registerApprovalRoutes(app: App, { gateway, now }: ServiceDependencies): void {
  const { store } = gateway

  app.route({
    method: 'GET',
    url: '/approvals',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'What agents ask to be allowed, newest first',
      tags: ['approvals'],
      querystring: listQuery,
      response: { 200: approvalPageSchema },
    },
    handler: async (request) => {
      const { state, project, limit, before } = request.query
      const caller = callerOf(request)
      const last = before === undefined ? undefined : await find(before, caller)
      const sight = await sightOf(caller, store)
      const filter = { sight, ...(state && { states: [state] }), ...projectsFor(caller, project) }
      const found = await store.approvals.list(filter, limit + 1, last)
      const page = found.slice(0, limit)
      return { approvals: page.map(approvalView), next: found.length > limit ? (page.at(-1)?.id ?? null) : null }
    },
  })

  app.route({
    method: 'GET',
    url: '/approvals/:id',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'What an agent asks to be allowed',
      tags: ['approvals'],
      params: idParams,
      response: { 200: approvalSchema },
    },
    handler: async (request) => approvalView(await find(request.params.id, callerOf(request))),
  })

  app.route({
    method: 'POST',
    url: '/approvals/:id',
    config: { scope: 'run', allowsProjectTokens: true },
    schema: {
      summary: 'Answer it, once: 409 tells who has answered before',
      tags: ['approvals'],
      params: idParams,
      body: approvalAnswerSchema,
      response: { 200: approvalSchema },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const { id } = await find(request.params.id, caller)
      const { decision, remember, message } = request.body
      const words = message && { message: storableText(message) }
      const answer = { decision, ...(remember && { remember }), ...words, by: caller.name }
      return approvalView(await gateway.approvals.answer(id, answer, noteOf(request, now)))
    },
  })

  app.route({
    method: 'GET',
    url: '/approval-rules',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'What agents may do without a question, newest first',
      tags: ['approvals'],
      querystring: pageQuery.extend(projectQuery.shape),
      response: { 200: z.object({ rules: z.array(approvalRuleSchema) }) },
    },
    handler: async (request) => {
      const { project, limit } = request.query
      const rules = await store.approvalRules.list(projectsFor(callerOf(request), project), limit)
      return { rules: rules.map(ruleView) }
    },
  })

  app.route({
    method: 'DELETE',
    url: '/approval-rules/:id',
    config: { scope: 'admin', allowsProjectTokens: true },
    schema: {
      summary: 'Have the agent ask again',
      tags: ['approvals'],
      params: idParams,
      response: { 204: z.undefined() },
    },
    handler: async (request, reply) => {
      const { id } = request.params
      const caller = callerOf(request)
      await store.transaction(async (tables) => {
        const rule = await tables.approvalRules.get(id)
        if (!rule || !isFor(caller, rule) || !(await tables.approvalRules.remove(id))) {
          throw new GatewayError('not_found', `There is no rule ${id}. GET /approval-rules shows those there are.`)
        }
        await noteOf(request, now)(tables, { action: 'approval-rule.remove', subject: id })
      })
      return reply.code(204).send()
    },
  })

  async function find(id: string, caller: Caller): Promise<Approval> {
    const found = await store.approvals.get(id)
    const [approval] = await visibleOf(found && isFor(caller, found) ? [found] : [], caller, store)
    if (approval) return approval
    throw new GatewayError('not_found', `There is no approval ${id}. GET /approvals shows those there are.`)
  }
}

/** A token of single projects sees nothing that is of none. */
function isFor(caller: Caller, { projectId }: { projectId?: string }): boolean {
  return projectId === undefined ? caller.projects === undefined : mayUse(caller, projectId)
}

function projectsFor(caller: Caller, project: string | undefined): { projectIds?: string[] } {
  if (project === undefined) return caller.projects ? { projectIds: caller.projects } : {}
  if (mayUse(caller, project)) return { projectIds: [project] }
  throw new GatewayError('forbidden', `The token is not for the project ${JSON.stringify(project)}.`)
}

function approvalView(approval: Approval): z.output<typeof approvalSchema> {
  return {
    id: approval.id,
    state: approval.state,
    project_id: approval.projectId ?? null,
    message_id: approval.messageId,
    run_id: approval.runId,
    agent_provider: runnerName(approval.backend),
    tool: approval.toolName,
    input: approval.toolInput,
    summary: approval.summary,
    can_remember: approval.subject !== undefined,
    asked_at: isoTime(approval.askedAt),
    deadline: isoTime(approval.deadline),
    answered_at: approval.answeredAt === undefined ? null : isoTime(approval.answeredAt),
    answered_by: approval.answeredBy ?? null,
  }
}

function ruleView(rule: ApprovalRule): z.output<typeof approvalRuleSchema> {
  return {
    id: rule.id,
    project_id: rule.projectId ?? null,
    agent_provider: runnerName(rule.backend),
    tool: rule.toolName,
    subject: rule.subject ?? null,
    created_at: isoTime(rule.createdAt),
    created_by: rule.createdBy,
  }
}
