import { describe, expect, it, onTestFinished } from 'vitest'
import type { Acceptance } from '../../../src/channels/types.js'
import { sendEvent } from '../../../src/cli/commands/event.js'
import { type ParametersOf, socketPath } from '../../../src/cli/control/protocol.js'
import { startControlServer } from '../../../src/cli/control/server.js'
import { GatewayError } from '../../../src/errors.js'
import { DEMO_AGENT } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'
import { SILENT_LOG } from '../../kit/log.js'

const DEMO = { BACKEND_CLI_PATH: DEMO_AGENT }
const NOWHERE =
  'There is nowhere to send the answer. Set DISCORD_BOT_TOKEN, and OUTPUT_CHANNEL_ID to a Discord channel.\n'

describe.concurrent('aetheel event', () => {
  it('says what to do if no gateway runs', async (test) => {
    const terminal = new Terminal(test)
    expect(await terminal.run(['event', 'Look at the logs'])).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'No gateway is running here. Start one with "aetheel start".\n',
    })
  })

  it.for<[string, NodeJS.ProcessEnv]>([
    ['without a channel for it', {}],
    ['without Discord', { OUTPUT_CHANNEL_ID: '123456789012345678' }],
  ])('says what to set %s, and gives the gateway nothing to do', async ([, env], test) => {
    const terminal = new Terminal(test)
    const gateway = await terminal.startGateway({ ...DEMO, ...env })
    const event = await terminal.run(['event', '--kind', 'heartbeat'], { stdin: 'Look at the logs' })
    const queue = await terminal.run(['queue', 'list'])
    gateway.kill('SIGTERM')
    await gateway.exited
    expect([event, queue.stdout]).toEqual([
      { exitCode: 1, stdout: '', stderr: NOWHERE },
      'Nothing is waiting, and nothing has failed.\n',
    ])
  })

  it('names the kinds there are', async (test) => {
    const terminal = new Terminal(test)
    const { exitCode, stderr } = await terminal.run(['event', '--kind', 'message', 'hello'])
    expect([exitCode, stderr.split('\n')[0]]).toEqual([
      1,
      "error: option '-k, --kind <kind>' argument 'message' is invalid. Allowed choices are heartbeat, cron, hook, webhook.",
    ])
  })
})

describe('an event', () => {
  const taken = { messageId: 'm1', conversationId: 'c1' }

  it('is passed on with its kind and text, and confirmed', async () => {
    const { home, asked } = await setup({ status: 'accepted', ...taken, position: 0, notes: [] })
    expect([await sendEvent(home, 'hook', 'The build is red.\n'), asked]).toEqual([
      'Accepted as m1. The answer goes to the output channel.',
      [{ kind: 'hook', text: 'The build is red.\n' }],
    ])
  })

  it('that is refused is a mistake of whoever sent it', async () => {
    const { home } = await setup({ status: 'refused', ...taken, reason: 'Too many wait.' })
    await expect(sendEvent(home, 'cron', 'Look at the logs')).rejects.toThrow(
      new GatewayError('request_invalid', 'Too many wait.'),
    )
  })

  it('of nothing is not sent', async () => {
    const { home, asked } = await setup({ status: 'accepted', ...taken, position: 0, notes: [] })
    const failure = await sendEvent(home, 'cron', ' \n').catch(String)
    expect([failure, asked]).toEqual([expect.stringContaining('Say what the agent should do: aetheel event "…"'), []])
  })
})

/** A gateway that gives every event this answer. */
async function setup(acceptance: Acceptance) {
  const home = temporaryDirectory()
  const asked: ParametersOf<'event.send'>[] = []
  const server = await startControlServer(
    socketPath(home),
    {
      'event.send': async (event) => {
        asked.push(event)
        return acceptance
      },
    },
    SILENT_LOG,
  )
  onTestFinished(() => server.close())
  return { home, asked }
}
