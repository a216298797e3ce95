// Minimal Discord payloads for unit tests.

import { type APIMessage, type APIUser, DiscordAPIError, MessageType } from 'discord.js'

export const BOT_ID = '900'

export function user(id: string, username = `user${id}`): APIUser {
  return { id, username, discriminator: '0', global_name: null, avatar: null }
}

/** From a person, in channel 10, unless told otherwise. */
export function message(more: Partial<APIMessage> = {}): APIMessage {
  return {
    id: '1000',
    channel_id: '10',
    type: MessageType.Default,
    author: user('1', 'ann'),
    content: 'Hello',
    timestamp: '2026-11-16T12:00:00.000Z',
    edited_timestamp: null,
    tts: false,
    mention_everyone: false,
    mentions: [],
    mention_roles: [],
    attachments: [],
    embeds: [],
    pinned: false,
    ...more,
  }
}

/** A refusal by Discord, as the client throws it. */
export function refusal(code: number, status = 400): DiscordAPIError {
  return new DiscordAPIError({ code, message: `Refused with ${code}` }, code, status, 'POST', 'http://discord', {
    body: undefined,
    files: undefined,
  })
}

/** Half a surrogate pair: no text that can be sent contains one. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}
