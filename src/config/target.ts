// The operator's notation for a recipient: a person or a conversation.

import { phoneNumber } from './values.js'
import { GatewayError } from '../errors.js'

export interface Target {
  channel: string
  /** In the channel's own form; on WhatsApp the phone number. */
  address: string
}

const FORMS = 'Write whatsapp:+4915112345678, discord:<channel id> or terminal:<conversation>.'

/** Contract: throws `request_invalid`, which says what to write instead. */
export function parseTarget(text: string): Target {
  const trimmed = text.trim()
  if (trimmed.startsWith('+')) return { channel: 'whatsapp', address: parseNumber(trimmed) }
  const [, channel = '', address = ''] = /^([a-z]+):(.*)$/is.exec(trimmed) ?? []
  switch (channel.toLowerCase()) {
    case 'whatsapp':
      return { channel: 'whatsapp', address: parseNumber(address) }
    case 'discord':
      if (/^\d{15,21}(?:\/\d{15,21})?$/.test(address)) return { channel: 'discord', address }
      throw invalid(
        `"${address}" is not a Discord channel id. In Discord, right-click the channel and choose "Copy Channel ID".`,
      )
    case 'terminal':
      if (/^\P{Cc}{1,500}$/u.test(address)) return { channel: 'terminal', address }
      throw invalid('Name the terminal conversation, such as terminal:default.')
    case '':
      throw invalid(`"${text}" is not a recipient. ${FORMS}`)
    default:
      throw invalid(`Unknown channel "${channel}". ${FORMS}`)
  }
}

export function describeTarget({ channel, address }: Target): string {
  return `${channel}:${address}`
}

function parseNumber(text: string): string {
  const parsed = phoneNumber().safeParse(text.replaceAll(/[\s()-]/g, ''))
  if (parsed.success) return parsed.data
  throw invalid(`"${text}" is not a phone number in international format, such as +4915112345678.`)
}

function invalid(message: string): GatewayError {
  return new GatewayError('request_invalid', message)
}
