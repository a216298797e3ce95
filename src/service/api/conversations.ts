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
  address: z.string().describe('What the channel calls it.'),
  is_private: z.boolean().describe('Whether it is with one person alone.'),
  project_id: z.string().nullable(),
  title: z
    .string()
    .nullable()
    .describe('What a person has called it, otherwise the first words of its first message; null before that.'),
  title_is_chosen: z.boolean().describe('Whether a person has called it so.'),
  is_pinned: z.boolean(),
  is_archived: z.boolean(),
  has_failed: z.boolean().describe('Whether its latest message has failed.'),
  state: z.enum(CONVERSATION_STATES),
  open: z.number().describe('How many messages are worked on or wait.'),
  asked: z.number().describe('How many questions of its agent wait for an answer: GET /approvals.'),
  question: z.string().nullable().describe('The beginning of the latest message.'),
  message_id: z.string().nullable().describe('The message that is worked on, or comes next.'),
  waits_until: timeSchema.nullable().describe('When a waiting one is taken up, at the earliest.'),
  run: conversationRunSchema.nullable().describe('The turn that goes on.'),
  last_number: z.number().describe('That of the last thing said; it goes up with each.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})
export type Conversation = z.output<typeof conversationSchema>

export const queuedSchema = z.object({
  message_id: z.string(),
  state: z.enum(['queued', 'ready', 'active']).describe('As docs/queue-states.md draws them.'),
  author: z.string(),
  text: z.string().describe('Its beginning.'),
  received_at: timeSchema,
  due_at: timeSchema,
})

export const currentSessionSchema = z.object({ id: z.string(), provider: z.string(), used_at: timeSchema })

export const conversationUsageSchema = z.object({
  runs: z.number(),
  worked_ms: z.number(),
  ...tokenCounts,
  cost_usd: z.number().nullable().describe('As far as the agents told.'),
  priced_runs: z.number().describe('How many of the runs have told their cost.'),
})

export const choiceSchema = z.object({
  agent_provider: z.string().nullable(),
  model: z.string().nullable(),
  queue_mode: z.enum(QUEUE_MODES).nullable(),
})

export const conversationDetailsSchema = conversationSchema.extend({
  agent_provider: z.string().describe('Who answers the next message.'),
  model: z.string().nullable().describe("Null is the agent's own."),
  chosen: choiceSchema.describe(
    'What was chosen in the conversation; null is that of its project, or the configured one.',
  ),
  queue_mode: z.enum(QUEUE_MODES).describe('What becomes of a message that comes while the agent works.'),
  directory: z.string().describe('Where the agent works.'),
  session: currentSessionSchema.nullable(),
  queue: z.array(queuedSchema).describe('What is worked on and waits, in order: the first 50.'),
  usage: conversationUsageSchema,
})
export type ConversationDetails = z.output<typeof conversationDetailsSchema>

export const conversationQuery = pageQuery.extend({
  before: timedIdSchema.optional(),
  state: z.enum(CONVERSATION_STATES).optional(),
  channel: nameSchema.optional(),
  project: nameSchema.optional().describe('The id of a project.'),
  pinned: z.stringbool().optional().describe('Only those that are pinned, or only the others.'),
  archived: z.stringbool().default(false).describe('Only those that are archived; without it, only the others.'),
  q: z
    .string()
    .max(500)
    .refine((q) => typedWords(wordsOf(q)).length > 0, 'there is no word to look for')
    .optional()
    .describe('Words, each of which must be in the same message or reply. Those with the latest hit come first.'),
})
export type ConversationFilter = z.input<typeof conversationQuery>

/** The words of a search. */
export function wordsOf(q: string): string[] {
  return q.split(/\s+/)
}

export const matchSchema = z.object({
  type: z.enum(['message', 'reply']),
  id: z.string(),
  author: z.string().nullable().describe('Null when the gateway itself spoke.'),
  text: z.string().describe('The line with the hit.'),
  at: timeSchema,
})

const foundSchema = conversationSchema.extend({
  match: matchSchema.nullable().describe('The latest hit of a search.'),
})
export type FoundConversation = z.output<typeof foundSchema>

export const conversationPageSchema = z.object({ conversations: z.array(foundSchema), next: nextSchema })
export type ConversationPage = z.output<typeof conversationPageSchema>

export const saidSchema = z.object({
  id: z.string(),
  text: z.string(),
  notes: z.array(z.string()).describe('What the gateway adds, a sentence each.'),
  is_error: z.boolean(),
  is_question: z.boolean().describe('Whether it asks for the approval that has its id.'),
  can_continue: z
    .boolean()
    .describe('Whether the agent has paused at its limit of turns: POST /conversations/:id/continue.'),
  files: filesSchema,
  state: z.enum(['pending', 'delivered', 'undelivered', 'dropped']),
  run_id: z.string().nullable(),
  created_at: timeSchema,
})
export type Said = z.output<typeof saidSchema>

export const uploadedFileSchema = z.object({
  id: z.string().describe('For `files` of a message.'),
  name: z.string(),
  size: z.number().describe('In bytes.'),
  media_type: z.string(),
  url: z.string().describe('Where it can be seen again.'),
})
export type UploadedFile = z.output<typeof uploadedFileSchema>

export const uploadQuery = z.object({
  name: z.string().min(1).max(255).default('file').describe('What the sender calls the file.'),
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
    .describe('`message`, or what began the turn beside a person: `cron`, `heartbeat`, `hook`, `webhook`.'),
  author: z.string(),
  text: z.string(),
  files: z.array(uploadedFileSchema).describe('What was uploaded for it.'),
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
})

const transcriptEntrySchema = z.discriminatedUnion('type', [
  transcriptMessageSchema,
  saidSchema.extend({ type: z.literal('reply'), number: z.number() }).describe('Something that answers no message.'),
])
export type TranscriptEntry = z.output<typeof transcriptEntrySchema>

export const transcriptQuery = pageQuery.extend({
  before: z.coerce
    .number<number>()
    .int()
    .min(1)
    .optional()
    .describe('The number of an entry: only older ones are listed.'),
})
export type TranscriptQuery = z.input<typeof transcriptQuery>

export const transcriptPageSchema = z.object({
  entries: z.array(transcriptEntrySchema),
  next: z.number().nullable().describe('For `before`, to see older ones; null when there are none.'),
})
export type TranscriptPage = z.output<typeof transcriptPageSchema>

export const newConversationSchema = z.strictObject({
  project_id: nameSchema.optional().describe('Left out, the agent works in WORKING_DIR.'),
  agent_provider: givenProviderSchema.optional().describe('Left out, that of the project, or the configured one.'),
  model: modelSchema.optional(),
})
export type NewConversation = z.input<typeof newConversationSchema>

const titleSchema = z
  .string()
  .transform(printable)
  .pipe(z.string().min(1, 'a title has at least one character; null takes it back').max(MAX_TITLE_CHARACTERS))

export const conversationChangesSchema = z
  .strictObject({
    project_id: nameSchema.nullable().optional(),
    agent_provider: givenProviderSchema.nullable().optional(),
    model: modelSchema.nullable().optional(),
    queue_mode: z.enum(QUEUE_MODES).nullable().optional(),
    title: titleSchema.nullable().optional().describe('Null for the first words of its first message.'),
    is_pinned: z.boolean().optional(),
    is_archived: z.boolean().optional().describe('Writing to an archived one takes it out again.'),
  })
  .describe('What is left out stays; null takes a choice back. Another project or agent begins a fresh session.')
export type ConversationChanges = z.input<typeof conversationChangesSchema>

const TEXT_REQUIRED = 'text is required'

export const newMessageSchema = z
  .strictObject({
    text: z
      .string(TEXT_REQUIRED)
      .max(MAX_MESSAGE_CHARACTERS)
      .describe(
        'For the agent; or a slash command, as GET /conversations/:id/commands lists them. May be empty with files.',
      ),
    files: z.array(z.uuid()).max(MAX_FILES).default([]).describe('The ids of uploaded files, each sent once.'),
  })
  .refine(({ text, files }) => files.length > 0 || withoutAskPrefix(text).trim() !== '', {
    path: ['text'],
    message: TEXT_REQUIRED,
  })

export const takenMessageSchema = z.object({
  conversation_id: z.string(),
  message_id: z.string().describe('Its events are in GET /activity, its answer in the transcript.'),
  notes: z.array(z.string()).describe('What its sender should know, such as that a file was not passed on.'),
})
export type TakenMessage = z.output<typeof takenMessageSchema>

export const answeredCommandSchema = z.object({
  conversation_id: z.string(),
  command: z.string().describe('Its name.'),
  answer: z.string().describe('What a person is told.'),
  is_change: z.boolean().describe('Whether it has changed something.'),
  message_id: z.string().nullable().describe('The message that it has given to the agent, if it did: `/continue`.'),
})
export type AnsweredCommand = z.output<typeof answeredCommandSchema>

export const commandListSchema = z.object({
  commands: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      argument: z.object({ name: z.string(), description: z.string(), is_required: z.boolean() }).nullable(),
      is_question: z.boolean().describe('Whether it changes nothing.'),
    }),
  ),
})
export type CommandList = z.output<typeof commandListSchema>
export type SlashCommand = CommandList['commands'][number]

