import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type GatewayConfig, loadConfig } from '../../src/config.js'
import { GatewayError } from '../../src/errors.js'
import { TEMPLATE_NAMES } from '../../src/turns/inbound-reply/command-template.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const NUMBER = '+4915112345678'
const SID = `AC${'0'.repeat(32)}`
const TWILIO = { twilioAccountSid: SID, twilioAuthToken: 'some token', twilioWhatsappFrom: '+14155238886' }
const CLAUDE = { agent: { kind: 'claude' }, allowFrom: [NUMBER] }

describe('inbound.reply', () => {
  it('has a default for all that can be left out', () => {
    expect(load({ inbound: { reply: CLAUDE } }).config.inbound).toEqual({
      reply: {
        ...CLAUDE,
        mode: 'command',
        timeoutSeconds: 600,
        mediaMaxMb: 5,
        typingIntervalSeconds: 8,
      },
    })
  })

  it('takes everything that the relay had, with paths from the directory of the file', () => {
    const reply = {
      mode: 'command',
      agent: { kind: 'pi', format: 'json', identityPrefix: 'You are Ada.' },
      command: ['./bin/pi', '--model', 'x', '{{Body}}'],
      cwd: 'work',
      session: {
        scope: 'global',
        idleMinutes: 5,
        heartbeatIdleMinutes: 6,
        resetTriggers: ['/new', 'again'],
        sessionArgNew: ['--session', '{{SessionId}}'],
        sessionArgResume: ['--session', '{{SessionId}}'],
        sessionIntro: 'Hello {{From}}',
        sendSystemOnce: true,
      },
      timeoutSeconds: 60,
      bodyPrefix: 'From {{From}}: ',
      mediaUrl: 'https://example.com/a.png',
      mediaMaxMb: 16,
      typingIntervalSeconds: 3,
      heartbeatMinutes: 30,
      allowFrom: [`whatsapp:${NUMBER}`],
      responsePrefix: '[bot] ',
      transcribeAudio: { command: ['whisper', '{{MediaPath}}'], timeoutSeconds: 90 },
    }
    const { config, directory } = load({ inbound: { reply } })
    expect(config.inbound).toEqual({
      reply: {
        ...reply,
        command: [join(directory, 'bin/pi'), '--model', 'x', '{{Body}}'],
        cwd: join(directory, 'work'),
        allowFrom: [NUMBER],
      },
    })
  })

  it.each([
    [{ mode: 'command' }, 'agent: is missing: name the agent that answers, such as agent: { kind: "claude" }'],
    [{ mode: 'text' }, 'text: is missing: in mode "text" it is the answer'],
    [{ ...CLAUDE, text: 'hi' }, 'text: is only for mode "text": set that mode, or remove the text'],
    [
      { ...CLAUDE, mode: 'text', text: 'hi' },
      'mode: in mode "text" no agent answers: remove agent and command, or set mode: "command"',
    ],
    [{ ...CLAUDE, allowFrom: ['0151'] }, 'allowFrom[0]: "0151" is neither "*" nor a number such as +4915112345678'],
    [{ ...CLAUDE, command: 'claude' }, 'command: must be a list'],
    [{ ...CLAUDE, command: ['{{Body}}'] }, 'command: The executable must not come from a message. Write its name.'],
    [
      { ...CLAUDE, bodyPrefix: '{{Who}}' },
      `bodyPrefix: {{Who}} is not a known placeholder. Known: ${TEMPLATE_NAMES.map((name) => `{{${name}}}`).join(', ')}.`,
    ],
    [
      { ...CLAUDE, session: { sessionArgNew: ['--', '{{SessionId}}'] } },
      'session.sessionArgNew: Remove "--": it ends the options, and more options for the agent follow it.',
    ],
    [
      { ...CLAUDE, session: { sessionArgResume: ['--{{SessionId}}'] } },
      'session.sessionArgResume: "--{{SessionId}}": a message must not choose the option. Put it after "=", or by itself.',
    ],
    [
      { ...CLAUDE, claudeOutputFormat: 'json' },
      'claudeOutputFormat: was removed: use agent: { kind: "claude", format: "json" }, or omit the format',
    ],
    [{ ...CLAUDE, mediaUrl: 'foo' }, 'mediaUrl: must be a URL that begins with https:// or http://'],
    [{ ...CLAUDE, template: 'x' }, 'template: was removed: put it into command, before {{Body}}'],
    [{ ...CLAUDE, session: { store: 'x' } }, 'session.store: was removed: sessions are kept in the database'],
    [
      { ...CLAUDE, session: { sessionArgBeforeBody: true } },
      'session.sessionArgBeforeBody: was removed: the message is passed on stdin, not among the arguments',
    ],
    [{ ...CLAUDE, timeoutSecond: 5 }, 'timeoutSecond: unknown key; did you mean "timeoutSeconds"?'],
  ])('refuses %j with what to do', (reply, problem) => {
    const { problems } = load({ inbound: { reply } })
    expect(problems).toEqual([expect.stringMatching(/: inbound\.reply\./)])
    expect(problems.join('').split('inbound.reply.').slice(1).join('inbound.reply.')).toBe(problem)
  })

  it('says where keys belong that earlier relays had one level up', () => {
    const { problems } = load({ inbound: { reply: CLAUDE, allowFrom: [NUMBER], messagePrefix: 'x' } })
    expect(problems.map((problem) => problem.replace(/^.*?: /, ''))).toEqual([
      'inbound.allowFrom: belongs in inbound.reply: move it there',
      'inbound.messagePrefix: was removed: use inbound.reply.bodyPrefix',
    ])
  })

  it('warns of what may not be meant', () => {
    const reply = {
      agent: { kind: 'claude', format: 'text', identityPrefix: 'You speak with {{From}}.' },
      command: ['codex'],
      allowFrom: ['*'],
      session: {},
      responsePrefix: '{{To}}',
      mediaMaxMb: 17,
    }
    const { config } = load({ ...TWILIO, inbound: { reply }, publicUrl: 'http://gateway.example/' })
    expect(config.warnings.map((warning) => warning.replace(/^.*?: /, ''))).toEqual([
      'inbound.reply.allowFrom: "*" lets anyone who knows the number use your agents; list the allowed numbers.',
      'inbound.reply.agent.format: with "text" the agent reports no session, so every message starts a new one.',
      "inbound.reply.command: starts codex, but agent.kind is claude: use that agent's executable.",
      'inbound.reply.agent.identityPrefix: is not a template: placeholders in {{ }} are sent as written.',
      'inbound.reply.responsePrefix: is not a template: placeholders in {{ }} are sent as written.',
      'inbound.reply.mediaMaxMb: WhatsApp rejects files larger than 16 MB.',
      'publicUrl: http does not encrypt messages: use https.',
    ])
  })
})

