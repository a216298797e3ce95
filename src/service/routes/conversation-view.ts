import { providerOf, runnerName } from '../../backends/agents.js'
import { choiceOf } from '../../conversation/conversation-choice.js'
import { titleFrom } from '../../conversation/conversation-title.js'
import type { Scrubber } from '../../credentials/scrubber.js'
import { splitAttached } from '../../media/inbox-files.js'
import { describeWorkplace } from '../../runtime/agent-choice.js'
import type { ConversationView, TranscriptPlace } from '../../store/conversation-views.js'
import type { Message } from '../../store/inbox.js'
import type { Delivery } from '../../store/outbox.js'
import type { RunRecord } from '../../store/runs.js'
import type { Store } from '../../store/store.js'
import type { Upload } from '../../store/uploads.js'
import * as api from '../api/conversations.js'
import type { ServiceDependencies } from '../dependencies.js'
import { isoTime, toWire } from '../wire.js'
import { beginningOf } from './beginning-of.js'
import { runView, stateOf } from './command-view.js'
import { uploadView } from './conversation-files.js'

const LISTED_MESSAGES = 50

export function conversationView(conversation: ConversationView, scrubber: Scrubber): api.Conversation {
  return toWire(api.conversationSchema, sourceOf(conversation, scrubber))
}

function sourceOf({ head, run, question, title, beginning, lastSeq, ...view }: ConversationView, scrubber: Scrubber) {
  return {
    ...view,
    title: title ?? titleFrom(scrubber.scrub(wordsOf(beginningOf(beginning ?? '', scrubber)))),
    titleIsChosen: title !== undefined,
    question: question === undefined ? undefined : beginningOf(question, scrubber),
    messageId: head?.messageId,
    waitsUntil: head?.state === 'ready' ? isoTime(head.dueAt) : undefined,
    run: run && toWire(api.conversationRunSchema, { ...run, provider: runnerName(run.backend) }),
    lastNumber: lastSeq,
  }
}

/** A message without text gets its title from its files. */
function wordsOf(message: string): string {
  const { text, names } = splitAttached(message)
  return text === '' ? names.join(', ') : text
}

export async function conversationDetails(
  conversation: ConversationView,
  { config, gateway }: Pick<ServiceDependencies, 'config' | 'gateway'>,
): Promise<api.ConversationDetails> {
  const { store, agents, scrubber } = gateway
  const { id } = conversation
  const { backend, model, workplace } = await choiceOf({ config, agents, store }, conversation)
  const session = await store.sessions.get(id)
  const { tokens, ...usage } = await store.figures.usage({ conversationId: id }, 0)
  return toWire(api.conversationDetailsSchema, {
    ...sourceOf(conversation, scrubber),
    agentProvider: providerOf(backend),
    model,
    chosen: toWire(api.choiceSchema, {
      ...conversation,
      agentProvider: conversation.backend === undefined ? undefined : runnerName(conversation.backend),
    }),
    queueMode: conversation.queueMode ?? config.queueMode,
    directory: describeWorkplace(workplace),
    session:
      session &&
      toWire(api.currentSessionSchema, { ...session, id: session.sessionId, provider: runnerName(session.backend) }),
    queue: (await store.inbox.waiting(id, LISTED_MESSAGES)).map((message) =>
      toWire(api.queuedSchema, { ...message, messageId: message.id, text: beginningOf(message.text, scrubber) }),
    ),
    usage: toWire(api.conversationUsageSchema, {
      ...(tokens ?? NO_TOKENS),
      ...usage,
      runs: usage.turns,
      pricedRuns: usage.pricedTurns,
    }),
  })
}

const NO_TOKENS = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** The full entries for these transcript places, in order. */
export async function transcriptView(places: TranscriptPlace[], store: Store): Promise<api.TranscriptEntry[]> {
  const idsOf = (type: TranscriptPlace['type']): string[] =>
    places.filter((place) => place.type === type).map(({ id }) => id)
  const messages = new Map((await store.inbox.getAll(idsOf('message'))).map((message) => [message.id, message]))
  const replies = await store.outbox.getAll(idsOf('reply'), idsOf('message'))
  const runs = await store.runs.ofMessages(idsOf('message'))
  const uploads = await store.uploads.ofMessages(idsOf('message'))
  return places.flatMap(({ id, seq }): api.TranscriptEntry[] => {
    const message = messages.get(id)
    if (message) {
      const answers = replies.filter(({ messageId }) => messageId === id)
      const attempts = runs.filter(({ messageId }) => messageId === id)
      const files = uploads.filter(({ messageId }) => messageId === id)
      return [messageView(message, files, answers, attempts)]
    }
    const reply = replies.find((candidate) => candidate.id === id)
    return reply ? [{ type: 'reply', number: seq, ...saidView(reply) }] : []
  })
}

function messageView(message: Message, uploads: Upload[], replies: Delivery[], runs: RunRecord[]): api.TranscriptEntry {
  return toWire(api.transcriptMessageSchema, {
    ...message,
    // The text for the agent lists them as well.
    text: uploads.length > 0 ? splitAttached(message.text).text : message.text,
    files: uploads.map(uploadView),
    type: 'message',
    number: message.seq,
    state: stateOf(message, runs.at(-1)),
    replies: replies.map(saidView),
    runs: runs.map((run) => runView(run, message)),
  })
}

function saidView({ reply, ...delivery }: Delivery): api.Said {
  return toWire(api.saidSchema, {
    ...reply,
    ...delivery,
    isQuestion: reply.question !== undefined,
    canContinue: reply.canContinue ?? false,
    files: (reply.files ?? []).map((file) => ('url' in file ? { url: file.url } : { path: file.path })),
  })
}
