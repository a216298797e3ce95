// Events, in streams and as stored.

import { z } from 'zod'
import { type ActivityEventName, STREAM_EVENT_NAMES, type StreamEventName } from '../../core/wire-names.js'
import { runSchema } from './commands.js'
import { conversationSchema } from './conversations.js'
import { timeSchema, tokenUsageSchema } from './values.js'

/** The data of a command's events; unknown values are omitted. */
export const eventSchemas = {
  started: z.object({ session_id: z.string().exactOptional(), model: z.string().exactOptional() }),
  output: z.object({ line: z.string(), stream: z.enum(['stdout', 'stderr']) }),
  thinking: z.object({ content: z.string() }),
  tool_use: z.object({ tool: z.string(), input: z.record(z.string(), z.unknown()), tool_id: z.string() }),
  tool_result: z.object({ output: z.string(), tool: z.string(), tool_id: z.string(), is_error: z.boolean() }),
  notice: z.object({
    message: z.string(),
    is_technical: z.boolean().exactOptional().describe('Whether it is for developers only.'),
  }),
  error: z.object({ error: z.string(), reason: z.string() }),
  agent_complete: z.object({
    is_error: z.boolean(),
    final_output: z.string().exactOptional(),
    session_id: z.string().exactOptional(),
    exit_code: z.number().exactOptional(),
    duration_ms: z.number(),
    usage: tokenUsageSchema.exactOptional(),
    cost_usd: z.number().exactOptional(),
    error: z.string().exactOptional(),
    reason: z.string().exactOptional(),
    pod_problem: z.string().exactOptional().describe("What is wrong with the project's pod, if that is the cause."),
    retry_at: z.number().exactOptional().describe('When a rate limit ends, in milliseconds since the epoch.'),
    metadata: z.record(z.string(), z.unknown()).exactOptional(),
  }),
  complete: z.object({
    exit_code: z.number(),
    duration_ms: z.number(),
    session_id: z.string().nullable(),
    provider: z.string().nullable(),
    status: z.enum(['answered', 'failed', 'cancelled', 'dropped', 'refused']),
    error: z.string().exactOptional(),
    reason: z
      .string()
      .exactOptional()
      .describe('Why the last run failed. `max_turns` with `answered`: the agent paused and can continue.'),
  }),
} satisfies Record<StreamEventName, z.ZodObject>

type EventData = { [Name in StreamEventName]: z.output<(typeof eventSchemas)[Name]> }

/** The end of the last run. */
export type AgentComplete = EventData['agent_complete']
/** The last event of every stream. */
export type Complete = EventData['complete']

/** An event as clients see it. */
export type StreamEvent = { [Name in StreamEventName]: { name: Name; data: EventData[Name] } }[StreamEventName]

/** `id` counts from 1 without gaps. */
export type CommandEvent = { id: number } & StreamEvent

const runEventSchema = z.object({
  id: z.number().describe('Counts from 1 without gaps across all runs of its message.'),
  at: timeSchema,
  name: z.enum(STREAM_EVENT_NAMES),
  data: z.record(z.string(), z.unknown()),
})

export const runParams = z.object({ id: z.uuid().describe('The id of the run.') })

export const runEventsQuery = z.object({
  after: z.coerce.number<number>().int().min(0).default(0).describe('List only events after the one with this id.'),
  limit: z.coerce.number<number>().int().min(1).max(1000).default(200).describe('The maximum number of events.'),
})
export type RunEventsQuery = z.input<typeof runEventsQuery>

export const runEventsSchema = z.object({
  run: runSchema,
  conversation_id: z.string(),
  message_id: z.string(),
  events: z.array(runEventSchema),
  next: z.number().nullable().describe('Pass it as `after` to get later events; null if there are none yet.'),
})
export type RunEvents = z.output<typeof runEventsSchema>

export const activityHeaders = z.object({
  'last-event-id': z.string().optional().describe('The last id received.'),
})

const activitySchemas = {
  snapshot: z.object({
    conversations: z.array(
      conversationSchema.extend({
        last_event_id: z
          .number()
          .nullable()
          .describe('The last event of the running message so far: later ones follow here, earlier ones are stored.'),
      }),
    ),
  }),
  conversation: conversationSchema,
  conversation_deleted: z.object({ id: z.string() }),
  event: runEventSchema.extend({ conversation_id: z.string(), message_id: z.string() }),
} satisfies Record<ActivityEventName, z.ZodObject>

/** An event of the activity stream. */
export type ActivityEvent = {
  [Name in ActivityEventName]: { name: Name; data: z.output<(typeof activitySchemas)[Name]> }
}[ActivityEventName]