describe('the account of Twilio', () => {
  it('is taken with its token, or with a key and its secret', () => {
    const { twilioAuthToken: _, ...rest } = TWILIO
    const withKey = load({ ...rest, twilioApiKey: 'SK1', twilioApiSecret: 'secret' })
    expect([load(TWILIO).problems, withKey.problems]).toEqual([[], []])
  })

  it.each([
    [{ twilioAuthToken: 'x' }, ['twilioAuthToken: needs TWILIO_ACCOUNT_SID: set that too, or remove this setting']],
    [
      { twilioAccountSid: SID },
      [
        'twilioAccountSid: needs TWILIO_WHATSAPP_FROM, the number to send from',
        'twilioAccountSid: needs TWILIO_AUTH_TOKEN, or TWILIO_API_KEY and TWILIO_API_SECRET',
      ],
    ],
    [
      { ...TWILIO, twilioApiKey: 'SK1' },
      ['twilioAccountSid: TWILIO_API_KEY and TWILIO_API_SECRET go together: set both or neither'],
    ],
    [{ twilioAccountSid: 'AC1' }, ['twilioAccountSid: must be a Twilio Account SID: AC and 32 hexadecimal digits']],
    [
      {
        ...TWILIO,
        twilioAuthToken: undefined,
        twilioApiKey: 'SK1',
        twilioApiSecret: 's',
        publicUrl: 'https://x.example',
      },
      ['publicUrl: needs TWILIO_AUTH_TOKEN to verify webhooks'],
    ],
    [
      { ...TWILIO, publicUrl: 'https://x.example', httpEnabled: false },
      ['publicUrl: webhooks need the HTTP server: remove HTTP_ENABLED=false or PUBLIC_URL'],
    ],
  ])('is refused when something is missing: %#', (settings, expected) => {
    expect(load(settings).problems.map((problem) => problem.replace(/^.*?: /, ''))).toEqual(expected)
  })

  it('says that nobody may write yet', () => {
    expect(load(TWILIO).config.warnings).toEqual([
      expect.stringContaining('nobody can write yet: add your number to inbound.reply.allowFrom'),
    ])
  })
})

