import { z } from 'zod'
import { typedWords } from '../../archive/search.js'
import { QUEUE_MODES } from '../../channels/types.js'
import { MAX_TITLE_CHARACTERS } from '../../conversation/conversation-title.js'
import { CONVERSATION_STATES } from '../../store/conversation-views.js'
import { MAX_FILES } from '../../media/inbox-files.js'
import { withoutAskPrefix } from '../../turns/accept.js'
import { MAX_MESSAGE_CHARACTERS } from '../../turns/limits.js'
import { printable } from '../../core/one-line.js'
import { COMMAND_STATES, runSchema } from './commands.js'
import {
  filesSchema,
  givenProviderSchema,
  modelSchema,
  nameSchema,
  nextSchema,
  pageQuery,
  runnerSchema,
  sessionIdSchema,
  timedIdSchema,
  timeSchema,
  tokenCounts,
} from './values.js'

export const conversationParams = z.object({ id: z.uuid().describe('The id of the conversation.') })

export const conversationRunSchema = z.object({
  id: z.string(),
  provider: runnerSchema,
  model: z.string().nullable(),
  started_at: timeSchema,
})

export const conversationSchema = z.object({
  id: z.string(),
  channel: z.string(),
  address: z.string().describe("The channel's own name for it."),
  is_private: z.boolean().describe('Whether it is with a single person.'),
  project_id: z.string().nullable(),
  title: z
    .string()
    .nullable()
    .describe('The title a person chose, otherwise the first words of the first message; null before that.'),
  title_is_chosen: z.boolean().describe('Whether a person chose the title.'),
  is_pinned: z.boolean(),
  is_archived: z.boolean(),
  has_failed: z.boolean().describe('Whether its latest message failed.'),
  state: z.enum(CONVERSATION_STATES),
  open: z.number().describe('The number of messages running or waiting.'),
  asked: z.number().describe('The number of approvals waiting for an answer: GET /approvals.'),
  question: z.string().nullable().describe('The beginning of the latest message.'),
  message_id: z.string().nullable().describe('The message that is running, or comes next.'),
  waits_until: timeSchema.nullable().describe('When a waiting message starts, at the earliest.'),
  run: conversationRunSchema.nullable().describe('The current run.'),
  last_number: z.number().describe('The number of the last entry in the transcript; it increases with each.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})
export type Conversation = z.output<typeof conversationSchema>

export const queuedSchema = z.object({
  message_id: z.string(),
  state: z.enum(['queued', 'ready', 'active']).describe('See docs/queue-states.md.'),
  author: z.string(),
  text: z.string().describe('The beginning of the message.'),
  received_at: timeSchema,
  due_at: timeSchema,
})

export const currentSessionSchema = z.object({ id: z.string(), provider: z.string(), used_at: timeSchema })

export const conversationUsageSchema = z.object({
  runs: z.number(),
  worked_ms: z.number(),
  ...tokenCounts,
  cost_usd: z.number().nullable().describe('As far as the agents reported it.'),
  priced_runs: z.number().describe('The number of runs that reported a cost.'),
})

export const choiceSchema = z.object({
  agent_provider: z.string().nullable(),
  model: z.string().nullable(),
  queue_mode: z.enum(QUEUE_MODES).nullable(),
})

export const conversationDetailsSchema = conversationSchema.extend({
  agent_provider: z.string().describe('The agent that answers the next message.'),
  model: z.string().nullable().describe("Null for the agent's own default."),
  chosen: choiceSchema.describe("What was chosen in the conversation; null for the project's or the configured value."),
  queue_mode: z.enum(QUEUE_MODES).describe('What happens to a message that arrives while the agent works.'),
  directory: z.string().describe('Where the agent works.'),
  session: currentSessionSchema.nullable(),
  queue: z.array(queuedSchema).describe('The messages running and waiting, in order; at most the first 50.'),
  usage: conversationUsageSchema,
})
export type ConversationDetails = z.output<typeof conversationDetailsSchema>

export const conversationQuery = pageQuery.extend({
  before: timedIdSchema.optional(),
  state: z.enum(CONVERSATION_STATES).optional(),
  channel: nameSchema.optional(),
  project: nameSchema.optional().describe('The id of a project.'),
  pinned: z.stringbool().optional().describe('`true` lists only pinned conversations, `false` only the others.'),
  archived: z
    .stringbool()
    .default(false)
    .describe('`true` lists only archived conversations. By default, only the others are listed.'),
  q: z
    .string()
    .max(500)
    .refine((q) => typedWords(wordsOf(q)).length > 0, 'enter at least one word to search for')
    .optional()
    .describe('Words that must all be in the same message or reply. Conversations with the latest match come first.'),
})
export type ConversationFilter = z.input<typeof conversationQuery>

/** The words of a search. */
export function wordsOf(q: string): string[] {
  return q.split(/\s+/)
}

export const matchSchema = z.object({
  type: z.enum(['message', 'reply']),
  id: z.string(),
  author: z.string().nullable().describe('Null if the gateway wrote it.'),
  text: z.string().describe('The line that matches.'),
  at: timeSchema,
})

const foundSchema = conversationSchema.extend({
  match: matchSchema.nullable().describe('The latest match of a search.'),
})
export type FoundConversation = z.output<typeof foundSchema>

export const conversationPageSchema = z.object({ conversations: z.array(foundSchema), next: nextSchema })
export type ConversationPage = z.output<typeof conversationPageSchema>

export const saidSchema = z.object({
  id: z.string(),
  text: z.string(),
  notes: z.array(z.string()).describe('What the gateway adds, one sentence each.'),
  is_error: z.boolean(),
  is_question: z.boolean().describe('Whether it asks for the approval with the same id.'),
  can_continue: z.boolean().describe('Whether the agent paused at its turn limit: POST /conversations/:id/continue.'),
  files: filesSchema,
  state: z.enum(['pending', 'delivered', 'undelivered', 'dropped']),
  run_id: z.string().nullable(),
  created_at: timeSchema,
})
export type Said = z.output<typeof saidSchema>

export const uploadedFileSchema = z.object({
  id: z.string().describe('Put it into `files` of a message.'),
  name: z.string(),
  size: z.number().describe('In bytes.'),
  media_type: z.string(),
  url: z.string().describe('Where to download it.'),
})
export type UploadedFile = z.output<typeof uploadedFileSchema>

export const uploadQuery = z.object({
  name: z.string().min(1).max(255).default('file').describe('The name of the file.'),
})

export const fileParams = conversationParams.extend({ fileId: z.uuid().describe('The id of the file.') })

export const fileResponse = {
  description: 'The file',
  content: { 'application/octet-stream': { schema: z.any() } },
}

export const transcriptMessageSchema = z.object({
  type: z.literal('message'),
  id: z.string(),
  number: z.number(),
  kind: z
    .string()
    .describe('`message` from a person, or what else started the turn: `cron`, `heartbeat`, `hook`, `webhook`.'),
  author: z.string(),
  text: z.string(),
  files: z.array(uploadedFileSchema).describe('The files uploaded for it.'),
  state: z.enum(COMMAND_STATES),
  problem: z.string().nullable(),
  merged_into: z
    .string()
    .nullable()
    .describe('The id of the message it was merged into, which has its runs and replies.'),
  received_at: timeSchema,
  finished_at: timeSchema.nullable(),
  replies: z.array(saidSchema).describe('In order; the last is the answer, once there is one.'),
  runs: z.array(runSchema).describe('The attempts, in order.'),
})

const transcriptEntrySchema = z.discriminatedUnion('type', [
  transcriptMessageSchema,
  saidSchema
    .extend({ type: z.literal('reply'), number: z.number() })
    .describe('Something the gateway said that answers no message.'),
])
export type TranscriptEntry = z.output<typeof transcriptEntrySchema>

export const transcriptQuery = pageQuery.extend({
  before: z.coerce
    .number<number>()
    .int()
    .min(1)
    .optional()
    .describe('List only entries older than the one with this number: `next` of the previous page.'),
})
export type TranscriptQuery = z.input<typeof transcriptQuery>

export const transcriptPageSchema = z.object({
  entries: z.array(transcriptEntrySchema),
  next: z.number().nullable().describe('Pass it as `before` to get older entries; null if there are none.'),
})
export type TranscriptPage = z.output<typeof transcriptPageSchema>

export const newConversationSchema = z.strictObject({
  project_id: nameSchema.optional().describe('By default, the agent works in WORKING_DIR.'),
  agent_provider: givenProviderSchema.optional().describe("By default, the project's agent or the configured one."),
  model: modelSchema.optional(),
})
export type NewConversation = z.input<typeof newConversationSchema>

const titleSchema = z
  .string()
  .transform(printable)
  .pipe(z.string().min(1, 'a title needs at least one character; null resets it').max(MAX_TITLE_CHARACTERS))

export const conversationChangesSchema = z
  .strictObject({
    project_id: nameSchema.nullable().optional(),
    agent_provider: givenProviderSchema.nullable().optional(),
    model: modelSchema.nullable().optional(),
    queue_mode: z.enum(QUEUE_MODES).nullable().optional(),
    title: titleSchema.nullable().optional().describe('Null resets it to the first words of the first message.'),
    is_pinned: z.boolean().optional(),
    is_archived: z.boolean().optional().describe('A new message takes the conversation out of the archive.'),
  })
  .describe('Omitted fields stay unchanged; null resets a choice. Another project or agent starts a fresh session.')
export type ConversationChanges = z.input<typeof conversationChangesSchema>

const TEXT_REQUIRED = 'text is required'

export const newMessageSchema = z
  .strictObject({
    text: z
      .string(TEXT_REQUIRED)
      .max(MAX_MESSAGE_CHARACTERS)
      .describe(
        'A prompt for the agent, or a slash command: GET /conversations/:id/commands. May be empty if there are files.',
      ),
    files: z.array(z.uuid()).max(MAX_FILES).default([]).describe('The ids of uploaded files. Each can be sent once.'),
  })
  .refine(({ text, files }) => files.length > 0 || withoutAskPrefix(text).trim() !== '', {
    path: ['text'],
    message: TEXT_REQUIRED,
  })

export const takenMessageSchema = z.object({
  conversation_id: z.string(),
  message_id: z.string().describe('Its events come in GET /activity; its answer is in the transcript.'),
  notes: z.array(z.string()).describe('What the sender should know, such as that a file was not passed on.'),
})
export type TakenMessage = z.output<typeof takenMessageSchema>

export const answeredCommandSchema = z.object({
  conversation_id: z.string(),
  command: z.string().describe('The name of the command.'),
  answer: z.string().describe('The answer, for people.'),
  is_change: z.boolean().describe('Whether it changed anything.'),
  message_id: z.string().nullable().describe('The message it sent to the agent, if it did: `/continue`.'),
})
export type AnsweredCommand = z.output<typeof answeredCommandSchema>

export const commandListSchema = z.object({
  commands: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      argument: z.object({ name: z.string(), description: z.string(), is_required: z.boolean() }).nullable(),
      is_question: z.boolean().describe('Whether it only asks for something, and changes nothing.'),
    }),
  ),
})
export type CommandList = z.output<typeof commandListSchema>
export type SlashCommand = CommandList['commands'][number]

