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
      '`asked`: it waits for an answer; `expired`: nobody answered in time, which counts as denied; `withdrawn`: the run ended, or the agent no longer asks.',
    ),
  project_id: z.string().nullable(),
  message_id: z.string().describe('The message or command that the run belongs to.'),
  run_id: z.string(),
  agent_provider: z.string(),
  tool: z.string(),
  input: z.record(z.string(), z.unknown()).describe('Known secrets are redacted, long values truncated.'),
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
      .describe(
        'What to allow from now on without asking: exactly `this`, or everything the `tool` does in this project.',
      ),
    message: z.string().max(2_000).optional().describe('What to tell the agent if you deny it.'),
  })
  .refine(({ decision, remember }) => decision === 'allow' || remember === undefined, {
    path: ['remember'],
    error: 'needs the decision "allow"',
  })
export type ApprovalAnswer = z.input<typeof approvalAnswerSchema>

export const approvalRuleSchema = z.object({
  id: z.string(),
  project_id: z.string().nullable().describe('Null for conversations without a project.'),
  agent_provider: z.string(),
  tool: z.string(),
  subject: z.string().nullable().describe('What it allows, matched exactly; null for everything the tool does.'),
  created_at: timeSchema,
  created_by: z.string(),
})
export type ApprovalRule = z.output<typeof approvalRuleSchema>

export const approvalRuleListSchema = z.object({ rules: z.array(approvalRuleSchema) })
export type ApprovalRuleList = z.output<typeof approvalRuleListSchema>

const project = nameSchema.optional().describe('Only those of this project, by its id.')

export const approvalQuery = pageQuery.extend({
  project,
  state: z.enum(APPROVAL_STATES).optional(),
  before: z
    .uuid()
    .optional()
    .describe('List only approvals older than the one with this id: `next` of the previous page.'),
})
export type ApprovalQuery = z.input<typeof approvalQuery>

export const approvalRuleQuery = pageQuery.extend({ project })
export type ApprovalRuleQuery = z.input<typeof approvalRuleQuery>
