// The one way to stop a message, whoever asks for it.

import type { Store } from '../store/store.js'
import type { Queue } from './queue.js'
import type { StoppedTurn, Worker } from './work.js'

export interface StopDependencies {
  store: Pick<Store, 'inbox' | 'jobs'>
  queue: Pick<Queue, 'drop'>
  worker: Pick<Worker, 'cancel' | 'endMessage'>
}

export type StopOutcome =
  /** Its turn ran here, and nothing of it is alive. */
  | { kind: 'stopped'; turn: StoppedTurn }
  /** It waited, and does not any more. */
  | { kind: 'dropped' }
  /** Another gateway works on it, and ends it soon. */
  | { kind: 'asked' }
  /** It was over before. */
  | { kind: 'finished' }

/** Ends the work on a message, or takes it out of the queue. */
export async function stopMessage(messageId: string, dependencies: StopDependencies): Promise<StopOutcome> {
  const message = await dependencies.store.inbox.get(messageId)
  if (message?.state !== 'open') return { kind: 'finished' }
  const turn = await dependencies.worker.cancel(message.conversationId, messageId)
  return turn ? { kind: 'stopped', turn } : takeOut(messageId, dependencies)
}

/** Ends whatever runs in a conversation, or takes out the message that comes first. */
export async function stopConversation(conversationId: string, dependencies: StopDependencies): Promise<StopOutcome> {
  const first = await dependencies.store.jobs.first(conversationId)
  const turn = await dependencies.worker.cancel(conversationId)
  if (turn) return { kind: 'stopped', turn }
  return first ? takeOut(first.messageId, dependencies) : { kind: 'finished' }
}

/** A message whose turn does not run here. */
async function takeOut(messageId: string, { store, queue, worker }: StopDependencies): Promise<StopOutcome> {
  // Its turn may have ended by itself; a dead letter is kept.
  if ((await store.inbox.get(messageId))?.state !== 'open') return { kind: 'finished' }
  const kind = await queue.drop(messageId)
  if (kind !== 'active') return { kind }
  await store.jobs.requestCancel(messageId)
  // It may have been claimed here in this very moment.
  worker.endMessage(messageId)
  return { kind: 'asked' }
}