export const stopBodySchema = z
  .strictObject({ message_id: z.uuid().optional().describe('Stop only this message, not a later one.') })
  .nullish()

export const continueBodySchema = z
  .strictObject({ message_id: z.uuid().optional().describe('Continue only if the agent paused at this message.') })
  .nullish()

export const retryBodySchema = z.strictObject({ message_id: z.uuid() })

export const resumeBodySchema = z.strictObject({
  session_id: sessionIdSchema.describe('A session from GET /conversations/:id/sessions.'),
})

export const doneSchema = z.object({
  is_change: z.boolean().describe('Whether there was anything to do.'),
  text: z.string().describe('What was done, for people.'),
})
export type Done = z.output<typeof doneSchema>

export const continuedSchema = doneSchema.extend({
  message_id: z.string().nullable().describe('The message in which the agent continues; for a command, its id.'),
})
export type Continued = z.output<typeof continuedSchema>

export const usedSessionSchema = z.object({
  id: z.string(),
  provider: z.string(),
  used_at: timeSchema.describe('When its last turn began.'),
  question: z.string().describe('The beginning of the last message to it.'),
  is_current: z.boolean().describe("Whether it is the conversation's current session."),
})
/** A session that a conversation could resume. */
export type UsedSession = z.output<typeof usedSessionSchema>