export const stopBodySchema = z
  .strictObject({ message_id: z.uuid().optional().describe('Only this message, not what has come after it.') })
  .nullish()

export const continueBodySchema = z
  .strictObject({ message_id: z.uuid().optional().describe('Only if this is the message that has paused.') })
  .nullish()

export const retryBodySchema = z.strictObject({ message_id: z.uuid() })

export const resumeBodySchema = z.strictObject({
  session_id: sessionIdSchema.describe('One of GET /conversations/:id/sessions.'),
})

export const doneSchema = z.object({
  is_change: z.boolean().describe('Whether there was something to do.'),
  text: z.string().describe('What was done, for people.'),
})
export type Done = z.output<typeof doneSchema>

export const continuedSchema = doneSchema.extend({
  message_id: z.string().nullable().describe('The message in which the agent goes on; of a command, its id.'),
})
export type Continued = z.output<typeof continuedSchema>

export const usedSessionSchema = z.object({
  id: z.string(),
  provider: z.string(),
  used_at: timeSchema.describe('When its last turn began.'),
  question: z.string().describe('The beginning of the last message to it.'),
  is_current: z.boolean().describe('Whether the conversation goes on in it as it is.'),
})
/** A session that a conversation could resume. */
export type UsedSession = z.output<typeof usedSessionSchema>

