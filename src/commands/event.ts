import type { EVENT_KINDS } from '../channels/types.js'
import { ControlClient } from '../control/client.js'
import { socketPath } from '../control/protocol.js'
import { GatewayError } from '../errors.js'

/** Gives the gateway something to do that nobody asks for in a chat; the answer goes to the output channel. */
export async function sendEvent(home: string, kind: (typeof EVENT_KINDS)[number], text: string): Promise<string> {
  if (text.trim() === '') throw new GatewayError('request_invalid', 'Say what the agent should do: aetheel event "…"')
  const control = await ControlClient.connect(socketPath(home))
  if (!control) {
    throw new GatewayError('gateway_unavailable', 'No gateway is running here. Start one with "aetheel start".')
  }
  try {
    const acceptance = await control.call('event.send', { kind, text })
    if (acceptance.status === 'refused') throw new GatewayError('request_invalid', acceptance.reason)
    return `Taken as ${acceptance.messageId}. The answer goes to the output channel.`
  } finally {
    await control.close()
  }
}
