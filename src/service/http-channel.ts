import type { Channel } from '../channels/types.js'
import { GatewayError } from '../errors.js'

/** Commands sent to projects. */
export const HTTP_CHANNEL = 'http'
/** Conversations from the dashboard. */
export const WEB_CHANNEL = 'web'

/** Messages over HTTP. Nothing is sent: clients read replies, with their files and questions, from the store. */
export function httpChannels(): Channel[] {
  const nothing = async (): Promise<void> => {}
  const traits = { takesFiles: true, offersAnswers: true }
  const channel = { ...traits, start: nothing, send: nothing, stop: nothing, close: nothing }
  return [HTTP_CHANNEL, WEB_CHANNEL].map((name) => ({ ...channel, name }))
}

/** Contract: throws `conflict` unless the conversation is one of the dashboard's. */
export function requireWeb({ id, channel }: { id: string; channel: string }): void {
  if (channel === WEB_CHANNEL) return
  const advice = 'Write to it there, or start a new one.'
  throw new GatewayError('conflict', `Conversation ${id} belongs to the channel ${channel}. ${advice}`)
}
