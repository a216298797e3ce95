import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configCheck, configShow } from '../../../src/cli/commands/config.js'
import { maskDatabaseUrl, maskHookUrl, secretsOfConfig } from '../../../src/config/secrets.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

describe('configCheck', () => {
  it('names the file it found and has nothing to say against it', () => {
    const { file, ...options } = setup(`{ agentBackend: 'codex' }`)
    expect(configCheck(options)).toEqual({ text: `${file}: no problems`, exitCode: 0 })
  })

  it('says where it looked when there is no file', () => {
    const { cwd, environment } = setup()
    expect(configCheck({ cwd, environment })).toEqual({
      text: `There is no ${cwd}/aetheel.json5 and no /home/ada/.aetheel/aetheel.json5: defaults and environment hold, no problems`,
      exitCode: 0,
    })
  })

  it('reports every problem of file and environment', () => {
    const { file, cwd } = setup(`{ maxQueueDeph: 5, leaseMs: 1 }`)
    expect(configCheck({ cwd, environment: { HOME: '/home/ada', MAX_CONCURRENT_QUERIES: '0' } })).toEqual({
      text: [
        'MAX_CONCURRENT_QUERIES: must be a whole number from 1 to 1000, not 0',
        `${file}: leaseMs: must be a whole number from 1000 to 2147483647, not 1`,
        `${file}: maxQueueDeph: unknown key; did you mean "maxQueueDepth"?`,
      ].join('\n'),
      exitCode: 1,
    })
  })

  it('reports an invalid key for credentials', () => {
    const { cwd } = setup('{}')
    const environment = { HOME: '/home/ada', AETHEEL_MASTER_KEY: 'abc' }
    const { text, exitCode } = configCheck({ cwd, environment })
    expect([text, exitCode]).toEqual([expect.stringContaining('AETHEEL_MASTER_KEY must be 32 bytes in base64.'), 1])
  })

  it('fails when the file that was named is not there', () => {
    const { cwd, environment } = setup(`{}`)
    expect(configCheck({ cwd, environment, explicit: 'other.json5' })).toEqual({
      text: `${cwd}/other.json5: does not exist; create it, or name another file with --config`,
      exitCode: 1,
    })
  })

  it('warns about missing files and directories', () => {
    const { file, cwd, environment } = setup(`{
      workingDir: 'nowhere',
      inbound: { reply: {
        agent: { kind: 'claude' },
        command: ['no-such-agent', '{{Body}}'],
        cwd: 'nowhere-else',
        transcribeAudio: { command: ['no-such-ear'] },
      } },
      heartbeat: { everyMinutes: 30, to: 'terminal:ops', probe: ['./no-such-check'] },
      kubectlPath: 'no-such-kubectl',
      projects: { web: { pod: { name: 'web-0' } }, shop: { directory: 'no-shop' } },
    }`)
    expect(configCheck({ cwd, environment }).text).toBe(
      [
        `${file}: no problems`,
        `Warning: workingDir: the directory ${cwd}/nowhere does not exist. Run: mkdir -p ${cwd}/nowhere`,
        `Warning: inbound.reply.cwd: the directory ${cwd}/nowhere-else does not exist. Run: mkdir -p ${cwd}/nowhere-else`,
        `Warning: project shop: the directory ${cwd}/no-shop does not exist. Run: mkdir -p ${cwd}/no-shop`,
        'Warning: inbound.reply.command: no-such-agent was not found, or is not executable.',
        'Warning: inbound.reply.transcribeAudio.command: no-such-ear was not found, or is not executable.',
        `Warning: heartbeat.probe: ${cwd}/no-such-check was not found, or is not executable.`,
        'Warning: kubectlPath: no-such-kubectl was not found, or is not executable.',
      ].join('\n'),
    )
  })

  it('warns about corrected values', () => {
    const { file, ...options } = setup(`{ backendMaxTurns: 0 }`)
    expect(configCheck(options)).toEqual({
      text: `${file}: no problems\nWarning: ${file}: backendMaxTurns must be a positive whole number, not 0; using 25.`,
      exitCode: 0,
    })
  })
})

