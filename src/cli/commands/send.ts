import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { GatewayError } from '../../errors.js'
import { describeTarget, parseTarget } from '../../config/target.js'
import type { CommandContext } from '../command-context.js'
import { withGateway } from '../with-control.js'

export function registerSend(program: Command, context: CommandContext): void {
  program
    .command('send')
    .description('Send a message to a person or channel through the running gateway.')
    .argument('[text]', 'what to send; by default read from stdin')
    .requiredOption('-t, --to <target>', 'whatsapp:+4915112345678, discord:<channel id> or terminal:<conversation>')
    .action(async (words: string | undefined, flags: { to: string }) => {
      console.log(await send(context.readConfig().home, flags.to, words ?? (await text(process.stdin))))
    })
}

/** Sends a text through the running gateway, which retries until it is delivered or expires. */
export async function send(home: string, to: string, text: string): Promise<string> {
  if (text.trim() === '') {
    throw new GatewayError('request_invalid', 'Say what to send: aetheel send --to whatsapp:+4915112345678 "…"')
  }
  // Checked first, so that a mistake is reported even if no gateway is running.
  const target = parseTarget(to)
  await withGateway(home, (control) => control.call('send', { to, text }))
  return `On its way to ${describeTarget(target)}. "aetheel queue list" shows it if it cannot be delivered.`
}