export const usedSessionListSchema = z.object({ sessions: z.array(usedSessionSchema) })
export type UsedSessionList = z.output<typeof usedSessionListSchema>

export const fileEditSchema = z.object({
  message_id: z.string(),
  run_id: z.string(),
  at: timeSchema,
  tool: z.string().describe("The agent's own name for the tool."),
  patch: z.string().nullable().describe('Lines with + and -, if the agent edits with patches.'),
  old: z.string().nullable().describe('The text that was replaced; empty if the whole file was written.'),
  new: z.string().nullable(),
  is_cut: z.boolean().describe('Whether its texts were truncated.'),
})
export type FileEdit = z.output<typeof fileEditSchema>

const changedFileSchema = z.object({
  path: z.string().describe("Relative to the agent's directory if the file is inside it."),
  added: z.number().describe('Lines added, in all edits.'),
  removed: z.number(),
  edits: z
    .array(fileEditSchema)
    .describe('Latest first. One without texts: the agent reported only that the file changed.'),
})
export type ChangedFile = z.output<typeof changedFileSchema>

export const changesSchema = z.object({
  files: z.array(changedFileSchema).describe('Latest change first.'),
  is_cut: z.boolean().describe('Whether the list was truncated.'),
})
export type Changes = z.output<typeof changesSchema>
