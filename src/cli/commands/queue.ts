import type { Command } from 'commander'
import type { CommandContext } from '../command-context.js'
import type { Control } from '../control/protocol.js'
import type { QueuedMessage } from '../../store/inbox.js'
import type { Store } from '../../store/store.js'
import { defineList } from '../list-command.js'
import { age, type ListOptions, section, shortId, workingGateways } from '../listing.js'

export function registerQueue(program: Command, context: CommandContext): void {
  const queue = program
    .command('queue')
    .description('Messages that wait or failed, and replies that were not delivered.')
  defineList(queue.command('list', { isDefault: true }), 'List them.', context, queueList)
  queue
    .command('retry')
    .description('Take up a message again that failed, or send a reply again.')
    .argument('<id>', 'its id, or the beginning of it')
    .action((id: string) => context.operate((control) => queueRetry(control, id)))
  queue
    .command('drop')
    .description('Let go of a message that waits or failed, or of a reply that could not be delivered.')
    .argument('<id>', 'its id, or the beginning of it')
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
  const sections = [
    section(
      'Waiting',
      ['ID', 'CONVERSATION', 'FROM', 'AGE', 'PLACE', 'STATE', 'MESSAGE'],
      waiting.map((message) => [
        shortId(message.id),
        `${message.channel}/${message.address}`,
        message.author,
        age(message.receivedAt, now),
        String(message.position),
        describeState(message, isWorking(message.gatewayId), now),
        message.text,
      ]),
      width,
    ),
    section(
      'Failed; "aetheel queue retry <id>" takes one up again',
      ['ID', 'CONVERSATION', 'FROM', 'AGE', 'MESSAGE'],
      failed.map((message) => [
        shortId(message.id),
        `${message.channel}/${message.address}`,
        message.author,
        age(message.receivedAt, now),
        message.text,
      ]),
      width,
      failed.map(({ problem = '' }) => problem),
    ),
    section(
      'Replies that could not be delivered; "aetheel queue retry <id>" sends one again',
      ['ID', 'CONVERSATION', 'AGE', 'REPLY'],
      undelivered.map((delivery) => [
        shortId(delivery.id),
        `${delivery.channel}/${delivery.address}`,
        age(delivery.createdAt, now),
        delivery.reply.text,
      ]),
      width,
      undelivered.map(({ problem = '' }) => problem),
    ),
  ].filter((text) => text !== '')
  return sections.length === 0 ? 'Nothing waits, and nothing has failed.' : sections.join('\n\n')
}

export async function queueRetry(control: Control, id: string): Promise<string> {
  const { id: fullId, kind } = await control.call('queue.retry', { id })
  return kind === 'message' ? `The message ${fullId} waits again.` : `The reply ${fullId} is sent again.`
}

export async function queueDrop(control: Control, id: string): Promise<string> {
  const dropped = await control.call('queue.drop', { id })
  return `Dropped ${dropped.id}.`
}

function describeState({ state, dueAt, failures, position }: QueuedMessage, isWorking: boolean, now: number): string {
  if (state === 'queued') return `behind ${position} ${position === 1 ? 'other' : 'others'}`
  if (state === 'active') return isWorking ? 'worked on' : 'cut off; the next gateway takes it up'
  if (dueAt <= now) return 'next'
  const failed = failures === 0 ? '' : `, failed ${failures} ${failures === 1 ? 'time' : 'times'}`
  return `tried again in ${Math.ceil((dueAt - now) / 1000)} s${failed}`
}
