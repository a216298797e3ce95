import { z } from 'zod'
import { QUEUE_MODES } from '../../channels/types.js'
import { choiceOf } from '../../conversation/conversation-choice.js'
import type { Scrubber } from '../../credentials/scrubber.js'
import { describePlace } from '../../runtime/agent-choice.js'
import { CONVERSATION_STATES, type ConversationView, type TranscriptPlace } from '../../store/conversation-views.js'
import type { Message } from '../../store/inbox.js'
import type { Delivery } from '../../store/outbox.js'
import type { RunRecord } from '../../store/runs.js'
import type { Store } from '../../store/store.js'
import type { ServiceDependencies } from '../dependencies.js'
import { providerOf, runnerName } from '../../backends/engine/provider-names.js'
import { COMMAND_STATES, runSchema, runView } from './command-view.js'
import { beginningOf, isoTime, timeSchema } from './schemas.js'

const runnerSchema = z.string().describe('An agent, `shell` or `git`.')

export const conversationSchema = z.object({
  id: z.string(),
  channel: z.string(),
  address: z.string().describe('What the channel calls it.'),
  is_private: z.boolean().describe('Whether it is with one person alone.'),
  project_id: z.string().nullable(),
  state: z.enum(CONVERSATION_STATES),
  open: z.number().describe('How many messages are worked on or wait.'),
  asked: z.number().describe('How many questions of its agent wait for an answer: GET /approvals.'),
  question: z.string().nullable().describe('The beginning of the latest message.'),
  message_id: z.string().nullable().describe('The message that is worked on, or comes next.'),
  waits_until: timeSchema.nullable().describe('When a waiting one is taken up, at the earliest.'),
  run: z
    .object({ id: z.string(), provider: runnerSchema, model: z.string().nullable(), started_at: timeSchema })
    .nullable()
    .describe('The turn that goes on.'),
  last_number: z.number().describe('That of the last thing said; it goes up with each.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})

const queuedSchema = z.object({
  message_id: z.string(),
  state: z.enum(['queued', 'ready', 'active']).describe('As docs/queue-states.md draws them.'),
  author: z.string(),
  text: z.string().describe('Its beginning.'),
  received_at: timeSchema,
  due_at: timeSchema,
})

export const conversationDetailsSchema = conversationSchema.extend({
  agent_provider: z.string().describe('Who answers the next message.'),
  model: z.string().nullable().describe("Null is the agent's own."),
  chosen: z
    .object({
      agent_provider: z.string().nullable(),
      model: z.string().nullable(),
      queue_mode: z.enum(QUEUE_MODES).nullable(),
    })
    .describe('What was chosen in the conversation; null is that of its project, or the configured one.'),
  queue_mode: z.enum(QUEUE_MODES).describe('What becomes of a message that comes while the agent works.'),
  directory: z.string().describe('Where the agent works.'),
  session: z.object({ id: z.string(), provider: z.string(), used_at: timeSchema }).nullable(),
  queue: z.array(queuedSchema).describe('What is worked on and waits, in order: the first 50.'),
  usage: z.object({
    runs: z.number(),
    worked_ms: z.number(),
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_read_tokens: z.number(),
    cache_write_tokens: z.number(),
    cost_usd: z.number().nullable().describe('As far as the agents told.'),
    priced_runs: z.number().describe('How many of the runs have told their cost.'),
  }),
})

const saidSchema = z.object({
  id: z.string(),
  text: z.string(),
  notes: z.array(z.string()).describe('What the gateway adds, a sentence each.'),
  is_error: z.boolean(),
  is_question: z.boolean().describe('Whether it asks for the approval that has its id.'),
  files: z.array(z.union([z.object({ path: z.string() }), z.object({ url: z.string() })])),
  state: z.enum(['pending', 'delivered', 'undelivered', 'dropped']),
  run_id: z.string().nullable(),
  created_at: timeSchema,
})

export const transcriptEntrySchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('message'),
    id: z.string(),
    number: z.number(),
    kind: z
      .string()
      .describe('`message`, or what began the turn beside a person: `cron`, `heartbeat`, `hook`, `webhook`.'),
    author: z.string(),
    text: z.string(),
    state: z.enum(COMMAND_STATES),
    problem: z.string().nullable(),
    merged_into: z
      .string()
      .nullable()
      .describe('The id of the message that it was taken together with: its runs and replies are there.'),
    received_at: timeSchema,
    finished_at: timeSchema.nullable(),
    replies: z.array(saidSchema).describe('In order; the last is the answer, once there is one.'),
    runs: z.array(runSchema).describe('The attempts, in order.'),
  }),
  saidSchema.extend({ type: z.literal('reply'), number: z.number() }).describe('Something that answers no message.'),
])

type TranscriptEntry = z.output<typeof transcriptEntrySchema>

const LISTED_MESSAGES = 50

