import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TerminalChannel } from '../../src/channels/terminal.js'
import { gatewayHandlers } from '../../src/cli/control/gateway-handlers.js'
import { LocalControl } from '../../src/cli/control/local-control.js'
import { openTestStore } from '../kit/engines.js'
import { Stage, TestChannel } from '../kit/stage.js'
import { scheduleConfig, ScheduleStage } from '../schedule/stage.js'

/** Answers with the content of a file next to it. */
const FILE_AGENT = `#!/bin/sh
cat > /dev/null
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"%s"}\\n' "$(cat "$(dirname "$0")/answer")"
`

/** A gateway whose Discord is the test, controlled as if by a command. */
async function setup() {
  const stage = new Stage(onTestFinished)
  const promptDir = stage.makeDirectory('prompt')
  writeFileSync(join(promptDir, 'HEARTBEAT.md'), '- Look at the mail.\n')
  const answer = (text: string) => writeFileSync(join(stage.bin, 'answer'), text)
  answer('HEARTBEAT_OK')
  const discord = new TestChannel(false, 'discord')
  const variables = { BACKEND_CLI_PATH: stage.executable('file-agent', FILE_AGENT), PROMPT_DIR: promptDir }
  const heartbeat = { everyMinutes: 60, to: 'discord:123456789012345678' }
  const file = { discordBotToken: 't', heartbeat }
  const { gateway, config } = await stage.start(variables, file, discord)
  const terminal = new TerminalChannel(async () => {})
  const control = new LocalControl(gatewayHandlers(gateway, terminal, config, Date.now), async () => {})
  const finished = async (messageId: string): Promise<void> => {
    await expect.poll(async () => (await gateway.store.inbox.get(messageId))?.state).not.toBe('open')
  }
  return { stage, gateway, discord, control, answer, finished }
}

describe('a gateway', () => {
  it('says and shows nothing about a quiet heartbeat, and reports one that found something', async () => {
    const { gateway, discord, control, answer, finished } = await setup()
    const quiet = await control.call('heartbeat.run', { isForced: false })
    await finished('messageId' in quiet ? quiet.messageId : '')
    const [before, shown] = [[...discord.replies], [...discord.shown]]
    answer('You have mail.')
    const again = await control.call('heartbeat.run', { isForced: false })
    await control.call('heartbeat.run', { isForced: true })
    await expect.poll(() => discord.texts()).toEqual(['You have mail.'])
    const conversation = await gateway.store.conversations.find('discord', '123456789012345678')
    const session = await gateway.store.sessions.get(conversation?.id ?? '')
    expect([quiet.status, before, shown, again.status, discord.shown, session]).toEqual([
      'begun',
      [],
      [],
      'skipped',
      [],
      undefined,
    ])
  })

  it('runs the command of a cron job, and sends its output', async () => {
    const { discord, control } = await setup()
    const to = 'discord:123456789012345678'
    const wish = { name: 'pwd', schedule: '0 9 * * *', to, command: ['/bin/echo', 'one', '$two'] }
    await control.call('cron.add', wish)
    const { job } = await control.call('cron.run', { job: 'pwd' })
    await expect.poll(() => discord.texts()).toEqual(['one $two\n'])
    expect([job, await control.call('cron.rm', { job: 'pwd' })]).toEqual(['pwd', { job: 'pwd' }])
  })

  it('sends a text on request, but not to a channel it does not have', async () => {
    const { gateway, discord, control } = await setup()
    const sent = await control.call('send', { to: 'discord:123456789012345678', text: 'Hello' })
    const wish = { name: 'a', schedule: '@daily', to: '+4915112345678', prompt: 'Look' }
    const refusals = [
      await control.call('send', { to: '+4915112345678', text: 'Hello' }).catch(String),
      await control.call('cron.add', wish).catch(String),
    ]
    await expect.poll(() => discord.texts()).toEqual(['Hello'])
    const problem = 'GatewayError: This gateway has no channel whatsapp, only discord. Set up WhatsApp first.'
    expect([sent, refusals, await gateway.store.cronJobs.list()]).toEqual([
      { channel: 'discord', address: '123456789012345678' },
      [problem, problem],
      [],
    ])
  })
})

describe('a scheduler', () => {
  it('looks at the end of each minute, and ends a check when stopped', async () => {
    const config = scheduleConfig({ everyMinutes: 1, probe: ['check'] })
    const stage = new ScheduleStage(await openTestStore({ file: ':memory:' }), config, '2026-06-01T10:00:59.990Z')
    stage.runProbe = (signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ exitCode: 143, output: '' }))
      })
    const scheduler = stage.scheduler()
    scheduler.start()
    stage.now += 10
    await expect.poll(() => stage.probed.length).toEqual(1)
    await scheduler.stop()
    const [beat] = await stage.store.heartbeats.list(9)
    expect([beat, await stage.ids()]).toEqual([{ id: `heartbeat:${stage.now}`, at: stage.now }, []])
  })
})
