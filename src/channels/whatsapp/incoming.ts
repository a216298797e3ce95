// Messages as Twilio delivers them: as a webhook's form, or from its record.

import { fromTwilio } from './phone-number.js'
import type { TwilioMedia, TwilioMessage } from './twilio-api.js'

export interface Incoming {
  sid: string
  /** The sender's number, such as +4915112345678. */
  from: string
  text: string
  hasMedia: boolean
  /** Contract: rejects if they cannot be listed right now. */
  media(signal: AbortSignal): Promise<TwilioMedia[]>
}

const MAX_MEDIA = 10

/** Undefined if it is not a message to this number. */
export function readWebhook(form: URLSearchParams, ownNumber: string): Incoming | undefined {
  const sid = form.get('MessageSid') ?? form.get('SmsMessageSid') ?? ''
  const from = fromTwilio(form.get('From'))
  if (!isMessageSid(sid) || from === undefined || fromTwilio(form.get('To')) !== ownNumber) return undefined
  const count = Math.min(Number(form.get('NumMedia') ?? 0) || 0, MAX_MEDIA)
  const media = Array.from({ length: count }, (_, index) => ({
    url: form.get(`MediaUrl${index}`) ?? '',
    type: form.get(`MediaContentType${index}`) ?? '',
  })).filter(({ url }) => url !== '')
  const text = [form.get('Body') ?? '', locationOf(form)].filter((part) => part !== '').join('\n')
  return { sid, from, text, hasMedia: media.length > 0, media: async () => media }
}

export function readRecord(
  message: TwilioMessage,
  mediaOf: (sid: string, signal: AbortSignal) => Promise<TwilioMedia[]>,
): Incoming | undefined {
  const { sid, from, body, mediaCount } = message
  if (from === undefined) return undefined
  const hasMedia = mediaCount > 0
  return { sid, from, text: body, hasMedia, media: async (signal) => (hasMedia ? mediaOf(sid, signal) : []) }
}

export function isMessageSid(sid: string): boolean {
  return /^(SM|MM)[0-9a-f]{32}$/i.test(sid)
}

/** A shared location has no text. */
function locationOf(form: URLSearchParams): string {
  const [latitude, longitude] = [form.get('Latitude'), form.get('Longitude')]
  if (latitude === null || longitude === null) return ''
  const names = [form.get('Label'), form.get('Address')].filter((name) => name !== null && name !== '')
  return `Location: ${[`${latitude}, ${longitude}`, ...names].join(', ')}`
}
