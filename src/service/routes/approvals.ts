import { GatewayError } from '../../errors.js'
import { storableText } from '../../turns/queue.js'
import type { ApprovalRule } from '../../store/approval-rules.js'
import type { Approval } from '../../store/approvals.js'
import * as api from '../api/approvals.js'
import { nothingSchema } from '../api/values.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { runnerName } from '../../backends/agents.js'
import { routesOf } from '../route.js'
import { definedFields, isoTime, toWire } from '../wire.js'
import { callerOf, mayUse, auditFor } from './changes.js'
import { visibilityOf, visibleOf } from './visibility.js'

export function registerApprovalRoutes(app: App, { gateway, now }: ServiceDependencies): void {
  const route = routesOf(app, 'approvals')
  const { store } = gateway

  route(
    'GET /approvals',
    { scope: 'read', allowsProjectTokens: true },
    'List the approvals that agents ask for, newest first',
    { querystring: api.approvalQuery, response: { 200: api.approvalPageSchema } },
    async (request) => {
      const { state, project, limit, before } = request.query
      const caller = callerOf(request)
      const last = before === undefined ? undefined : await find(before, caller)
      const visibility = await visibilityOf(caller, store)
      const filter = definedFields({ visibility, states: state && [state], projectIds: projectsFor(caller, project) })
      const found = await store.approvals.list(filter, limit + 1, last)
      const page = found.slice(0, limit)
      return { approvals: page.map(approvalView), next: found.length > limit ? (page.at(-1)?.id ?? null) : null }
    },
  )

  route(
    'GET /approvals/:id',
    { scope: 'read', allowsProjectTokens: true },
    'Show an approval',
    { params: api.approvalParams, response: { 200: api.approvalSchema } },
    async (request) => approvalView(await find(request.params.id, callerOf(request))),
  )

  route(
    'POST /approvals/:id',
    { scope: 'run', allowsProjectTokens: true },
    'Answer an approval. Only the first answer counts: a later one gets 409, which says who answered',
    { params: api.approvalParams, body: api.approvalAnswerSchema, response: { 200: api.approvalSchema } },
    async (request) => {
      const caller = callerOf(request)
      const { id } = await find(request.params.id, caller)
      const { message, ...rest } = request.body
      const answer = definedFields({ ...rest, message: message ? storableText(message) : undefined, by: caller.name })
      return approvalView(await gateway.approvals.answer(id, answer, auditFor(request, now)))
    },
  )

  route(
    'GET /approval-rules',
    { scope: 'read', allowsProjectTokens: true },
    'List the rules for what agents may do without asking, newest first',
    { querystring: api.approvalRuleQuery, response: { 200: api.approvalRuleListSchema } },
    async (request) => {
      const { project, limit } = request.query
      const filter = definedFields({ projectIds: projectsFor(callerOf(request), project) })
      const rules = await store.approvalRules.list(filter, limit)
      return { rules: rules.map(ruleView) }
    },
  )

  route(
    'DELETE /approval-rules/:id',
    { scope: 'admin', allowsProjectTokens: true },
    'Remove a rule, so that the agent asks again',
    { params: api.approvalParams, response: { 204: nothingSchema } },
    async (request, reply) => {
      const { id } = request.params
      const caller = callerOf(request)
      await store.transaction(async (tables) => {
        const rule = await tables.approvalRules.get(id)
        if (!rule || !mayAccess(caller, rule) || !(await tables.approvalRules.remove(id))) {
          throw new GatewayError('not_found', `There is no rule ${id}. List them with GET /approval-rules.`)
        }
        await auditFor(request, now)(tables, { action: 'approval-rule.remove', subject: id })
      })
      return reply.code(204).send()
    },
  )

  async function find(id: string, caller: Caller): Promise<Approval> {
    const found = await store.approvals.get(id)
    const [approval] = await visibleOf(found && mayAccess(caller, found) ? [found] : [], caller, store)
    if (approval) return approval
    throw new GatewayError('not_found', `There is no approval ${id}. List them with GET /approvals.`)
  }
}

/** Project tokens see only what belongs to a project. */
function mayAccess(caller: Caller, { projectId }: { projectId?: string }): boolean {
  return projectId === undefined ? caller.projects === undefined : mayUse(caller, projectId)
}

function projectsFor(caller: Caller, project: string | undefined): string[] | undefined {
  if (project === undefined) return caller.projects
  if (mayUse(caller, project)) return [project]
  throw new GatewayError('forbidden', `This token is not for project ${JSON.stringify(project)}.`)
}

function approvalView(approval: Approval): api.Approval {
  return toWire(api.approvalSchema, {
    ...approval,
    agentProvider: runnerName(approval.backend),
    tool: approval.toolName,
    input: approval.toolInput,
    canRemember: approval.subject !== undefined,
    deadline: isoTime(approval.deadline),
  })
}

function ruleView(rule: ApprovalRule): api.ApprovalRule {
  return toWire(api.approvalRuleSchema, { ...rule, agentProvider: runnerName(rule.backend), tool: rule.toolName })
}
