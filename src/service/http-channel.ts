import type { Channel } from '../channels/types.js'

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
