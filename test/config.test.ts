import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backendConfig, findConfigFile, loadConfig } from '../src/config.js'
import { settingsSchema } from '../src/config/schema.js'
import { GatewayError } from '../src/errors.js'
import { asNobody } from './kit/permissions.js'
import { temporaryDirectory } from './kit/temporary-directory.js'

const HOME = { HOME: '/home/ada' }

const DEFAULTS = {
  agentBackend: 'claude',
  codeAgentDefault: 'claude',
  isAgentChosen: false,
  isDemoAgent: false,
  backendCliPath: 'claude',
  backendMaxTurns: 25,
  isMaxTurnsChosen: false,
  agentMode: 'auto',
  agentPermissions: 'allow',
  approvalTimeoutMs: 600_000,
  liveIdleMs: 600_000,
  liveMaxProcesses: 8,
  liveMaxMemoryMb: 4096,
  liveSpare: false,
  allowedTools: [],
  queryTimeoutMs: 1_800_000,
  messageTimeoutMs: 3_600_000,
  queryTimeoutRetries: 3,
  idleTimeoutMs: 600_000,
  workingDir: process.cwd(),
  agentEnvPass: [],
  maxConcurrentQueries: 5,
  maxQueueDepth: 100,
  queueMode: 'followup',
  maxWaitingCommands: 100,
  replyExpiryMs: 900_000,
  sessionIdleMs: 604_800_000,
  leaseMs: 30_000,
  drainTimeoutMs: 30_000,
  promptDir: '/home/ada/.aetheel/prompt',
  hooks: [],
  projects: [],
  discordGuilds: [],
  discordChannels: [],
  discordFooter: true,
  discordUsers: [],
  discordRoles: [],
  discordThreads: true,
  discordApiUrl: 'https://discord.com/api',
  attachmentMaxMb: 25,
  attachmentTypes: [
    ...['image/*', 'audio/*', 'video/*', 'text/*'],
    ...['application/pdf', 'application/x-pdf', 'application/json', 'application/x-json'],
    ...['application/xml', 'application/x-xml', 'application/yaml', 'application/x-yaml'],
    ...['application/zip', 'application/x-zip', 'application/x-zip-compressed'],
    ...['application/gzip', 'application/x-gzip'],
  ],
  projectRoots: ['/home/ada/aetheel-projects'],
  httpEnabled: true,
  httpHost: '127.0.0.1',
  httpPort: 7433,
  httpAllowedHosts: [],
  mediaRoots: [],
  opencodeEnabled: false,
  opencodeManaged: false,
  opencodeUrl: 'http://127.0.0.1:4096',
  opencodeUsername: 'opencode',
  kubectlPath: 'kubectl',
  kubernetesLabel: 'rdev.orchard9.ai/agent-provider',
  twilioApiUrl: 'https://api.twilio.com',
  whatsappPollSeconds: 5,
  home: '/home/ada/.aetheel',
  warnings: [],
}

const ALL_VARIABLES = {
  AGENT_BACKEND: 'opencode',
  BACKEND_CLI_PATH: '/opt/opencode',
  BACKEND_MODEL: 'anthropic/some-model',
  AGENT_MODE: 'live',
  AGENT_PERMISSIONS: 'ask',
  APPROVAL_TIMEOUT_MS: '60000',
  LIVE_IDLE_MS: '60000',
  LIVE_MAX_PROCESSES: '3',
  LIVE_MAX_MEMORY_MB: '1024',
  LIVE_SPARE: 'true',
  BACKEND_MAX_TURNS: '7',
  ALLOWED_TOOLS: ' read, Bash(git log,git show) ,,edit ',
  QUERY_TIMEOUT_MS: '1000',
  MESSAGE_TIMEOUT_MS: '2000',
  QUERY_TIMEOUT_RETRIES: '1',
  IDLE_TIMEOUT_MS: '0',
  WORKING_DIR: 'some/where',
  AGENT_ENV_PASS: 'GITHUB_TOKEN,NPM_*',
  LOG_LEVEL: 'debug',
  DATABASE_URL: 'postgresql://ada:secret@db.example/aetheel',
  MAX_CONCURRENT_QUERIES: '8',
  MAX_QUEUE_DEPTH: '3',
  QUEUE_MODE: 'collect',
  MAX_WAITING_COMMANDS: '4',
  REPLY_EXPIRY_MS: '60000',
  SESSION_IDLE_MS: '0',
  LEASE_MS: '1000',
  DRAIN_TIMEOUT_MS: '0',
  PROMPT_DIR: 'prompts',
  DISCORD_BOT_TOKEN: 'MTE.x-y_z.abc',
  DISCORD_OWNER_ID: '100000000000000001',
  DISCORD_GUILDS: '100000000000000002',
  DISCORD_CHANNELS: '100000000000000003, 100000000000000004',
  DISCORD_USERS: '100000000000000005',
  DISCORD_ROLES: '100000000000000006',
  DISCORD_THREADS: 'no',
  DISCORD_FOOTER: 'false',
  OUTPUT_CHANNEL_ID: '100000000000000007',
  DISCORD_API_URL: 'http://127.0.0.1:8080/discord/',
  ATTACHMENT_MAX_MB: '8',
  ATTACHMENT_TYPES: 'Image/*,application/pdf',
  CODE_AGENT_DEFAULT: 'claudecode',
  PROJECT_ROOTS: 'work,/srv/projects',
  TEMPLATE_DIR: 'templates',
  HTTP_ENABLED: 'yes',
  HTTP_HOST: '::1',
  HTTP_PORT: '0',
  HTTP_ALLOWED_HOSTS: 'Gateway.example, [fd00::1]:8443',
  MEDIA_ROOTS: 'media,/srv/media',
  OPENCODE_ENABLED: 'true',
  OPENCODE_MANAGED: 'no',
  OPENCODE_URL: 'http://127.0.0.1:4097/',
  OPENCODE_USERNAME: 'ada',
  OPENCODE_PASSWORD: 'a password',
  KUBECTL_PATH: 'bin/kubectl',
  KUBERNETES_CONTEXT: 'arn:aws:eks:eu-west-1:1:cluster/dev',
  KUBERNETES_NAMESPACE: 'agents',
  KUBERNETES_LABEL: 'example.com/agent',
  PUBLIC_URL: 'https://gateway.example/aetheel/',
  TWILIO_ACCOUNT_SID: 'AC0123456789abcdef0123456789abcdef',
  TWILIO_AUTH_TOKEN: 'a token',
  TWILIO_API_KEY: 'SK0123',
  TWILIO_API_SECRET: 'a secret',
  TWILIO_WHATSAPP_FROM: 'whatsapp:+14155238886',
  TWILIO_API_URL: 'http://127.0.0.1:9090/',
  WHATSAPP_POLL_SECONDS: '30',
  AETHEEL_HOME: 'data',
}

