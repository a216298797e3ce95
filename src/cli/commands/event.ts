import { text } from 'node:stream/consumers'
import { type Command, Option } from 'commander'
import { EVENT_KINDS } from '../../channels/types.js'
import { GatewayError } from '../../errors.js'
import type { CommandContext } from '../command-context.js'
import { withGateway } from '../with-control.js'

export function registerEvent(program: Command, context: CommandContext): void {
  program
    .command('event')
    .description('Send a prompt to the running gateway, from cron or a script. The answer goes to OUTPUT_CHANNEL_ID.')
    .argument('[prompt]', 'what to do; by default read from stdin')
    .addOption(new Option('-k, --kind <kind>', 'where the prompt comes from').choices(EVENT_KINDS).default('cron'))
    .action(async (prompt: string | undefined, flags: { kind: (typeof EVENT_KINDS)[number] }) => {
      console.log(await sendEvent(context.readConfig().home, flags.kind, prompt ?? (await text(process.stdin))))
    })
}

/** Gives the gateway a prompt from outside a chat; the answer goes to the output channel. */
export async function sendEvent(home: string, kind: (typeof EVENT_KINDS)[number], text: string): Promise<string> {
  if (text.trim() === '') throw new GatewayError('request_invalid', 'Say what the agent should do: aetheel event "…"')
  const acceptance = await withGateway(home, (control) => control.call('event.send', { kind, text }))
  if (acceptance.status === 'refused') throw new GatewayError('request_invalid', acceptance.reason)
  return `Accepted as ${acceptance.messageId}. The answer goes to the output channel.`
}
