import type { EVENT_KINDS } from '../../channels/types.js'
import { GatewayError } from '../../errors.js'
import { withGateway } from '../with-gateway.js'

/** Gives the gateway something to do that nobody asks for in a chat; the answer goes to the output channel. */
export async function sendEvent(home: string, kind: (typeof EVENT_KINDS)[number], text: string): Promise<string> {
  if (text.trim() === '') throw new GatewayError('request_invalid', 'Say what the agent should do: aetheel event "…"')
  const acceptance = await withGateway(home, (control) => control.call('event.send', { kind, text }))
  if (acceptance.status === 'refused') throw new GatewayError('request_invalid', acceptance.reason)
  return `Taken as ${acceptance.messageId}. The answer goes to the output channel.`
}
