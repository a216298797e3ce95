import { ControlClient } from './control/client.js'
import { type Control, socketPath } from './control/protocol.js'
import { GatewayError } from '../errors.js'

/** For operations that need a running gateway. */
export async function withGateway<T>(home: string, work: (control: Control) => Promise<T>): Promise<T> {
  const control = await ControlClient.connect(socketPath(home))
  if (!control) {
    throw new GatewayError('gateway_unavailable', 'No gateway is running here. Start one with "aetheel start".')
  }
  try {
    return await work(control)
  } finally {
    await control.close()
  }
}
