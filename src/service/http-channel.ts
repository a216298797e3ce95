import type { Channel } from '../channels/types.js'
import { GatewayError } from '../errors.js'

/** Commands sent to projects. */
export const HTTP_CHANNEL = 'http'
/** Conversations from the dashboard. */
export const WEB_CHANNEL = 'web'

/** Messages over HTTP. Nothing is sent anywhere: clients find replies, their files and questions in the stored record. */
export function httpChannels(): Channel[] {
  const nothing = async (): Promise<void> => {}
  const traits = { takesFiles: true, offersAnswers: true }
  const channel = { ...traits, start: nothing, send: nothing, stop: nothing, close: nothing }
  return [HTTP_CHANNEL, WEB_CHANNEL].map((name) => ({ ...channel, name }))
}

/** Contract: throws `conflict` unless people write to the conversation here. */
export function requireWeb({ id, channel }: { id: string; channel: string }): void {
  if (channel === WEB_CHANNEL) return
  const message = `The conversation ${id} is one of ${channel}. Write to it there, or begin another.`
  throw new GatewayError('conflict', message)
}
