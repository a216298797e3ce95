import { z } from 'zod'
import { REMEMBERED } from '../../approvals/answer-approval.js'
import { APPROVAL_STATES } from '../../store/schema.js'
import { nameSchema, nextSchema, pageQuery, timeSchema } from './values.js'

export const approvalParams = z.object({ id: z.uuid() })

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
export type Approval = z.output<typeof approvalSchema>

export const approvalPageSchema = z.object({ approvals: z.array(approvalSchema), next: nextSchema })
export type ApprovalPage = z.output<typeof approvalPageSchema>

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
export type ApprovalAnswer = z.input<typeof approvalAnswerSchema>

export const approvalRuleSchema = z.object({
  id: z.string(),
  project_id: z.string().nullable().describe('Null: for conversations without a project.'),
  agent_provider: z.string(),
  tool: z.string(),
  subject: z.string().nullable().describe('What it is for, to the character; null for all that the tool does.'),
  created_at: timeSchema,
  created_by: z.string(),
})
export type ApprovalRule = z.output<typeof approvalRuleSchema>

export const approvalRuleListSchema = z.object({ rules: z.array(approvalRuleSchema) })
export type ApprovalRuleList = z.output<typeof approvalRuleListSchema>

const project = nameSchema.optional().describe('Of this project alone.')

export const approvalQuery = pageQuery.extend({
  project,
  state: z.enum(APPROVAL_STATES).optional(),
  before: z.uuid().optional().describe('The id of an approval: only older ones are listed. `next` of a page before.'),
})
export type ApprovalQuery = z.input<typeof approvalQuery>

export const approvalRuleQuery = pageQuery.extend({ project })
export type ApprovalRuleQuery = z.input<typeof approvalRuleQuery>
