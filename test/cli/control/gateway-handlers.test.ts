import { expect, it, onTestFinished } from 'vitest'
import { TerminalChannel } from '../../../src/channels/terminal.js'
import { gatewayHandlers } from '../../../src/cli/control/gateway-handlers.js'
import { LocalControl } from '../../../src/cli/control/local-control.js'
import { GatewayError } from '../../../src/errors.js'
import { ECHO_AGENT } from '../../kit/agents.js'
import { Stage, TestChannel } from '../../kit/stage.js'

const OUTPUT = '123456789012345678'

/** A gateway whose Discord is the test, controlled as by a command. */
async function setup(variables: NodeJS.ProcessEnv = {}) {
  const stage = new Stage(onTestFinished)
  const directory = stage.makeDirectory('site')
  const BACKEND_CLI_PATH = stage.executable('echo-agent', ECHO_AGENT)
  const projects = { site: { directory, discordChannels: [OUTPUT] } }
  const discord = new TestChannel(false, 'discord')
  const { gateway, config } = await stage.start({ BACKEND_CLI_PATH, ...variables }, { projects }, discord)
  const terminal = new TerminalChannel(async () => {})
  const control = new LocalControl(gatewayHandlers(gateway, terminal, config, Date.now), async () => {})
  return { gateway, discord, control, directory }
}

it('says the answer to an event in the output channel, which works in its project', async () => {
  const { gateway, discord, control, directory } = await setup({ DISCORD_BOT_TOKEN: 't', OUTPUT_CHANNEL_ID: OUTPUT })
  const acceptance = await control.call('event.send', { kind: 'heartbeat', text: 'Look at the logs' })
  await expect.poll(() => discord.replies.length).toEqual(1)
  const { address, text } = discord.replies[0] ?? {}
  const message = await gateway.store.inbox.get(acceptance.messageId)
  const [run] = await gateway.store.runs.list(1)
  expect([acceptance.status, address, text, message?.kind, message?.author, run?.directory]).toEqual([
    'accepted',
    OUTPUT,
    'Look at the logs',
    'heartbeat',
    'heartbeat',
    directory,
  ])
})

it('takes the same event as often as it is sent', async () => {
  const { discord, control } = await setup({ DISCORD_BOT_TOKEN: 't', OUTPUT_CHANNEL_ID: OUTPUT })
  const event = { kind: 'cron', text: 'Look at the logs' } as const
  const acceptances = [await control.call('event.send', event), await control.call('event.send', event)]
  await expect.poll(() => discord.texts()).toEqual(['Look at the logs', 'Look at the logs'])
  expect(acceptances.map(({ status }) => status)).toEqual(['accepted', 'accepted'])
})

it.each<[string, NodeJS.ProcessEnv]>([
  ['a channel for its answer', { DISCORD_BOT_TOKEN: 't' }],
  ['Discord', { OUTPUT_CHANNEL_ID: OUTPUT }],
])('takes no event without %s', async (_, variables) => {
  const { gateway, control } = await setup(variables)
  const error = await control.call('event.send', { kind: 'cron', text: 'hello' }).catch((thrown: unknown) => thrown)
  expect([error, await gateway.store.inbox.listOpen(9)]).toEqual([
    new GatewayError(
      'config_invalid',
      'There is nowhere to send the answer. Set DISCORD_BOT_TOKEN, and OUTPUT_CHANNEL_ID to a Discord channel.',
    ),
    [],
  ])
})