const ID_PROBLEM =
  'is not a Discord id, which has 15 to 21 digits: turn on Developer Mode in Discord, right-click, choose Copy ID'
const QUOTES_PROBLEM = 'put it in quotes: as a number, a Discord id loses its last digits'

const KNOWN = 'claude, codex, gemini, opencode, pi'

describe('loadConfig from the environment', () => {
  it('has a default for everything', () => {
    expect(loadConfig(HOME)).toEqual(DEFAULTS)
  })

  it("keeps its data in the user's home directory if the environment has none", () => {
    expect(loadConfig({}).home).toBe(join(homedir(), '.aetheel'))
  })

  it('reads every variable', () => {
    expect(loadConfig(ALL_VARIABLES)).toEqual({
      isAgentChosen: true,
      isDemoAgent: false,
      agentBackend: 'opencode',
      backendCliPath: '/opt/opencode',
      backendModel: 'anthropic/some-model',
      agentMode: 'live',
      agentPermissions: 'ask',
      approvalTimeoutMs: 60_000,
      liveIdleMs: 60_000,
      liveMaxProcesses: 3,
      liveMaxMemoryMb: 1024,
      liveSpare: true,
      backendMaxTurns: 7,
      isMaxTurnsChosen: true,
      allowedTools: ['read', 'Bash(git log,git show)', 'edit'],
      queryTimeoutMs: 1000,
      messageTimeoutMs: 2000,
      queryTimeoutRetries: 1,
      idleTimeoutMs: 0,
      workingDir: resolve('some/where'),
      agentEnvPass: ['GITHUB_TOKEN', 'NPM_*'],
      logLevel: 'debug',
      databaseUrl: 'postgresql://ada:secret@db.example/aetheel',
      maxConcurrentQueries: 8,
      maxQueueDepth: 3,
      queueMode: 'collect',
      maxWaitingCommands: 4,
      replyExpiryMs: 60_000,
      sessionIdleMs: 0,
      leaseMs: 1000,
      drainTimeoutMs: 0,
      promptDir: resolve('prompts'),
      hooks: [],
      projects: [],
      discordBotToken: 'MTE.x-y_z.abc',
      discordOwnerId: '100000000000000001',
      discordGuilds: ['100000000000000002'],
      discordChannels: ['100000000000000003', '100000000000000004'],
      discordUsers: ['100000000000000005'],
      discordRoles: ['100000000000000006'],
      discordThreads: false,
      discordFooter: false,
      outputChannelId: '100000000000000007',
      discordApiUrl: 'http://127.0.0.1:8080/discord',
      attachmentMaxMb: 8,
      attachmentTypes: ['image/*', 'application/pdf'],
      codeAgentDefault: 'claude',
      projectRoots: [resolve('work'), '/srv/projects'],
      templateDir: resolve('templates'),
      httpEnabled: true,
      httpHost: '::1',
      httpPort: 0,
      httpAllowedHosts: ['gateway.example', '[fd00::1]:8443'],
      mediaRoots: [resolve('media'), '/srv/media'],
      opencodeEnabled: true,
      opencodeManaged: false,
      opencodeUrl: 'http://127.0.0.1:4097',
      opencodeUsername: 'ada',
      opencodePassword: 'a password',
      kubectlPath: resolve('bin/kubectl'),
      kubernetesContext: 'arn:aws:eks:eu-west-1:1:cluster/dev',
      kubernetesNamespace: 'agents',
      kubernetesLabel: 'example.com/agent',
      publicUrl: 'https://gateway.example/aetheel',
      twilioAccountSid: 'AC0123456789abcdef0123456789abcdef',
      twilioAuthToken: 'a token',
      twilioApiKey: 'SK0123',
      twilioApiSecret: 'a secret',
      twilioWhatsappFrom: '+14155238886',
      twilioApiUrl: 'http://127.0.0.1:9090',
      whatsappPollSeconds: 30,
      home: resolve('data'),
      warnings: ['TWILIO_ACCOUNT_SID: nobody can write yet: add your number to inbound.reply.allowFrom.'],
    })
  })

  it('takes an empty variable as not set', () => {
    const { AGENT_BACKEND: _, ...others } = ALL_VARIABLES
    const empty = Object.fromEntries(Object.keys(others).map((name) => [name, '']))
    expect(loadConfig({ ...empty, ...HOME })).toEqual(DEFAULTS)
  })

  it('knows the tilde, which no shell has replaced', () => {
    const paths = {
      AETHEEL_HOME: '~/data',
      WORKING_DIR: '~',
      PROMPT_DIR: '~/prompts',
      PROJECT_ROOTS: '~/src,~',
      TEMPLATE_DIR: '~/templates',
      BACKEND_CLI_PATH: '~/bin/claude',
    }
    expect(loadConfig({ ...HOME, ...paths })).toEqual({
      ...DEFAULTS,
      isAgentChosen: true,
      home: '/home/ada/data',
      workingDir: '/home/ada',
      promptDir: '/home/ada/prompts',
      projectRoots: ['/home/ada/src', '/home/ada'],
      templateDir: '/home/ada/templates',
      backendCliPath: '/home/ada/bin/claude',
    })
  })

  it('calls the agent by its own name unless its path is set', () => {
    expect(loadConfig({ ...HOME, AGENT_BACKEND: 'gemini' })).toEqual({
      ...DEFAULTS,
      agentBackend: 'gemini',
      codeAgentDefault: 'gemini',
      backendCliPath: 'gemini',
    })
  })

  it.each(['0', '-1', '2.5', 'many', 'Infinity', 'NaN', '5 turns'])(
    'replaces BACKEND_MAX_TURNS=%j by 25 and warns',
    (value) => {
      const warning = `BACKEND_MAX_TURNS must be a positive whole number, not ${JSON.stringify(value)}; using 25.`
      expect(loadConfig({ ...HOME, BACKEND_MAX_TURNS: value })).toEqual({ ...DEFAULTS, warnings: [warning] })
    },
  )

  it('understands claudecode wherever an agent is named', () => {
    const path = file(`{
      projects: { shop: { directory: '/shop', backend: 'claudecode' } },
      inbound: { reply: { mode: 'command', agent: { kind: 'claudecode' } } },
    }`)
    const { agentBackend, backendCliPath, projects, inbound } = loadConfig(
      { ...HOME, AGENT_BACKEND: 'claudecode' },
      path,
    )
    expect([agentBackend, backendCliPath, projects[0]?.backend, inbound?.reply.agent?.kind]).toEqual(
      Array.from({ length: 4 }, () => 'claude'),
    )
  })

  it.each(['Claudecode', 'Claude', '', ' claude', 'toString', 'constructor', '__proto__'])(
    'refuses AGENT_BACKEND=%j with the valid names',
    (name) => {
      const [problem = '', ...more] = problemsOf({ AGENT_BACKEND: name })
      const sentence = `AGENT_BACKEND: Unknown backend "${name}". Known: ${KNOWN}, demo`
      expect([problem.replace(/; did you mean "claude"\?$/, ''), more]).toEqual([sentence, []])
    },
  )

  it('knows the demo agent only where the agent that answers is named', () => {
    expect(problemsOf({ AGENT_BACKEND: 'dmo', CODE_AGENT_DEFAULT: 'demo' })).toEqual([
      `AGENT_BACKEND: Unknown backend "dmo". Known: ${KNOWN}, demo; did you mean "demo"?`,
      `CODE_AGENT_DEFAULT: Unknown backend "demo". Known: ${KNOWN}`,
    ])
  })

  it('reports every problem at once', () => {
    const environment = { AGENT_BACKEND: 'nope', QUERY_TIMEOUT_MS: 'soon', IDLE_TIMEOUT_MS: '-5', LOG_LEVEL: 'loud' }
    expect(problemsOf(environment)).toEqual([
      `AGENT_BACKEND: Unknown backend "nope". Known: ${KNOWN}, demo`,
      'QUERY_TIMEOUT_MS: must be a whole number, 1 or more, not "soon"',
      'IDLE_TIMEOUT_MS: must be a whole number, 0 or more, not "-5"',
      'LOG_LEVEL: must be one of debug, info, warn, error, silent, not "loud"',
    ])
  })

  it.each([
    ['QUERY_TIMEOUT_MS', ['0', '-1', '1.5', 'Infinity', '0x', '12h', '99999999999999999999']],
    ['MAX_CONCURRENT_QUERIES', ['0', '1001', 'all']],
    ['MAX_QUEUE_DEPTH', ['0', '-1']],
    ['MAX_WAITING_COMMANDS', ['0', '-1']],
    ['REPLY_EXPIRY_MS', ['0', '99999999999999999999']],
    ['SESSION_IDLE_MS', ['-1', 'never']],
    ['LEASE_MS', ['999', '2147483648']],
    ['DRAIN_TIMEOUT_MS', ['-1', '2147483648']],
    ['ATTACHMENT_MAX_MB', ['0', '501', '2.5']],
    ['HTTP_PORT', ['-1', '65536', 'http', '80.5']],
  ])('refuses a %s out of its range', (name, values) => {
    expect(values.map((value) => problemsOf({ [name]: value }))).toEqual(
      values.map((value) => [
        expect.stringMatching(new RegExp(`^${name}: must be a whole number.*, not "?${value}"?$`)),
      ]),
    )
  })

  it('refuses an element of ALLOWED_TOOLS that is more than one tool', () => {
    expect(problemsOf({ ALLOWED_TOOLS: 'Read, Read(x) Bash Read(y)' })).toEqual([
      expect.stringMatching(/^ALLOWED_TOOLS: invalid tool "Read\(x\) Bash Read\(y\)": write one tool per element/),
    ])
  })

  it.each(['mysql://ada:hunter2@db/x', 'hunter2', 'postgres://', 'postgres://ada:hunter2@db:port/x', '/run/hunter2'])(
    'refuses DATABASE_URL=%s without repeating it',
    (url) => {
      expect(problemsOf({ DATABASE_URL: url })).toEqual([
        'DATABASE_URL: must be a URL such as postgres://user:password@host:5432/name',
      ])
    },
  )

  it.each([
    'postgres:///aetheel',
    'postgres://ada:secret@/aetheel?host=/run/postgresql',
    'postgresql://%2Frun/aetheel',
  ])('takes DATABASE_URL=%s', (url) => {
    expect(loadConfig({ ...HOME, DATABASE_URL: url })).toEqual({ ...DEFAULTS, databaseUrl: url })
  })
})

