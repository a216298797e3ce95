import { GatewayError } from '../../errors.js'
import { describeTarget, parseTarget } from '../../config/target.js'
import { withGateway } from '../with-gateway.js'

/** Says something by the running gateway, which goes on trying until it is delivered or too old. */
export async function send(home: string, to: string, text: string): Promise<string> {
  if (text.trim() === '') {
    throw new GatewayError('request_invalid', 'Say what to send: aetheel send --to whatsapp:+4915112345678 "…"')
  }
  // A mistake in it is told also where no gateway runs.
  const target = parseTarget(to)
  await withGateway(home, (control) => control.call('send', { to, text }))
  return `On its way to ${describeTarget(target)}. "aetheel queue list" shows it if it cannot be delivered.`
}
