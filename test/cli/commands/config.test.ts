import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import JSON5 from 'json5'
import { describe, expect, it } from 'vitest'
import { configCheck, configShow } from '../../../src/cli/commands/config.js'
import { duplicateKeys } from '../../../src/config/duplicate-keys.js'
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
      text: `No ${cwd}/aetheel.json5 and no /home/ada/.aetheel/aetheel.json5; using defaults and the environment: no problems`,
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
        `${file}: no errors, 7 warnings`,
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

  it('warns about keys that stand twice, with their lines', () => {
    const { file, ...options } = setup(`{
      agentBackend: 'pi', // agentBackend: 'codex',
      "queueMode": 'steer', /* queueMode:
      1, */ projects: {
        shop: { directory: '.', name: 'queueMode: {' },
        web: { directory: '.', 'name': "a", n\\u0061me: 'b' },
      },
      hooks: [{ on: 'error', command: ['x', 'x'] }, {
        on: 'error', command: ['y'],
        on: 'reply-sent',
      }],
      agentBackend: 'codex',
    }`)
    const { text, exitCode } = configCheck(options)
    expect([exitCode, text.split('\n')]).toEqual([
      0,
      [
        `${file}: no errors, 3 warnings`,
        `Warning: ${file}:6: projects.web.name is already set on line 6; the last one wins.`,
        `Warning: ${file}:10: hooks[1].on is already set on line 9; the last one wins.`,
        `Warning: ${file}:12: agentBackend is already set on line 2; the last one wins.`,
      ],
    ])
  })

  it('finds each key that stands twice, however the file is written', () => {
    const key = fc.constantFrom('a', 'b', '"a"', "'b'", '\\u0061', '"\\x62"')
    const gap = fc.constantFrom(' ', '\n', '\r\n', '/* a: { */', '// "b": [\n', '')
    const value = fc.constantFrom('1', '"a: {"', "'\\''", '[1, { c: 2 }, ]', '{}', '-.5e+3', 'Infinity')
    const entries = fc.array(fc.tuple(gap, key, gap, value), { maxLength: 8 })
    fc.assert(
      fc.property(entries, (written) => {
        const text = `{${written.map(([before, name, after, one]) => `${before}${name}${after}:${one}`).join(',')}}`
        const parsed = Object.keys(JSON5.parse<object>(text)).length
        expect([text, duplicateKeys(text).length]).toEqual([text, written.length - parsed])
      }),
    )
  })

  it('warns about misspelt variables, and about none that others need', () => {
    const { cwd } = setup('{}')
    const misspelt = {
      DISCORD_TOKEN: 'secret',
      LOGLEVEL: 'info',
      QUERY_TIMEOUT: '5',
      MAX_QUEUE_DEPHT: '5',
      http_port: '80',
      AETHEEL_HOOME: '/srv',
      AETHEEL_COLOUR: 'red',
      WHATSAPP_: '',
    }
    const { text } = configCheck({
      cwd,
      environment: { ...ORDINARY, ...misspelt, AETHEEL_HOME: cwd, AETHEEL_PORT: 'tcp://10.0.0.1:80' },
    })
    expect(text.split('\n').slice(1)).toEqual([
      'Warning: DISCORD_TOKEN: unknown variable; did you mean "DISCORD_BOT_TOKEN"?',
      'Warning: LOGLEVEL: unknown variable; did you mean "LOG_LEVEL"?',
      'Warning: QUERY_TIMEOUT: unknown variable; did you mean "QUERY_TIMEOUT_MS"?',
      'Warning: MAX_QUEUE_DEPHT: unknown variable; did you mean "MAX_QUEUE_DEPTH"?',
      'Warning: http_port: unknown variable; did you mean "HTTP_PORT"?',
      'Warning: AETHEEL_HOOME: unknown variable; did you mean "AETHEEL_HOME"?',
      'Warning: AETHEEL_COLOUR: unknown variable, which has no effect.',
    ])
  })

  it('warns about corrected values', () => {
    const { file, ...options } = setup(`{ backendMaxTurns: 0 }`)
    expect(configCheck(options)).toEqual({
      text: `${file}: no errors, 1 warning\nWarning: ${file}: backendMaxTurns must be a positive whole number, not 0; using 25.`,
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

/** What shells, desktops, service managers, containers, CI systems, tools and the agents set. */
const ORDINARY = Object.fromEntries(
  [
    'HOME USER LOGNAME SHELL PATH PWD OLDPWD SHLVL TERM COLORTERM LANG LC_ALL TZ TMPDIR EDITOR VISUAL PAGER MAIL DISPLAY LINES',
    'COLUMNS PROMPT_COMMAND PROMPT_DIRTRIM PS1 HISTFILE HISTSIZE LS_COLORS SESSION_MANAGER DESKTOP_SESSION XDG_SESSION_ID',
    'XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK SSH_CONNECTION GPG_AGENT_INFO WAYLAND_DISPLAY TERM_PROGRAM',
    'ITERM_SESSION_ID TERM_SESSION_ID WINDOWID TMUX TMUX_PANE STY NOTIFY_SOCKET INVOCATION_ID JOURNAL_STREAM LISTEN_FDS',
    'MEMORY_PRESSURE_WATCH SYSTEMD_EXEC_PID LOGS_DIRECTORY RUNTIME_DIRECTORY STATE_DIRECTORY CACHE_DIRECTORY',
    'HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy SSL_CERT_FILE NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE',
    'NODE_ENV NODE_OPTIONS NODE_PATH NVM_DIR npm_command npm_lifecycle_event npm_config_cache npm_package_name INIT_CWD PORT HOST',
    'KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT KUBERNETES_PORT_443_TCP_ADDR',
    'KUBECONFIG AETHEEL_SERVICE_HOST AETHEEL_SERVICE_PORT AETHEEL_SERVICE_PORT_HTTP AETHEEL_PORT_7433_TCP_PROTO',
    'BACKEND_SERVICE_HOST HOSTNAME CONTAINER_NAME DOCKER_HOST CI GITHUB_ACTIONS GITHUB_TOKEN RUNNER_OS AGENT_NAME AGENT_ID',
    'AGENT_VERSION AGENT_OS AGENT_TEMPDIRECTORY BUILD_ID JOB_NAME WORKSPACE GIT_SSH_COMMAND GIT_AUTHOR_NAME DATABASE_USER',
    'POSTGRES_PASSWORD PGHOST PGUSER REDIS_URL ANTHROPIC_API_KEY ANTHROPIC_MODEL CLAUDE_CONFIG_DIR CLAUDE_CODE_OAUTH_TOKEN',
    'IS_SANDBOX OPENAI_API_KEY CODEX_HOME CODEX_API_KEY GEMINI_API_KEY GEMINI_MODEL GOOGLE_CLOUD_PROJECT OPENCODE_CONFIG',
    'OPENCODE_SERVER_PASSWORD OPENCODE_SERVER_USERNAME OPENCODE_API_KEY OPENCODE_DISABLE_AUTOUPDATE PI_OFFLINE',
    'PI_CODING_AGENT_DIR AETHEEL_RUN_ID AETHEEL_OWNER_ID AETHEEL_POD_RUN_ID AETHEEL_HOOK AETHEEL_TOKEN AETHEEL_TEST_POSTGRES',
  ].flatMap((line) => line.split(' ').map((name) => [name, 'x'])),
)

function setup(content?: string): { cwd: string; file: string; environment: NodeJS.ProcessEnv } {
  const cwd = temporaryDirectory()
  const file = join(cwd, 'aetheel.json5')
  if (content !== undefined) writeFileSync(file, content)
  return { cwd, file, environment: { HOME: '/home/ada' } }
}