describe('loadConfig of Discord', () => {
  it.each([
    ...['true', 'TRUE', '1', 'yes', 'Yes'].map((value) => [value, true] as const),
    ...['false', 'False', '0', 'no', 'NO'].map((value) => [value, false] as const),
  ])('takes DISCORD_THREADS=%s as %s', (value, discordThreads) => {
    expect(loadConfig({ ...HOME, DISCORD_THREADS: value })).toEqual({ ...DEFAULTS, discordThreads })
  })

  it.each(['maybe', '2', 'on', ' true'])('refuses DISCORD_THREADS=%j', (value) => {
    expect(problemsOf({ DISCORD_THREADS: value })).toEqual([
      `DISCORD_THREADS: must be true or false, not ${JSON.stringify(value)}`,
    ])
  })

  it.each([
    ['Bot MTE.abc', 'must be only the token, without "Bot " before it'],
    ['bot\tMTE.abc', 'must be only the token, without "Bot " before it'],
    ['MTE.abc\n', 'must not contain spaces or line breaks: copy only the token'],
    ['MTE. abc', 'must not contain spaces or line breaks: copy only the token'],
  ])('refuses DISCORD_BOT_TOKEN=%j without repeating it', (token, problem) => {
    expect(problemsOf({ DISCORD_BOT_TOKEN: token })).toEqual([`DISCORD_BOT_TOKEN: ${problem}`])
  })

  it.each(['ada', '12345678901234', '1234567890123456789012', '-10000000000000001', '<@100000000000000001>'])(
    'refuses %j as an id, alone and in a list',
    (id) => {
      const list = `100000000000000001,${id}`
      expect(problemsOf({ DISCORD_OWNER_ID: id, OUTPUT_CHANNEL_ID: id, DISCORD_GUILDS: list })).toEqual([
        `DISCORD_OWNER_ID: "${id}" ${ID_PROBLEM}`,
        `DISCORD_GUILDS: "${id}" ${ID_PROBLEM}`,
        `OUTPUT_CHANNEL_ID: "${id}" ${ID_PROBLEM}`,
      ])
    },
  )

  it('reports unquoted ids, and other invalid values', () => {
    const path = file(`{
      discordOwnerId: 100000000000000001, discordGuilds: 100000000000000001, discordChannels: ['x', 100000000000000001],
      discordUsers: 'y, 100000000000000001', discordRoles: {}, discordThreads: 'true', outputChannelId: true,
      projects: { web: { directory: '.', discordChannels: [100000000000000001] } },
    }`)
    expect(problemsOf({}, path).map((problem) => problem.replace(`${path}: `, ''))).toEqual([
      `projects.web.discordChannels[0]: ${QUOTES_PROBLEM}`,
      `discordOwnerId: ${QUOTES_PROBLEM}`,
      `discordGuilds: ${QUOTES_PROBLEM}`,
      `discordChannels[0]: "x" ${ID_PROBLEM}`,
      `discordChannels[1]: ${QUOTES_PROBLEM}`,
      `discordUsers[0]: "y" ${ID_PROBLEM}`,
      'discordRoles: must be a list of ids, each in quotes',
      'discordThreads: must be true or false, not "true"',
      'outputChannelId: must be a string',
    ])
  })

  it('refuses a channel in two projects and names both', () => {
    const path = file(`{ projects: {
      web: { directory: '.', discordChannels: ['100000000000000001', '100000000000000001'] },
      api: { directory: '.', discordChannels: ['100000000000000002', '100000000000000001'] },
    } }`)
    expect(problemsOf({}, path)).toEqual([
      `${path}: projects.api.discordChannels[1]: channel 100000000000000001 already belongs to project "web": remove it from "web" or from "api"`,
    ])
  })

  it.each([
    ...['discord.com/api', 'ftp://discord.com/api', 'https://', 'https://ada:secret@discord.com/api', 'https://x/a b'],
    ...['https://discord.com/api?x=1', 'https://discord.com/api/v10', 'https://discord.com/api/v10/'],
  ])('refuses DISCORD_API_URL=%s without repeating it', (url) => {
    expect(problemsOf({ DISCORD_API_URL: url })).toEqual([
      'DISCORD_API_URL: must be a URL such as https://discord.com/api, without user, query or version',
    ])
  })

  it.each(['image', '*/*', 'image/', '/png', 'image/*/x', 'text/plain; charset=utf-8'])(
    'refuses ATTACHMENT_TYPES=%s',
    (type) => {
      expect(problemsOf({ ATTACHMENT_TYPES: `text/plain,${type}` })).toEqual([
        `ATTACHMENT_TYPES: "${type}" is not a MIME type, such as image/png or image/*`,
      ])
    },
  )
})