describe('the heartbeat', () => {
  it('goes to the first number that may write, and has its minutes from either place', () => {
    const beat = {
      dailyTokens: 200_000,
      whenUnchanged: 'skip',
      session: 'own',
      everyMinutes: 30,
      to: `whatsapp:${NUMBER}`,
    }
    const short = load({ inbound: { reply: { ...CLAUDE, heartbeatMinutes: 30 } } })
    const long = load({ inbound: { reply: CLAUDE }, heartbeat: { everyMinutes: 30, probe: ['./probe.sh'] } })
    expect([short.config.heartbeat, long.config.heartbeat]).toEqual([
      beat,
      { ...beat, probe: [join(long.directory, 'probe.sh')] },
    ])
  })

  it('goes to the output channel if nobody may write by WhatsApp', () => {
    const { config } = load({
      discordBotToken: 'MTE.x.y',
      outputChannelId: '100000000000000007',
      heartbeat: { everyMinutes: 5 },
    })
    expect(config.heartbeat?.to).toBe('discord:100000000000000007')
  })

  it.each([
    [
      { everyMinutes: 1440, activeHours: { from: '08:00', to: '22:00' }, timeZone: 'Europe/Berlin' },
      'heartbeat.activeHours: no heartbeat falls within these hours: intervals are counted from 00:00 UTC. Shorten everyMinutes, or extend the hours.',
    ],
    [
      { everyMinutes: 30, to: `whatsapp:${NUMBER}` },
      'heartbeat.dailyTokens: is only estimated: with agent.format "text" the agent reports no tokens.',
    ],
  ])('that may not do what is meant causes a warning: %j', (heartbeat, warning) => {
    const reply = { agent: { kind: 'claude', format: 'text' } }
    const { config } = load({ heartbeat: { to: 'terminal:ops', ...heartbeat }, inbound: { reply } })
    expect(config.warnings.map((text) => text.replace(/^.*?: /, ''))).toEqual([warning])
  })

  it('is off at 0 minutes', () => {
    expect(load({ heartbeat: { everyMinutes: 0 } }).config.heartbeat).toBeUndefined()
  })

  it.each([
    [
      { heartbeat: { everyMinutes: 5 } },
      'heartbeat.everyMinutes: has no recipient: set heartbeat.to, inbound.reply.allowFrom or OUTPUT_CHANNEL_ID',
    ],
    [
      { heartbeat: { everyMinutes: 5 }, inbound: { reply: { ...CLAUDE, heartbeatMinutes: 5 } } },
      'heartbeat.everyMinutes: inbound.reply.heartbeatMinutes is set too: keep only one of them',
    ],
    [
      { heartbeat: { everyMinutes: 5, to: 'whatsapp:0151' } },
      'heartbeat.to: "0151" is not a phone number in international format, such as +4915112345678.',
    ],
    [
      { heartbeat: { everyMinutes: 5, to: 'terminal:x', timeZone: 'Mars/Olympus' } },
      'heartbeat.timeZone: must be the name of a time zone, such as Europe/Berlin',
    ],
    [
      { heartbeat: { everyMinutes: 5, to: 'terminal:x', activeHours: { from: '8', to: '22:00' } } },
      'heartbeat.activeHours.from: must be a time of day, such as 08:00',
    ],
  ])('is refused: %j', (settings, problem) => {
    expect(load(settings).problems.map((text) => text.replace(/^.*?: /, ''))).toEqual([problem])
  })
})

interface Loaded {
  config: GatewayConfig
  problems: string[]
  directory: string
}

function load(settings: object): Loaded {
  const directory = temporaryDirectory()
  const file = join(directory, 'aetheel.json5')
  writeFileSync(file, JSON.stringify(settings))
  try {
    return { config: loadConfig({ HOME: directory }, file), problems: [], directory }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { config: {} as GatewayConfig, problems: error.message.split('\n'), directory }
  }
}
