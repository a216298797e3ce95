// Everyone who is notified while a turn runs and when it ends.

import type { ApprovalService } from '../approvals/approval-service.js'
import type { Archive } from '../archive/archive.js'
import type { Acceptance, Channel, NextAttempt } from '../channels/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { HookManager } from '../runtime/hook-manager.js'
import type { Message } from '../store/inbox.js'
import type { Delivery } from '../store/outbox.js'
import type { RecordedEvent } from '../store/events.js'
import type { Store } from '../store/store.js'
import type { ActivityHub } from '../streams/activity-hub.js'
import type { StreamHub } from '../streams/stream-hub.js'
import type { Work } from './types.js'

interface AudienceDependencies {
  channels: Channel[]
  store: Pick<Store, 'conversations'>
  streams: Pick<StreamHub, 'push' | 'settled'>
  activity: Pick<ActivityHub, 'changed' | 'wrote'>
  archive: Pick<Archive, 'update'>
  hooks: Pick<HookManager, 'fire'>
  approvals: Pick<ApprovalService, 'closeQuestions'>
  log: Log
}

/** Each method can be passed on its own. */
export class Audience {
  constructor(private readonly dependencies: AudienceDependencies) {}

  readonly accepted = (acceptance: Acceptance): void => {
    const { activity, archive } = this.dependencies
    activity.changed()
    if (acceptance.status === 'refused') archive.update({ id: acceptance.conversationId })
  }

  /** Events to show at once, before they are stored. */
  readonly shown = ({ conversation, message }: Work, runId: string, events: RecordedEvent[]): void => {
    // Whether a heartbeat has anything to say is known only when it ends.
    if (message.kind === 'heartbeat') return
    const { id: messageId, platformId } = message
    const channel = this.#channel(conversation.channel)
    for (const { seq, event } of events) {
      channel?.show?.({ address: conversation.address, messageId, platformId, runId, seq, event })
    }
  }

  readonly recorded = ({ message }: Work, runId: string, events: RecordedEvent[]): void => {
    const { streams, activity } = this.dependencies
    streams.push(message.id, runId, events)
    activity.wrote(runId)
  }

  readonly settled = ({ conversation, message, merged }: Work): void => {
    const { streams, activity, approvals, archive } = this.dependencies
    for (const { id } of [message, ...merged]) streams.settled(id)
    activity.changed()
    approvals.closeQuestions()
    archive.update(conversation)
  }

  /** Stopped by a person: there will be no answer. */
  readonly cancelled = ({ conversation: { channel, address }, message, merged }: Work): void => {
    const platformIds = [message, ...merged].map(({ platformId }) => platformId)
    this.#channel(channel)?.forget?.({ address, messageId: message.id, platformIds })
  }

  readonly retried = (
    { conversation: { channel, address }, message }: Work,
    next: Omit<NextAttempt, 'address' | 'messageId'>,
  ): void => {
    this.#channel(channel)?.retry?.({ ...next, address, messageId: message.id })
  }

  /** A waiting message was removed from the queue. */
  readonly dropped = (message: Message): void => {
    const { streams, activity, store, log } = this.dependencies
    streams.settled(message.id)
    activity.changed()
    const channel = this.#channel(message.channel)
    if (!channel?.forget) return
    const { id: messageId, platformId } = message
    void store.conversations
      .get(message.conversationId)
      .then(
        (conversation) =>
          conversation && channel.forget?.({ address: conversation.address, messageId, platformIds: [platformId] }),
      )
      .catch((error: unknown) => log.warn('drop.not-shown', { messageId: message.id, error: messageOf(error) }))
  }

  readonly sent = ({ id: replyId, conversationId, channel, messageId, reply }: Delivery): void => {
    const { hooks, approvals } = this.dependencies
    hooks.fire('reply-sent', { replyId, conversationId, channel, messageId })
    // The question may have been answered while it was being sent.
    if (reply.question) approvals.closeQuestions()
  }

  readonly undelivered = ({ id: replyId, conversationId, channel, problem }: Delivery): void => {
    const { hooks, archive, log } = this.dependencies
    log.error('reply.undelivered', { replyId, conversationId, channel, problem })
    hooks.fire('error', { replyId, conversationId, channel, reason: 'undelivered', message: problem })
    archive.update({ id: conversationId })
  }

  #channel(name: string): Channel | undefined {
    return this.dependencies.channels.find((channel) => channel.name === name)
  }
}
