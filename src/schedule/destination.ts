// Who is spoken to without having written: a person or a place, as the operator names it.

import type { Place } from '../channels/types.js'
import { type GatewayConfig, projectOfChannel } from '../config.js'
import type { Target } from '../config/target.js'
import { GatewayError } from '../errors.js'

export interface Destination {
  channel: string
  place: Place
  /** Who is meant, where the place does not say it. */
  author?: string
}

/** Where a target is spoken to. Contract: throws `config_invalid` when this gateway does not serve its channel. */
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
  // That of a thread names its channel first, whose settings hold in it.
  const [channelId = '', threadId] = address.split('/')
  const projectId = projectOfChannel(config, channelId)
  return {
    channel,
    place: {
      address,
      ...(threadId !== undefined && { parent: channelId }),
      ...(projectId !== undefined && { projectId }),
    },
  }
}