describe('loadConfig of the service', () => {
  it.each([
    [{}, 'claude', 'claude'],
    [{ AGENT_BACKEND: 'codex' }, 'codex', 'codex'],
    [{ CODE_AGENT_DEFAULT: 'opencode' }, 'opencode', 'opencode'],
    [{ CODE_AGENT_DEFAULT: 'claudecode' }, 'claude', 'claude'],
    [{ AGENT_BACKEND: 'pi', CODE_AGENT_DEFAULT: 'claudecode' }, 'pi', 'claude'],
  ])('takes from %j %s for channels and %s for new projects', (environment, agentBackend, codeAgentDefault) => {
    expect(loadConfig({ ...HOME, ...environment })).toEqual({
      ...DEFAULTS,
      agentBackend,
      codeAgentDefault,
      backendCliPath: agentBackend,
    })
  })

  it('refuses an unknown agent for new projects', () => {
    expect(problemsOf({ CODE_AGENT_DEFAULT: 'nope' })).toEqual([
      `CODE_AGENT_DEFAULT: Unknown backend "nope". Known: ${KNOWN}`,
    ])
  })

  it.each(['http://127.0.0.1', '127.0.0.1:80', 'a b', '-x', 'x..y', '[::1]', '*'])('refuses HTTP_HOST=%s', (host) => {
    expect(problemsOf({ HTTP_HOST: host })).toEqual([
      'HTTP_HOST: must be an address or a host name, such as 127.0.0.1, without http:// or a port',
    ])
  })

  it.each(['localhost', '0.0.0.0', '::', 'gateway.example'])('takes HTTP_HOST=%s', (httpHost) => {
    expect(loadConfig({ ...HOME, HTTP_HOST: httpHost })).toEqual({ ...DEFAULTS, httpHost })
  })

  it.each([
    'https://x.example',
    'x.example/',
    '*',
    '*.example',
    'x.example:',
    'x.example:70000',
    '::1',
    '[::g]',
    'a@b',
  ])('refuses HTTP_ALLOWED_HOSTS=%s', (host) => {
    expect(problemsOf({ HTTP_ALLOWED_HOSTS: `y.example,${host}` })).toEqual([
      `HTTP_ALLOWED_HOSTS: "${host}" is not a host, such as gateway.example or gateway.example:8443`,
    ])
  })

  it('refuses roots and hosts that are no lists', () => {
    const path = file(`{ projectRoots: [], httpAllowedHosts: [5], httpEnabled: 'yes', templateDir: '' }`)
    expect(problemsOf({}, path).map((problem) => problem.replace(`${path}: `, ''))).toEqual([
      'projectRoots: must have at least one entry',
      'templateDir: must not be empty',
      'httpEnabled: must be true or false, not "yes"',
      'httpAllowedHosts[0]: must be a string',
    ])
  })
})

