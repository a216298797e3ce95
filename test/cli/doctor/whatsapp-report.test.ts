import { createServer } from 'node:http'
import { describe, it, type TestContext } from 'vitest'
import { whatsAppReport as report } from '../../../src/cli/doctor/whatsapp-report.js'
import { type GatewayConfig, loadConfig } from '../../../src/config.js'
import { createLog } from '../../../src/log.js'
import { freePort } from '../../kit/loopback.js'
import { ADA, BEN, WhatsAppStage } from '../../channels/whatsapp/stage.js'

const SENDER = '+4930123456'

const whatsAppReport = (config: GatewayConfig) =>
  report(config, { environment: { PATH: process.env['PATH'] }, log: createLog({ level: 'error' }) })

describe('The part of "doctor" about WhatsApp', { concurrent: true }, () => {
  it('has one line when it is not configured', async ({ expect }) => {
    expect(await whatsAppReport(loadConfig({ HOME: '/home/ada' }))).toEqual({
      text: '- WhatsApp: not configured; see docs/whatsapp.md',
      isHealthy: true,
    })
  })

  it('finds nothing against a gateway that is well', async ({ expect, onTestFinished }) => {
    const { stage, config } = await open(onTestFinished)
    await stage.startWith(config)
    const before = stage.twilio.messages.length

    expect(await whatsAppReport(config)).toEqual({
      text: [
        '✓ WhatsApp: the credentials work; the account is Test',
        '✓ WhatsApp: +4930123456 is a WhatsApp sender, and online',
        '✓ WhatsApp: Twilio calls this gateway for incoming messages',
        `✓ WhatsApp: ${config.publicUrl} leads to the gateway, which accepts Twilio's signature`,
        '✓ WhatsApp: claude answers',
        '✓ WhatsApp: 2 numbers may write',
      ].join('\n'),
      isHealthy: true,
    })
    expect(stage.twilio.messages.length).toEqual(before)
  })

  it.for<[string, (config: GatewayConfig, stage: WhatsAppStage) => GatewayConfig, string[]]>([
    [
      'credentials that are wrong',
      (config) => ({ ...config, twilioAuthToken: 'wrong' }),
      ['✗ WhatsApp: Twilio rejected the credentials.', '    Copy the Account SID and the Auth Token'],
    ],
    [
      'an Auth Token that is wrong beside an API key',
      (config, { twilio }) => ({
        ...config,
        twilioAuthToken: 'wrong',
        twilioApiKey: twilio.accountSid,
        twilioApiSecret: twilio.authToken,
      }),
      ['✗ WhatsApp: twilioAuthToken is not the Auth Token of this account'],
    ],
    [
      'a number that is no sender',
      (config) => ({ ...config, twilioWhatsappFrom: '+4930999999' }),
      ['✗ WhatsApp: +4930999999 is not a WhatsApp sender of this account', '    Its senders: whatsapp:+4930123456'],
    ],
    [
      'a sender that is not online, and a webhook for somebody else',
      (config, { twilio }) => {
        twilio.senders.splice(0, 1, {
          sender_id: `whatsapp:${SENDER}`,
          status: 'OFFLINE',
          webhook: { callback_url: 'https://other.example' },
        })
        return config
      },
      ['✗ WhatsApp: the sender +4930123456 is OFFLINE', '✗ WhatsApp: Twilio calls https://other.example'],
    ],
    [
      'a trial account',
      (config, { twilio }) => {
        twilio.accountType = 'Trial'
        return config
      },
      ['! WhatsApp: it is a trial account'],
    ],
    [
      'the sandbox',
      (config) => ({ ...config, twilioWhatsappFrom: '+14155238886' }),
      ["! WhatsApp: +14155238886 is Twilio's sandbox", '/whatsapp/webhook'],
    ],
    [
      'a gateway that does not run',
      (config) => config,
      ['cannot be reached: ', '    Start the gateway, and check the tunnel'],
    ],
    [
      'no public URL',
      (_, stage) => stage.config({}, {}, false),
      ['✓ WhatsApp: no publicUrl is set: Twilio is polled every 0.1 s'],
    ],
    [
      'an empty list of people',
      (config) => allowing(config, []),
      ['! WhatsApp: nobody may write', '    Add your number to inbound.reply.allowFrom'],
    ],
    [
      'a list with everybody',
      (config) => allowing(config, ['*']),
      ['! WhatsApp: anyone who knows the number may talk to the agent'],
    ],
    [
      'an agent that is not there',
      (_, stage) => stage.config({ command: ['no-such-agent', '{{Body}}'] }),
      ['✗ WhatsApp: claude cannot answer', '    Claude CLI "no-such-agent" was not found. Install it'],
    ],
    [
      'a directory that is not there',
      (_, stage) => stage.config({ cwd: '/nowhere/at/all' }),
      [
        '✗ WhatsApp: the directory /nowhere/at/all does not exist',
        '    Create it, or set inbound.reply.cwd to another directory',
      ],
    ],
    [
      'a command for voice messages that is not there',
      (_, stage) => stage.config({ transcribeAudio: { command: ['no-such-ear', '{{MediaPath}}'] } }),
      ['✗ WhatsApp: no-such-ear was not found', '    Install it, or start inbound.reply.transcribeAudio.command'],
    ],
    [
      'a Twilio that is away',
      (config) => ({ ...config, twilioApiUrl: 'http://127.0.0.1:1' }),
      ['✗ WhatsApp: ', '    Check the network, twilioApiUrl'],
    ],
  ])('reports %s', async ([, change, expected], { expect, onTestFinished }) => {
    const { stage, config } = await open(onTestFinished)
    const { text } = await whatsAppReport(change(config, stage))

    for (const part of expected) expect(text).toContain(part)
  })

  it('reports something else behind the public URL', async ({ expect, onTestFinished }) => {
    const { config } = await open(onTestFinished)
    const { port } = new URL(config.publicUrl ?? '')
    const server = createServer((_, response) => response.end('a page'))
    await new Promise<void>((resolve) => server.listen(Number(port), '127.0.0.1', resolve))
    onTestFinished(() => void server.close())

    const { text, isHealthy } = await whatsAppReport(config)

    expect([isHealthy, text]).toEqual([
      false,
      expect.stringContaining('/whatsapp/webhook answers with status 200, but is not the gateway'),
    ])
  })

  it('reports a gateway that runs with another token', async ({ expect, onTestFinished }) => {
    const { stage, config } = await open(onTestFinished)
    await stage.startWith(config)
    const { twilioAccountSid: twilioApiKey = '', twilioAuthToken: twilioApiSecret = '' } = config

    const { text } = await whatsAppReport({ ...config, twilioApiKey, twilioApiSecret, twilioAuthToken: 'new' })

    expect(text).toContain('rejects requests signed with this Auth Token')
  })
})

async function open(
  onTestFinished: TestContext['onTestFinished'],
): Promise<{ stage: WhatsAppStage; config: GatewayConfig }> {
  const stage = await WhatsAppStage.open(onTestFinished)
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  stage.twilio.senders.push({
    sender_id: `whatsapp:${SENDER}`,
    status: 'ONLINE',
    webhook: { callback_url: `${publicUrl}/whatsapp/webhook` },
  })
  const settings = { publicUrl, httpPort: port, twilioWhatsappFrom: SENDER }
  return { stage, config: stage.config({ allowFrom: [ADA, BEN] }, settings) }
}

function allowing({ inbound, ...rest }: GatewayConfig, allowFrom: string[]): GatewayConfig {
  return { ...rest, ...(inbound && { inbound: { reply: { ...inbound.reply, allowFrom } } }) }
}
