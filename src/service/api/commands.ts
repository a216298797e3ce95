// Commands and their runs.

import { z } from 'zod'
import { MAX_MESSAGE_CHARACTERS } from '../../turns/limits.js'
import { projectParams } from './projects.js'
import {
  filesSchema,
  modelSchema,
  nextSchema,
  pageQuery,
  runnerSchema,
  sessionIdSchema,
  timeoutSchema,
  timeSchema,
  toolsSchema,
  usageSchema,
} from './values.js'

/** The message state `open` is split into `queued` and `running`. */
export const COMMAND_STATES = ['queued', 'running', 'answered', 'failed', 'cancelled', 'dropped', 'refused'] as const

const streamIdSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.-]{0,127}$/,
    'invalid stream_id: use only letters, digits and . _ -, beginning with a letter or digit',
  )

const common = {
  timeout: timeoutSchema.optional(),
  stream_id: streamIdSchema.optional().describe('A name for its event stream, unique in the project.'),
  metadata: z
    .record(z.string().min(1).max(100), z.string().max(2_000))
    .refine((metadata) => Object.keys(metadata).length <= 50, 'at most 50 entries')
    .optional()
    .describe('Stored with the command and its runs, and passed to hooks.'),
}

const PROMPT_REQUIRED = 'prompt is required'

export const executeBodySchema = z.strictObject({
  prompt: z
    .string(PROMPT_REQUIRED)
    .max(MAX_MESSAGE_CHARACTERS)
    .refine((prompt) => prompt.trim() !== '', PROMPT_REQUIRED),
  model: modelSchema.optional(),
  session_id: sessionIdSchema
    .optional()
    .describe("A session of the project's agent in this project, to resume. By default, a new one starts."),
  allowed_tools: toolsSchema.optional(),
  ...common,
})
export type ExecuteRequest = z.input<typeof executeBodySchema>

const argumentSchema = z
  .string()
  .max(100_000)
  .refine((argument) => !argument.includes('\0'), 'an argument cannot contain NUL')

export const shellBodySchema = z.strictObject({
  command: z
    .array(argumentSchema)
    .min(1)
    .max(1_000)
    .refine(([executable]) => executable !== '', 'the executable is missing')
    .describe('The executable and its arguments. They run without a shell.'),
  ...common,
})
export type ShellRequest = z.input<typeof shellBodySchema>

export const gitBodySchema = z.strictObject({
  command: z.array(argumentSchema).min(1).max(1_000).describe('The arguments of git, such as ["status", "--short"].'),
  ...common,
})
export type GitRequest = z.input<typeof gitBodySchema>

export const submittedSchema = z.object({
  command_id: z.string(),
  stream_url: z.string().describe('The path of its event stream.'),
  session_id: z.string().nullable().describe('Null until the agent has started a new one.'),
  agent_provider: z.string().describe('What runs it: an agent, `shell` or `git`.'),
})
export type SubmittedCommand = z.output<typeof submittedSchema>

export const commandParams = projectParams.extend({ commandId: z.uuid() })

export const streamParams = projectParams.extend({ streamId: streamIdSchema })

export const streamHeaders = z.object({
  'last-event-id': z.string().optional().describe('The id of the last event received: the stream continues after it.'),
})

export const streamOverSchema = z.null().describe('No more events can follow.')

export const commandQuery = pageQuery.extend({
  before: z
    .uuid()
    .optional()
    .describe('List only commands older than the one with this id: `next` of the previous page.'),
})
export type CommandQuery = z.input<typeof commandQuery>

export const failureSchema = z.object({
  reason: z.string().nullable(),
  message: z.string(),
  pod_problem: z.string().optional().describe("What is wrong with the project's pod, if that is the cause."),
})
export type Failure = z.output<typeof failureSchema>

const errorSchema = failureSchema
  .nullable()
  .describe('Why there is no answer, or, with the reason `max_turns`, only the beginning of one.')

export const runSchema = z.object({
  id: z.string(),
  provider: runnerSchema,
  model: z.string().nullable(),
  state: z.enum(['running', 'answered', 'failed', 'cancelled', 'interrupted']),
  is_paused: z.boolean().describe('Whether the agent paused at its turn limit and can continue in its session.'),
  session_id: z.string().nullable(),
  exit_code: z.number().nullable(),
  duration_ms: z.number().nullable(),
  usage: usageSchema,
  cost_usd: z.number().nullable(),
  error: errorSchema,
  started_at: timeSchema,
  ended_at: timeSchema.nullable(),
})
export type Run = z.output<typeof runSchema>

export const commandSummarySchema = z.object({
  command_id: z.string(),
  kind: z.enum(['agent', 'shell', 'git']),
  state: z.enum(COMMAND_STATES),
  prompt: z.string().describe('The prompt; for a shell or git command, the command as one line.'),
  agent_provider: runnerSchema.nullable().describe('What runs it, or will: an agent, `shell` or `git`.'),
  session_id: z.string().nullable(),
  stream_url: z.string(),
  created_at: timeSchema,
  finished_at: timeSchema.nullable(),
})
export type CommandSummary = z.output<typeof commandSummarySchema>

export const commandSchema = commandSummarySchema.extend({
  project_id: z.string(),
  command: z.array(z.string()).nullable().describe('For a shell or git command: the executable and its arguments.'),
  result: z.string().nullable().describe("The agent's final text, or the output of the command."),
  files: filesSchema.describe(
    'The files that the agent named in `MEDIA:` lines, which are removed from `result`. They are not checked or sent. Relative paths start at the project directory.',
  ),
  exit_code: z.number().nullable(),
  error: errorSchema,
  duration_ms: z.number().nullable().describe('Of the last run.'),
  usage: usageSchema.describe('Of all runs.'),
  cost_usd: z.number().nullable().describe('Of all runs, as far as their agents reported it.'),
  metadata: z.record(z.string(), z.string()),
  runs: z.array(runSchema).describe('The attempts, in order.'),
})
export type CommandDetails = z.output<typeof commandSchema>

export const commandPageSchema = z.object({ commands: z.array(commandSummarySchema), next: nextSchema })
export type CommandPage = z.output<typeof commandPageSchema>

export const cancelledSchema = z.object({
  command_id: z.string(),
  outcome: z
    .enum(['stopped', 'dropped', 'asked', 'finished'])
    .describe(
      '`stopped`: nothing of it is alive; `dropped`: it had not started, and will not; `asked`: another gateway runs it and will stop it soon; `finished`: it had already ended.',
    ),
})
export type CancelledCommand = z.output<typeof cancelledSchema>