describe('configShow', () => {
  it('shows every setting and where it comes from, without secrets', () => {
    const { file, cwd } = setup(`{
      agentBackend: 'pi',
      workingDir: '/srv',
      hooks: [{ on: 'error', url: 'https://hooks.example/secret' }, { on: ['reply-sent'], command: ['tell', 'me'] }],
      projects: { web: { directory: '/srv/web' } },
    }`)
    const environment = {
      HOME: '/home/ada',
      AETHEEL_HOME: '/data',
      DATABASE_URL: 'postgres://ada:secret@db/aetheel',
      DISCORD_BOT_TOKEN: 'secret',
      ATTACHMENT_TYPES: 'image/*',
    }
    expect(configShow({ cwd, environment, isJson: false })).toEqual({
      text: `Configuration file: ${file}
SETTING               FROM                             VALUE
home                  environment (AETHEEL_HOME)       "/data"
agentBackend          file                             "pi"
backendCliPath        default                          "pi"
agentMode             default                          "auto"
liveIdleMs            default                          600000
liveMaxProcesses      default                          8
liveMaxMemoryMb       default                          4096
liveSpare             default                          false
agentPermissions      default                          "allow"
approvalTimeoutMs     default                          600000
backendModel          default                          -
backendMaxTurns       default                          25
allowedTools          default                          []
queryTimeoutMs        default                          1800000
messageTimeoutMs      default                          3600000
queryTimeoutRetries   default                          3
idleTimeoutMs         default                          600000
workingDir            file                             "/srv"
agentEnvPass          default                          []
logLevel              default                          -
databaseUrl           environment (DATABASE_URL)       "postgres://ada:***@db/aetheel"
maxConcurrentQueries  default                          5
maxQueueDepth         default                          100
queueMode             default                          "followup"
maxWaitingCommands    default                          100
replyExpiryMs         default                          900000
sessionIdleMs         default                          604800000
leaseMs               default                          30000
drainTimeoutMs        default                          30000
promptDir             default                          "/data/prompt"
hooks[0]              file                             {"on":["error"],"url":"https://hooks.example/***","timeoutMs":10000}
hooks[1]              file                             {"on":["reply-sent"],"command":["tell","me"],"timeoutMs":10000}
projects[0]           file                             {"id":"web","directory":"/srv/web"}
defaultProject        default                          -
discordBotToken       environment (DISCORD_BOT_TOKEN)  "***"
discordOwnerId        default                          -
discordGuilds         default                          []
discordChannels       default                          []
discordUsers          default                          []
discordRoles          default                          []
discordThreads        default                          true
discordFooter         default                          true
outputChannelId       default                          -
discordApiUrl         default                          "https://discord.com/api"
attachmentMaxMb       default                          25
attachmentTypes       environment (ATTACHMENT_TYPES)   ["image/*"]
mediaRoots            default                          []
opencodeEnabled       default                          false
opencodeManaged       default                          false
opencodeUrl           default                          "http://127.0.0.1:4096"
opencodeUsername      default                          "opencode"
opencodePassword      default                          -
kubectlPath           default                          "kubectl"
kubernetesContext     default                          -
kubernetesNamespace   default                          -
kubernetesLabel       default                          "rdev.orchard9.ai/agent-provider"
codeAgentDefault      default                          "pi"
projectRoots          default                          ["/aetheel-projects"]
templateDir           default                          -
httpEnabled           default                          true
httpHost              default                          "127.0.0.1"
httpPort              default                          7433
httpAllowedHosts      default                          []
publicUrl             default                          -
twilioAccountSid      default                          -
twilioAuthToken       default                          -
twilioApiKey          default                          -
twilioApiSecret       default                          -
twilioWhatsappFrom    default                          -
twilioApiUrl          default                          "https://api.twilio.com"
whatsappPollSeconds   default                          5
inbound               default                          -
heartbeat             default                          -`,
      exitCode: 0,
    })
  })

  it('shows the same as JSON', () => {
    const { file, cwd } = setup(`{ databaseUrl: 'postgres://ada:secret@db/aetheel', discordBotToken: 'secret' }`)
    const { text, exitCode } = configShow({ cwd, environment: { HOME: '/home/ada', LEASE_MS: '2000' }, isJson: true })
    const shown = JSON.parse(text) as { settings: Record<string, unknown> }
    const { home, databaseUrl, discordBotToken, leaseMs, logLevel, hooks } = shown.settings
    expect([
      exitCode,
      { ...shown, settings: { home, databaseUrl, discordBotToken, leaseMs, logLevel, hooks } },
    ]).toEqual([
      0,
      {
        configFile: file,
        settings: {
          home: { value: '/home/ada/.aetheel', from: 'default' },
          databaseUrl: { value: 'postgres://ada:***@db/aetheel', from: 'file' },
          discordBotToken: { value: '***', from: 'file' },
          leaseMs: { value: 2000, from: 'environment', variable: 'LEASE_MS' },
          logLevel: { value: null, from: 'default' },
          hooks: { value: [], from: 'default' },
        },
        warnings: [],
      },
    ])
  })

  it('reports the problems if there are any', () => {
    const { file, ...options } = setup(`{ hook: [] }`)
    expect(configShow({ ...options, isJson: true })).toEqual({
      text: `${file}: hook: unknown key; did you mean "hooks"?`,
      exitCode: 1,
    })
  })
})

describe('masks', () => {
  it.each([
    ['postgres://db/aetheel', 'postgres://db/aetheel'],
    ['postgres://ada@db:5432/aetheel', 'postgres://ada@db:5432/aetheel'],
    ['postgres://ada:secret@db:5432/aetheel?sslmode=require', 'postgres://ada:***@db:5432/aetheel?sslmode=require'],
    ['postgres://ada:sec@r/e:t@db/aetheel', 'postgres://ada:***@db/aetheel'],
    ['postgres://:secret@db/aetheel', 'postgres://:***@db/aetheel'],
    ['postgres:///aetheel?host=/run&password=secret&user=ada', 'postgres:///aetheel?host=/run&password=***&user=ada'],
  ])('shows %s as %s', (url, shown) => {
    expect(maskDatabaseUrl(url)).toBe(shown)
  })

  it.each([
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/'],
    ['https://ada:secret@hooks.example/', 'https://hooks.example/***'],
    ['https://hooks.example/services/secret', 'https://hooks.example/***'],
    ['https://hooks.example?token=secret', 'https://hooks.example/***'],
  ])('shows the hook %s as %s', (url, shown) => {
    expect(maskHookUrl(url)).toBe(shown)
  })

  it('knows the secrets that a log must not show', () => {
    const hooks = [
      { on: ['error' as const], url: 'https://hooks.example/secret', timeoutMs: 1 },
      { on: ['error' as const], command: ['tell'], timeoutMs: 1 },
    ]
    const databaseUrl = 'postgres://ada:secret@db/aetheel'
    expect(secretsOfConfig({ databaseUrl, discordBotToken: 'token', hooks })).toEqual([
      databaseUrl,
      'token',
      'https://hooks.example/secret',
    ])
  })
})

function setup(content?: string): { cwd: string; file: string; environment: NodeJS.ProcessEnv } {
  const cwd = temporaryDirectory()
  const file = join(cwd, 'aetheel.json5')
  if (content !== undefined) writeFileSync(file, content)
  return { cwd, file, environment: { HOME: '/home/ada' } }
}
