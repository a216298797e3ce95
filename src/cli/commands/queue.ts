import type { Command } from 'commander'
import type { CommandContext } from '../command-context.js'
import type { Control } from '../control/protocol.js'
import type { QueuedMessage } from '../../store/inbox.js'
import type { Store } from '../../store/store.js'
import { timeAhead } from '../../runtime/time-words.js'
import { withLocalTimes } from '../../core/local-time.js'
import { defineList } from '../list-command.js'
import { age, type Columns, conversationName, type ListOptions, section, shortId, workingGateways } from '../listing.js'

export function registerQueue(program: Command, context: CommandContext): void {
  const queue = program.command('queue').description('Show waiting and failed messages and undelivered replies.')
  defineList(queue.command('list', { isDefault: true }), 'List messages and replies.', context, queueList)
  queue
    .command('retry')
    .description('Retry a failed message, or send an undelivered reply again.')
    .argument('<id>', 'its id, or the first characters of it')
    .action((id: string) => context.operate((control) => queueRetry(control, id)))
  queue
    .command('drop')
    .description('Drop a waiting or failed message, or an undelivered reply.')
    .argument('<id>', 'its id, or the first characters of it')
    .action((id: string) => context.operate((control) => queueDrop(control, id)))
}

/** The output of `aetheel queue list`. */
export async function queueList(
  store: Pick<Store, 'inbox' | 'outbox' | 'conversations' | 'ledger'>,
  { limit, isJson, width, now }: ListOptions,
): Promise<string> {
  const waiting = await store.inbox.listOpen(limit)
  const failed = await Promise.all(
    (await store.inbox.listFailed(limit)).map(async (message) => {
      const conversation = await store.conversations.get(message.conversationId)
      return { ...message, address: conversation?.address ?? '' }
    }),
  )
  const undelivered = await store.outbox.list('undelivered', limit)
  if (isJson) return JSON.stringify({ waiting, failed, undelivered }, null, 2)

  const isWorking = await workingGateways(store)
  const message: Columns<Pick<QueuedMessage, 'id' | 'channel' | 'address' | 'author' | 'receivedAt'>> = {
    ID: ({ id }) => shortId(id),
    CONVERSATION: conversationName,
    FROM: ({ author }) => author,
    AGE: ({ receivedAt }) => age(receivedAt, now),
  }
  const retry = '"aetheel queue retry <id>"'
  const detailsOf = ({ problem = '' }: { problem?: string }): string => problem
  const sections = [
    section<QueuedMessage>(
      { heading: 'Waiting', items: waiting, width },
      {
        ...message,
        PLACE: ({ position }) => String(position),
        STATE: (waiting) => describeState(waiting, isWorking(waiting.gatewayId), now),
        MESSAGE: ({ text }) => text,
      },
    ),
    section(
      { heading: `Failed; ${retry} retries one`, items: failed, width, detailsOf },
      { ...message, MESSAGE: ({ text }) => text },
    ),
    section(
      {
        heading: `Undelivered replies; ${retry} sends one again`,
        items: undelivered,
        width,
        detailsOf,
      },
      {
        ID: ({ id }) => shortId(id),
        CONVERSATION: conversationName,
        AGE: ({ createdAt }) => age(createdAt, now),
        REPLY: ({ reply }) => reply.text,
      },
    ),
  ].filter((text) => text !== '')
  return sections.length === 0 ? 'Nothing is waiting, and nothing has failed.' : sections.join('\n\n')
}

export async function queueRetry(control: Control, id: string): Promise<string> {
  const { id: fullId, kind } = await control.call('queue.retry', { id })
  return kind === 'message' ? `The message ${fullId} is queued again.` : `The reply ${fullId} is queued again.`
}

export async function queueDrop(control: Control, id: string): Promise<string> {
  const dropped = await control.call('queue.drop', { id })
  return `Dropped ${dropped.id}.`
}

function describeState({ state, dueAt, failures, position }: QueuedMessage, isWorking: boolean, now: number): string {
  if (state === 'queued') return `behind ${position} ${position === 1 ? 'other' : 'others'}`
  if (state === 'active') return isWorking ? 'running' : 'interrupted; the next gateway resumes it'
  if (dueAt <= now) return 'next'
  const failed = failures === 0 ? '' : `, failed ${failures} ${failures === 1 ? 'time' : 'times'}`
  return `retry ${withLocalTimes(timeAhead(dueAt, now), now)}${failed}`
}
