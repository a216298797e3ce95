// How pages describe a conversation. Pure.

import type { Conversation } from '../../src/client/aetheel-client.js'

/** The title a person chose, or the first words. */
export function titleOf({ title }: Pick<Conversation, 'title'>): string {
  return title ?? 'New conversation'
}

export type State = 'asked' | 'running' | 'waiting' | 'failed' | 'idle'

export const STATE_WORDS: Record<Exclude<State, 'idle'>, string> = {
  asked: 'Waiting for you',
  running: 'Working',
  waiting: 'Waiting',
  failed: 'Failed',
}

export function stateOf({ state, asked, has_failed: hasFailed }: StateFields): State {
  if (asked > 0) return 'asked'
  return state === 'idle' && hasFailed ? 'failed' : state
}

type StateFields = Pick<Conversation, 'state' | 'asked' | 'has_failed'>

const CHANNELS: Partial<Record<string, string>> = {
  discord: 'Discord',
  http: 'API',
  terminal: 'Terminal',
  web: 'Web',
  whatsapp: 'WhatsApp',
}

/** The channel's display name. */
export function channelName(channel: string): string {
  return CHANNELS[channel] ?? channel
}

/** Project and channel. */
export function placeOf({ project_id: project, channel, is_private: isPrivate }: Conversation): string {
  const name = isPrivate ? `${channelName(channel)}, private` : channelName(channel)
  return project === null ? name : `${project} · ${name}`
}