export const usedSessionListSchema = z.object({ sessions: z.array(usedSessionSchema) })
export type UsedSessionList = z.output<typeof usedSessionListSchema>

export const fileEditSchema = z.object({
  message_id: z.string(),
  run_id: z.string(),
  at: timeSchema,
  tool: z.string().describe("The agent's own name of its tool."),
  patch: z.string().nullable().describe('Lines with + and -, of an agent that edits by patches.'),
  old: z.string().nullable().describe('What was replaced; empty where a whole file was written.'),
  new: z.string().nullable(),
  is_cut: z.boolean().describe('Whether its texts are longer than shown.'),
})
export type FileEdit = z.output<typeof fileEditSchema>

const changedFileSchema = z.object({
  path: z.string().describe('From the directory of the agent, where the file is inside of it.'),
  added: z.number().describe('Lines, in all edits together.'),
  removed: z.number(),
  edits: z
    .array(fileEditSchema)
    .describe('Latest first. One without texts: the agent has told only that it was changed.'),
})
export type ChangedFile = z.output<typeof changedFileSchema>

export const changesSchema = z.object({
  files: z.array(changedFileSchema).describe('Last changed first.'),
  is_cut: z.boolean().describe('Whether there are more.'),
})
export type Changes = z.output<typeof changesSchema>
