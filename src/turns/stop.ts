// The only code that stops a message, whoever asks for it.

import type { Store } from '../store/store.js'
import type { Queue } from './queue.js'
import type { StoppedTurn, Worker } from './work.js'

export interface StopDependencies {
  store: Pick<Store, 'inbox' | 'jobs'>
  queue: Pick<Queue, 'drop'>
  worker: Pick<Worker, 'cancel' | 'endMessage'>
}

export type StopOutcome =
  /** Its turn ran here; nothing of it is alive. */
  | { kind: 'stopped'; turn: StoppedTurn }
  /** It was waiting and was removed. */
  | { kind: 'dropped' }
  /** Another gateway is working on it and will end it soon. */
  | { kind: 'asked' }
  /** It had already ended. */
  | { kind: 'finished' }

/** Ends a message's turn, or removes it from the queue. */
export async function stopMessage(messageId: string, dependencies: StopDependencies): Promise<StopOutcome> {
  const message = await dependencies.store.inbox.get(messageId)
  if (message?.state !== 'open') return { kind: 'finished' }
  const turn = await dependencies.worker.cancel(message.conversationId, messageId)
  return turn ? { kind: 'stopped', turn } : removeWaiting(messageId, dependencies)
}

/** Ends the turn running in a conversation, or removes its first message. */
export async function stopConversation(conversationId: string, dependencies: StopDependencies): Promise<StopOutcome> {
  const first = await dependencies.store.jobs.first(conversationId)
  const turn = await dependencies.worker.cancel(conversationId)
  if (turn) return { kind: 'stopped', turn }
  return first ? removeWaiting(first.messageId, dependencies) : { kind: 'finished' }
}

/** For a message whose turn does not run here. */
async function removeWaiting(messageId: string, { store, queue, worker }: StopDependencies): Promise<StopOutcome> {
  // Its turn may have ended on its own; a dead letter is kept.
  if ((await store.inbox.get(messageId))?.state !== 'open') return { kind: 'finished' }
  const kind = await queue.drop(messageId)
  if (kind !== 'active') return { kind }
  await store.jobs.requestCancel(messageId)
  // It may just have been claimed here.
  worker.endMessage(messageId)
  return { kind: 'asked' }
}