describe('loadConfig of the demo agent', () => {
  it('has it stand in for Claude Code', () => {
    expect(loadConfig({ ...HOME, AGENT_BACKEND: 'demo' })).toEqual({
      ...DEFAULTS,
      isDemoAgent: true,
      backendCliPath: resolve('demo/agent.mjs'),
    })
  })

  it('refuses another executable beside it', () => {
    expect(() => loadConfig({ ...HOME, AGENT_BACKEND: 'demo', BACKEND_CLI_PATH: 'claude' })).toThrow(
      'BACKEND_CLI_PATH: cannot be used with agentBackend demo: remove one of the two',
    )
  })
})

describe('loadConfig from a file', () => {
  it('takes one of the projects for the default', () => {
    const path = file(`{ projects: { web: { directory: '.' } }, defaultProject: 'web' }`)
    const wrong = file(`{ projects: { web: { directory: '.' } }, defaultProject: 'wbe' }`)
    expect(loadConfig(HOME, path).defaultProject).toBe('web')
    expect(() => loadConfig(HOME, wrong)).toThrow(
      `${wrong}: defaultProject: there is no project "wbe" in "projects". Known: web`,
    )
  })

  it('reads JSON5', () => {
    const path = file(`{
      // which agent
      agentBackend: 'pi', backendMaxTurns: 3, allowedTools: ['read', 'bash'],
      queryTimeoutMs: 5000, logLevel: 'silent', $schema: './aetheel.schema.json',
    }`)
    expect(loadConfig(HOME, path)).toEqual({
      ...DEFAULTS,
      agentBackend: 'pi',
      codeAgentDefault: 'pi',
      backendCliPath: 'pi',
      backendMaxTurns: 3,
      isMaxTurnsChosen: true,
      allowedTools: ['read', 'bash'],
      queryTimeoutMs: 5000,
      logLevel: 'silent',
      configFile: path,
    })
  })

  it('begins its relative paths at the directory of the file', () => {
    const path = file(`{
      workingDir: '../web', promptDir: 'prompts', backendCliPath: './bin/claude',
      projectRoots: ['.', '../web'], templateDir: './templates',
      hooks: [{ on: 'error', command: ['./tell.sh', './x'] }, { on: 'error', command: ['tell'] }],
      projects: { web: { directory: '.' }, api: { directory: '~/api' } },
    }`)
    const directory = dirname(path)
    expect(loadConfig(HOME, path)).toEqual({
      ...DEFAULTS,
      isAgentChosen: true,
      workingDir: resolve(directory, '../web'),
      promptDir: join(directory, 'prompts'),
      projectRoots: [directory, resolve(directory, '../web')],
      templateDir: join(directory, 'templates'),
      backendCliPath: join(directory, 'bin/claude'),
      hooks: [
        { on: ['error'], command: [join(directory, 'tell.sh'), './x'], timeoutMs: 10_000 },
        { on: ['error'], command: ['tell'], timeoutMs: 10_000 },
      ],
      projects: [
        { id: 'web', directory },
        { id: 'api', directory: '/home/ada/api' },
      ],
      configFile: path,
    })
  })

  it('begins the relative paths of the environment at the current directory all the same', () => {
    const path = file(`{ workingDir: 'a', promptDir: 'b' }`)
    expect(loadConfig({ ...HOME, WORKING_DIR: 'c', PROMPT_DIR: 'd' }, path)).toEqual({
      ...DEFAULTS,
      workingDir: resolve('c'),
      promptDir: resolve('d'),
      configFile: path,
    })
  })

  it('reads hooks and projects with everything they may have', () => {
    const path = file(`{
      hooks: [{ on: ['run-started', 'run-finished'], url: 'https://hooks.example/x', timeoutMs: 500 }],
      projects: {
        Web_1: {
          directory: '/srv/web', backend: 'codex', model: 'some-model', allowedTools: 'read,edit',
          queryTimeoutMs: 1000, maxTurns: 2, discordChannels: ['100000000000000001'], name: 'The web', isUntrusted: true,
        },
      },
    }`)
    expect(loadConfig(HOME, path)).toEqual({
      ...DEFAULTS,
      hooks: [{ on: ['run-started', 'run-finished'], url: 'https://hooks.example/x', timeoutMs: 500 }],
      projects: [
        {
          id: 'Web_1',
          directory: '/srv/web',
          backend: 'codex',
          model: 'some-model',
          allowedTools: ['read', 'edit'],
          queryTimeoutMs: 1000,
          maxTurns: 2,
          discordChannels: ['100000000000000001'],
          name: 'The web',
          isUntrusted: true,
        },
      ],
      configFile: path,
    })
  })

  it('stands back behind the environment', () => {
    const path = file(`{ agentBackend: 'pi', backendModel: 'from-file', logLevel: 'nonsense' }`)
    expect(loadConfig({ ...HOME, AGENT_BACKEND: 'codex', LOG_LEVEL: 'warn' }, path)).toEqual({
      ...DEFAULTS,
      agentBackend: 'codex',
      codeAgentDefault: 'codex',
      backendCliPath: 'codex',
      backendModel: 'from-file',
      logLevel: 'warn',
      configFile: path,
    })
  })

  it('reports every problem at every depth at once, with its path', () => {
    const path = file(`{
      agentBackend: 'nope', agentbackend: 'pi', DATABASE_URL: 'x', toString: 1, __proto__: 2, 'a b': 3, '\\u001b[1m': 4,
      workingDir: '', allowedTools: ['read', 5], backendModel: 6, agentEnvPass: {}, databaseUrl: 'hunter2',
      hooks: [
        { on: [] },
        { on: ['error', 'eror'], comand: ['x'], command: [''], url: 'ftp://ada:hunter2@x', timeoutMs: 300001 },
        { on: 7, command: [] },
        'error',
      ],
      projects: { web: { directry: '.', backend: 'nope', allowedTools: ['Read Bash'], maxTurns: 0 }, '-web': { directory: '.' }, toString: 8 },
    }`)
    const names = 'message-received, run-started, run-finished, reply-sent, error'
    expect(problemsOf({ LOG_LEVEL: 'loud' }, path).map((problem) => problem.replace(`${path}: `, ''))).toEqual([
      `agentBackend: Unknown backend "nope". Known: ${KNOWN}, demo`,
      'backendModel: must be a string',
      'allowedTools[1]: must be a string',
      'workingDir: must not be empty',
      'agentEnvPass: must be a string or a list of strings',
      'LOG_LEVEL: must be one of debug, info, warn, error, silent, not "loud"',
      'databaseUrl: must be a URL such as postgres://user:password@host:5432/name',
      'hooks[0].on: must have at least one entry',
      'hooks[0]: needs either "command" or "url", not both',
      `hooks[1].on[1]: must be one of ${names}, not "eror"; did you mean "error"?`,
      'hooks[1].command[0]: must name an executable',
      'hooks[1].url: must be a URL that begins with http:// or https://',
      'hooks[1].timeoutMs: must be a whole number from 1 to 300000, not 300001',
      'hooks[1].comand: unknown key; did you mean "command"?',
      'hooks[1]: needs either "command" or "url", not both',
      `hooks[2].on: must be one of ${names}, or a list of them`,
      'hooks[2].command: must have at least one entry',
      'hooks[3]: must be an object',
      `projects.web.backend: Unknown backend "nope". Known: ${KNOWN}`,
      expect.stringContaining('projects.web.allowedTools[0]: invalid tool "Read Bash"'),
      'projects.web.maxTurns: must be a whole number, 1 or more, not 0',
      'projects.web.directry: unknown key; did you mean "directory"?',
      'projects.web.directory: is missing: set the directory in which the agent works, or the pod with "pod"',
      'projects.-web: a project id has 1 to 64 letters, digits, "-" and "_", and starts with a letter or a digit',
      'projects.toString: must be an object',
      'agentbackend: unknown key; did you mean "agentBackend"?',
      'DATABASE_URL: unknown key; did you mean "databaseUrl"?',
      expect.stringContaining('toString: unknown key. Known: $schema, agentBackend, backendCliPath'),
      expect.stringContaining('__proto__: unknown key. Known: '),
      expect.stringContaining('["a b"]: unknown key. Known: '),
      expect.stringContaining('["\\u001b[1m"]: unknown key. Known: '),
    ])
  })

  it('takes projects in pods, and fills in the defaults', () => {
    const path = file(`{
      kubernetesContext: 'dev', kubernetesNamespace: 'agents',
      projects: {
        web: { pod: { name: 'web-0' } },
        api: {
          pod: { context: 'live', namespace: 'api', selector: 'app=api,tier in (a, b)', container: 'agent' },
          directory: '/srv/api',
        },
      },
    }`)
    expect(loadConfig(HOME, path).projects).toEqual([
      { id: 'web', directory: '/workspace', pod: { context: 'dev', namespace: 'agents', name: 'web-0' } },
      {
        id: 'api',
        directory: '/srv/api',
        pod: { context: 'live', namespace: 'api', selector: 'app=api,tier in (a, b)', container: 'agent' },
      },
    ])
  })

  it('refuses pods with invalid names, and says what is wrong with each', () => {
    const path = file(`{
      kubernetesContext: '--kubeconfig=/etc/x', kubernetesNamespace: 'A', kubernetesLabel: '-a',
      projects: {
        a: { pod: {}, isUntrusted: true },
        b: { pod: { name: 'web-0', selector: 'app=web' } },
        c: { pod: { name: '-n' }, directory: 'web' },
        d: { pod: { selector: '--all', nmespace: 'x', container: 'a b' } },
        e: { pod: 'web-0' },
      },
    }`)
    expect(problemsOf({}, path).map((problem) => problem.replace(`${path}: `, ''))).toEqual([
      'projects.a.pod: needs either "name" or "selector", not both',
      'projects.a.isUntrusted: cannot be set for a project in a pod: the pod itself is the sandbox',
      'projects.b.pod: needs either "name" or "selector", not both',
      'projects.c.pod.name: "-n" is not a pod name: use lowercase letters, digits, "-" and "."',
      'projects.c.directory: must be an absolute path in the pod, such as /workspace',
      'projects.d.pod.selector: must be labels, such as app=web,tier=dev',
      'projects.d.pod.container: "a b" is not a container name: use lowercase letters, digits, "-" and "."',
      'projects.d.pod.nmespace: unknown key; did you mean "namespace"?',
      'projects.e.pod: must be an object',
      'kubernetesContext: "--kubeconfig=/etc/x" is not a kubectl context: list them with "kubectl config get-contexts"',
      'kubernetesNamespace: "A" is not a namespace: use lowercase letters, digits, "-" and "."',
      'kubernetesLabel: "-a" is not a label key, such as example.com/agent',
    ])
  })

  it('stops listing problems where nobody would read on', () => {
    const path = file(`{ ${Array.from({ length: 150 }, (_, index) => `key${index}: 1`).join(', ')} }`)
    const problems = problemsOf({}, path)
    expect([problems.length, problems.at(-1)]).toEqual([101, '… and 50 more problems'])
  })

  it.each([
    ...['true', 'null', '""', '"soon"', '"5"'].map((value) => [value, value] as const),
    ['[]', 'a list'] as const,
    ['{}', 'an object'] as const,
  ])('refuses queryTimeoutMs: %s', (value, shown) => {
    const path = file(`{ queryTimeoutMs: ${value} }`)
    expect(problemsOf({}, path)).toEqual([`${path}: queryTimeoutMs: must be a whole number, 1 or more, not ${shown}`])
  })

  it.each([
    ['true', 'true'],
    ['[]', 'a list'],
    ['"x"', '"x"'],
    ['0', '0'],
    ['Infinity', 'Infinity'],
    ['{}', 'an object'],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'a list'],
  ])('replaces backendMaxTurns: %.10s by 25 and warns', (value, quoted) => {
    const path = file(`{ backendMaxTurns: ${value} }`)
    expect(loadConfig(HOME, path)).toEqual({
      ...DEFAULTS,
      configFile: path,
      warnings: [`${path}: backendMaxTurns must be a positive whole number, not ${quoted}; using 25.`],
    })
  })

  it('does not mind a byte order mark', () => {
    const path = file(`\uFEFF{ agentBackend: 'claude' }`)
    expect(loadConfig(HOME, path)).toEqual({ ...DEFAULTS, configFile: path })
  })

  it.each([
    ['that is empty', ' \n', ": is empty; write an object such as { agentBackend: 'claude' } into it, or remove it"],
    ['that holds a list', '[]', ": must contain one object, such as { agentBackend: 'claude' }"],
    ['that holds a word', '"claude"', ": must contain one object, such as { agentBackend: 'claude' }"],
    ['of 10 MB', ' '.repeat(10_000_000), ': is larger than 1 MB; is this the configuration file?'],
    ['in another encoding', Buffer.from('{}', 'utf16le').fill(0xff, 0, 1), ': is not UTF-8 text; save it as UTF-8'],
  ])('refuses one %s', (_, content, problem) => {
    const path = file(content)
    expect(problemsOf({}, path)).toEqual([`${path}${problem}`])
  })

  it.each([
    [
      'breaks off',
      "{\n  agentBackend: 'pi'",
      [
        ':2:21: invalid end of input',
        "      agentBackend: '**'",
        '                        ^',
        'Probably a closing bracket } or ] is missing.',
      ],
    ],
    [
      'lacks quotes',
      '{\n  agentBackend: claude\n}',
      [
        ":2:17: invalid character 'c'",
        '      agentBackend: ******',
        '                    ^',
        'Probably the text needs quotes.',
      ],
    ],
    [
      'lacks a comma',
      "{\n  agentBackend: 'pi' // mine\n\tworkingDir: '.'\n}",
      [":3:2: invalid character 'w'", "    \tworkingDir: '*'", '    \t^', 'Probably a comma is missing before it.'],
    ],
    [
      'lacks a quote',
      "{\n  agentBackend: 'pi,\n}",
      [
        ":2:21: invalid character '\\n'",
        "      agentBackend: '**,",
        '                        ^',
        'Probably a closing quote is missing.',
      ],
    ],
    [
      'has a secret in a value that is not called one',
      "{\n  databaseUrl: 'postgres://aetheel:hunter2@db/x,\n}",
      [
        ":2:49: invalid character '\\n'",
        "      databaseUrl: '********:*********:************,",
        '                                                    ^',
        'Probably a closing quote is missing.',
      ],
    ],
    [
      'has a secret there',
      "{ discordBotToken: 'MTE.x.y' workingDir: '.' }",
      [
        ":1:30: invalid character 'w'",
        "    { discordBotToken: '*******' **********: '*' }",
        '                                 ^',
        'Probably a comma is missing before it.',
      ],
    ],
  ])('tells of one that %s what is probably wrong, and where', (_, content, problem) => {
    const path = file(content)
    expect(problemsOf({}, path).join('\n')).toEqual(`${path}${problem.join('\n')}`)
  })

  it('names the value that was probably meant', () => {
    expect(problemsOf({ AGENT_BACKEND: 'cluade', QUEUE_MODE: 'colect', LOG_LEVEL: 'loud' })).toEqual([
      expect.stringMatching(/^AGENT_BACKEND: Unknown backend "cluade"\. Known: .*; did you mean "claude"\?$/),
      expect.stringMatching(/^LOG_LEVEL: must be one of [a-z, ]+, not "loud"$/),
      expect.stringMatching(/^QUEUE_MODE: must be one of .*, not "colect"; did you mean "collect"\?$/),
    ])
  })

  it('refuses one that is not there', () => {
    expect(problemsOf({}, '/nowhere/aetheel.json5')).toEqual([
      '/nowhere/aetheel.json5: does not exist; create it, or name another file with --config',
    ])
  })

  it('refuses a directory', () => {
    const path = temporaryDirectory()
    expect(problemsOf({}, path)).toEqual([`${path}: is a directory; name the file in it with --config`])
  })

  it('refuses one that it may not read', async () => {
    const path = file('{}')
    chmodSync(dirname(path), 0o755)
    chmodSync(path, 0)
    expect(await asNobody(() => problemsOf({}, path))).toEqual([
      `${path}: cannot be read: permission denied; give the gateway's user access, or name another file with --config`,
    ])
  })

  it('either accepts a file or says what is wrong with it, whatever it contains', () => {
    const path = file('{}')
    const keys = fc.constantFrom(...Object.keys(settingsSchema.shape), 'hooky', '__proto__')
    const hook = fc.dictionary(fc.constantFrom('on', 'command', 'url', 'timeoutMs', 'x'), fc.jsonValue())
    const values = fc.oneof(fc.jsonValue(), fc.array(hook), fc.dictionary(fc.string(), hook))
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.dictionary(keys, values)), (settings) => {
        writeFileSync(path, JSON.stringify(settings))
        for (const problem of problemsOf({}, path)) expect(problem).toMatch(/: \S/)
      }),
      { numRuns: 200 },
    )
  })

  it('names the key that was meant when one letter is wrong', () => {
    const path = file('{}')
    const known = Object.keys(settingsSchema.shape)
    const mistakes = fc
      .tuple(fc.constantFrom(...known), fc.nat(), fc.constantFrom('x', 'Q', '_', ''), fc.constantFrom(0, 1))
      .map(([key, position, letter, removed]) => {
        const index = position % key.length
        return { key, wrong: key.slice(0, index) + letter + key.slice(index + removed) }
      })
      .filter(({ wrong }) => !known.includes(wrong))
    fc.assert(
      fc.property(mistakes, ({ key, wrong }) => {
        writeFileSync(path, JSON.stringify({ [wrong]: 1 }))
        expect(problemsOf({}, path)).toEqual([`${path}: ${wrong}: unknown key; did you mean "${key}"?`])
      }),
      { numRuns: 200 },
    )
  })
})

