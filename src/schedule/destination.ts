// Resolves a target the operator names, a person or a place, for messages that answer nobody.

import type { Place } from '../channels/types.js'
import { type GatewayConfig, projectOfChannel } from '../config.js'
import type { Target } from '../config/target.js'
import { defined } from '../core/defined.js'
import { GatewayError } from '../errors.js'

export interface Destination {
  channel: string
  place: Place
  /** The recipient, if the place does not identify them. */
  author?: string
}

/** Where to reach a target. Contract: throws `config_invalid` if this gateway does not serve its channel. */
export function findDestination(
  { channel, address }: Target,
  config: Pick<GatewayConfig, 'inbound' | 'projects'>,
  served: readonly string[],
): Destination {
  if (!served.includes(channel)) {
    const advice = channel === 'terminal' ? '' : ` Set up ${channel === 'discord' ? 'Discord' : 'WhatsApp'} first.`
    const known = served.join(', ')
    throw new GatewayError('config_invalid', `This gateway has no channel ${channel}, only ${known}.${advice}`)
  }
  if (channel === 'whatsapp') {
    const isShared = config.inbound?.reply.session?.scope === 'global'
    return { channel, place: isShared ? { address: 'global' } : { address, isPrivate: true }, author: address }
  }
  if (channel !== 'discord') return { channel, place: { address } }
  // A thread's address starts with its channel, whose settings apply.
  const [channelId = '', threadId] = address.split('/')
  const parent = threadId === undefined ? undefined : channelId
  return { channel, place: defined({ address, parent, projectId: projectOfChannel(config, channelId) }) }
}