export function conversationView(
  { id, channel, address, projectId, head, run, ...view }: ConversationView,
  scrubber: Scrubber,
): z.output<typeof conversationSchema> {
  return {
    id,
    channel,
    address,
    is_private: view.isPrivate,
    project_id: projectId ?? null,
    state: view.state,
    open: view.open,
    asked: view.asked,
    question: view.question === undefined ? null : beginningOf(view.question, scrubber),
    message_id: head?.messageId ?? null,
    waits_until: head?.state === 'ready' ? isoTime(head.dueAt) : null,
    run: run
      ? { id: run.id, provider: runnerName(run.backend), model: run.model ?? null, started_at: isoTime(run.startedAt) }
      : null,
    last_number: view.lastSeq,
    created_at: isoTime(view.createdAt),
    updated_at: isoTime(view.updatedAt),
  }
}

export async function conversationDetails(
  conversation: ConversationView,
  { config, gateway, now }: Pick<ServiceDependencies, 'config' | 'gateway' | 'now'>,
): Promise<z.output<typeof conversationDetailsSchema>> {
  const { store, agents, scrubber } = gateway
  const { id } = conversation
  const { backend, model, workplace } = await choiceOf({ config, agents, store, now }, conversation)
  const session = await store.sessions.get(id)
  const { tokens, ...usage } = await store.runs.usage({ conversationId: id }, 0)
  return {
    ...conversationView(conversation, scrubber),
    agent_provider: providerOf(backend),
    model: model ?? null,
    chosen: {
      agent_provider: conversation.backend === undefined ? null : runnerName(conversation.backend),
      model: conversation.model ?? null,
      queue_mode: conversation.queueMode ?? null,
    },
    queue_mode: conversation.queueMode ?? config.queueMode,
    directory: describePlace(workplace),
    session: session
      ? { id: session.sessionId, provider: runnerName(session.backend), used_at: isoTime(session.usedAt) }
      : null,
    queue: (await store.inbox.waiting(id, LISTED_MESSAGES)).map((message) => ({
      message_id: message.id,
      state: message.state,
      author: message.author,
      text: beginningOf(message.text, scrubber),
      received_at: isoTime(message.receivedAt),
      due_at: isoTime(message.dueAt),
    })),
    usage: {
      runs: usage.turns,
      worked_ms: usage.workedMs,
      input_tokens: tokens?.inputTokens ?? 0,
      output_tokens: tokens?.outputTokens ?? 0,
      cache_read_tokens: tokens?.cacheReadTokens ?? 0,
      cache_write_tokens: tokens?.cacheWriteTokens ?? 0,
      cost_usd: usage.costUsd ?? null,
      priced_runs: usage.pricedTurns,
    },
  }
}

/** The whole of what stands at these places, in their order. */
export async function transcriptView(places: TranscriptPlace[], store: Store): Promise<TranscriptEntry[]> {
  const idsOf = (type: TranscriptPlace['type']): string[] =>
    places.filter((place) => place.type === type).map(({ id }) => id)
  const messages = new Map((await store.inbox.getAll(idsOf('message'))).map((message) => [message.id, message]))
  const replies = await store.outbox.getAll(idsOf('reply'), idsOf('message'))
  const runs = await store.runs.ofMessages(idsOf('message'))
  return places.flatMap(({ id, seq }): TranscriptEntry[] => {
    const message = messages.get(id)
    if (message) {
      const answers = replies.filter(({ messageId }) => messageId === id)
      const attempts = runs.filter(({ messageId }) => messageId === id)
      return [messageView(message, answers, attempts)]
    }
    const reply = replies.find((candidate) => candidate.id === id)
    return reply ? [{ type: 'reply', number: seq, ...saidView(reply) }] : []
  })
}

function messageView(message: Message, replies: Delivery[], runs: RunRecord[]): TranscriptEntry {
  const isRunning = runs.at(-1)?.state === 'running'
  return {
    type: 'message',
    id: message.id,
    number: message.seq,
    kind: message.kind,
    author: message.author,
    text: message.text,
    state: message.state === 'open' ? (isRunning ? 'running' : 'queued') : message.state,
    problem: message.problem ?? null,
    merged_into: message.mergedInto ?? null,
    received_at: isoTime(message.receivedAt),
    finished_at: message.finishedAt === undefined ? null : isoTime(message.finishedAt),
    replies: replies.map(saidView),
    runs: runs.map(runView),
  }
}

function saidView({ id, reply, state, runId, createdAt }: Delivery): z.output<typeof saidSchema> {
  return {
    id,
    text: reply.text,
    notes: reply.notes,
    is_error: reply.isError,
    is_question: reply.question !== undefined,
    files: (reply.files ?? []).map((file) => ('url' in file ? { url: file.url } : { path: file.path })),
    state,
    run_id: runId ?? null,
    created_at: isoTime(createdAt),
  }
}