describe('findConfigFile', () => {
  it('takes the one in the current directory before the one in the data directory', () => {
    const { cwd, home } = places({ isInCwd: true, isInHome: true })
    expect(findConfigFile({ AETHEEL_HOME: home }, cwd)).toBe(join(cwd, 'aetheel.json5'))
  })

  it('takes the one in the data directory if the current directory has none', () => {
    const { cwd, home } = places({ isInCwd: false, isInHome: true })
    expect(findConfigFile({ AETHEEL_HOME: home }, cwd)).toBe(join(home, 'aetheel.json5'))
  })

  it('takes .aetheel in the home directory as data directory by default', () => {
    const { cwd, home } = places({ isInCwd: false, isInHome: false })
    mkdirSync(join(home, '.aetheel'))
    writeFileSync(join(home, '.aetheel/aetheel.json5'), '{}')
    expect(findConfigFile({ HOME: home }, cwd)).toBe(join(home, '.aetheel/aetheel.json5'))
  })

  it('finds none if there is none', () => {
    const { cwd, home } = places({ isInCwd: false, isInHome: false })
    expect(findConfigFile({ AETHEEL_HOME: home }, cwd)).toBeUndefined()
  })

  it('finds none if the data directory is a file', () => {
    const { cwd } = places({ isInCwd: false, isInHome: false })
    expect(findConfigFile({ AETHEEL_HOME: file('') }, cwd)).toBeUndefined()
  })

  it('takes the one that is named before any other, there or not', () => {
    const { cwd, home } = places({ isInCwd: true, isInHome: true })
    expect(findConfigFile({ AETHEEL_HOME: home }, cwd, 'other.json5')).toBe(join(cwd, 'other.json5'))
  })

  it('does not pass over one that leads nowhere', () => {
    const { cwd, home } = places({ isInCwd: false, isInHome: true })
    symlinkSync('gone.json5', join(cwd, 'aetheel.json5'))
    expect(findConfigFile({ AETHEEL_HOME: home }, cwd)).toBe(join(cwd, 'aetheel.json5'))
  })
})

describe('backendConfig', () => {
  const config = loadConfig({
    AGENT_BACKEND: 'codex',
    BACKEND_CLI_PATH: '/opt/codex',
    BACKEND_MODEL: 'some-model',
    BACKEND_MAX_TURNS: '9',
    ALLOWED_TOOLS: 'read',
    QUERY_TIMEOUT_MS: '1000',
    WORKING_DIR: '/work',
  })
  const shared = {
    workingDir: '/work',
    queryTimeoutMs: 1000,
    allowedTools: ['read'],
    maxTurns: 9,
    isMaxTurnsChosen: true,
  }

  it('gives path and model to the chosen agent', () => {
    expect(backendConfig(config, 'codex')).toEqual({ ...shared, cliPath: '/opt/codex', model: 'some-model' })
  })

  it('gives neither to another one', () => {
    expect(backendConfig(config, 'claude')).toEqual({ ...shared, cliPath: 'claude' })
  })
})

function problemsOf(environment: NodeJS.ProcessEnv, path?: string): string[] {
  try {
    loadConfig(environment, path)
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'config_invalid') return error.message.split('\n')
    throw error
  }
  return []
}

function file(content: string | Buffer): string {
  const path = join(temporaryDirectory(), 'aetheel.json5')
  writeFileSync(path, content)
  return path
}

function places({ isInCwd, isInHome }: { isInCwd: boolean; isInHome: boolean }): { cwd: string; home: string } {
  const [cwd, home] = [temporaryDirectory(), temporaryDirectory()]
  if (isInCwd) writeFileSync(join(cwd, 'aetheel.json5'), '{}')
  if (isInHome) writeFileSync(join(home, 'aetheel.json5'), '{}')
  return { cwd, home }
}
