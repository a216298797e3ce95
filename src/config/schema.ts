import { isIP } from 'node:net'
import { MAX_TIMER_MS } from '../core/async.js'
import { z } from 'zod'
import { DEFAULT_IDLE_TIMEOUT_MS } from '../backends/engine/turn.js'
import { AGENT_MODES, PERMISSIONS } from '../backends/types.js'
import { QUEUE_MODES } from '../channels/types.js'
import { heartbeatSchema } from './heartbeat.js'
import { inboundSchema } from './inbound.js'
import {
  contextName,
  isPodDirectory,
  kubernetesName,
  labelKey,
  NO_POD_DIRECTORY,
  podSchema,
  UNTRUSTED_POD,
} from './kubernetes.js'
import { quote } from './problems.js'
import {
  answeringBackend,
  argv,
  backend,
  isObject,
  isServerUrl,
  list,
  listOf,
  phoneNumber,
  serverUrl,
  text,
  tools,
  whole,
} from './values.js'
import { LOG_LEVELS } from '../log.js'

export const DEFAULT_MAX_TURNS = 25
/** Retries of a transient failure. */
export const MAX_RETRIES = 3

const HOOK_NAMES = ['message-received', 'run-started', 'run-finished', 'reply-sent', 'error'] as const

export type HookName = (typeof HOOK_NAMES)[number]

const DAY_MS = 86_400_000
/** Still a valid date when added to the current time. */
const MAX_AGE_MS = 3650 * DAY_MS

/** Some platforms still send the x- forms. */
const DEFAULT_ATTACHMENT_TYPES = [
  ...['image/*', 'audio/*', 'video/*', 'text/*'],
  ...['application/pdf', 'application/x-pdf', 'application/json', 'application/x-json'],
  ...['application/xml', 'application/x-xml', 'application/yaml', 'application/x-yaml'],
  ...['application/zip', 'application/x-zip', 'application/x-zip-compressed'],
  ...['application/gzip', 'application/x-gzip'],
]

const UNQUOTED_ID = 'put it in quotes: as a number, a Discord id loses its last digits'

/** A Discord id. */
export const snowflake = () =>
  z.string({ error: ({ input }) => (typeof input === 'number' ? UNQUOTED_ID : undefined) }).regex(/^\d{15,21}$/, {
    error: ({ input }) =>
      `${quote(input)} is not a Discord id, which has 15 to 21 digits: turn on Developer Mode in Discord, right-click, choose Copy ID`,
  })

const snowflakes = () =>
  listOf(z.array(snowflake()), ({ input }) =>
    typeof input === 'number' ? UNQUOTED_ID : 'must be a list of ids, each in quotes',
  )

const mimeType = () =>
  z
    .string()
    .regex(/^[a-z0-9][a-z0-9.+-]*\/(\*|[a-z0-9][a-z0-9.+-]*)$/i, {
      error: ({ input }) => `${quote(input)} is not a MIME type, such as image/png or image/*`,
    })
    .toLowerCase()

const allowedHost = () =>
  z
    .string()
    .refine(isHostAndPort, {
      error: ({ input }) => `${quote(input)} is not a host, such as gateway.example or gateway.example:8443`,
    })
    .toLowerCase()

export const maxTurnsSchema = whole(1)

const hookName = z.enum(HOOK_NAMES)

const hookSchema = z
  .strictObject({
    on: z
      .union([z.array(hookName).min(1), hookName.transform((name) => [name])], {
        error: `must be one of ${HOOK_NAMES.join(', ')}, or a list of them`,
      })
      .describe('The event that triggers the hook, or a list of events.'),
    command: argv()
      .exactOptional()
      .describe('An executable and its arguments, run without a shell. It receives JSON on stdin.'),
    url: text()
      .refine((url) => /^https?:\/\//i.test(url) && URL.canParse(url), {
        error: 'must be a URL that begins with http:// or https://',
      })
      .exactOptional()
      .describe('A URL that receives JSON by POST.'),
    timeoutMs: whole(1, 300_000).default(10_000).describe('Time limit of one call, in milliseconds.'),
  })
  .refine((hook) => (hook.command === undefined) !== (hook.url === undefined), {
    error: 'needs either "command" or "url", not both',
    when: isObject,
  })
  .meta({ oneOf: [{ required: ['command'] }, { required: ['url'] }] })

const projectSchema = z
  .strictObject({
    name: text().exactOptional().describe('A display name. Default: the id.'),
    directory: text()
      .exactOptional()
      .describe(
        "The agent's working directory. A relative path starts from this file's directory. In a pod, an absolute path, by default /workspace.",
      ),
    pod: podSchema
      .exactOptional()
      .describe('The pod in which the agent runs, through kubectl exec. Default: this machine.'),
    backend: backend().exactOptional().describe('The agent of this project. Default: agentBackend.'),
    agentMode: z
      .enum(AGENT_MODES)
      .exactOptional()
      .describe('Whether its process stays warm after a turn. Default: agentMode.'),
    agentPermissions: z
      .enum(PERMISSIONS)
      .exactOptional()
      .describe('Whether a person is asked before the agent uses a tool. Default: agentPermissions.'),
    model: text().exactOptional().describe("The model, by the agent's name for it."),
    allowedTools: tools().exactOptional().describe('The tools the agent may use. Default: allowedTools.'),
    queryTimeoutMs: whole(1).exactOptional().describe('Time limit of one turn, in milliseconds.'),
    maxTurns: maxTurnsSchema
      .exactOptional()
      .describe('How many rounds with its model the agent may take per message before it pauses.'),
    isUntrusted: z
      .boolean()
      .exactOptional()
      .describe('If true, nothing in its directory may configure the agent or run automatically.'),
    discordChannels: snowflakes().exactOptional().describe('The ids of the Discord channels that use this project.'),
  })
  .refine(({ directory, pod }) => directory !== undefined || pod !== undefined, {
    path: ['directory'],
    error: 'is missing: set the directory in which the agent works, or the pod with "pod"',
    when: isObject,
  })
  .refine(({ directory, pod }) => pod === undefined || directory === undefined || isPodDirectory(directory), {
    path: ['directory'],
    error: NO_POD_DIRECTORY,
    when: isObject,
  })
  .refine(({ pod, isUntrusted }) => pod === undefined || !isUntrusted, {
    path: ['isUntrusted'],
    error: UNTRUSTED_POD,
    when: isObject,
  })
  .meta({ anyOf: [{ required: ['directory'] }, { required: ['pod'] }] })

export const projectIdSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
  error: 'a project id has 1 to 64 letters, digits, "-" and "_", and starts with a letter or a digit',
})

const projectsSchema = z.record(projectIdSchema, projectSchema).superRefine((projects, context) => {
  const owners = new Map<string, string>()
  for (const [id, { discordChannels = [] }] of Object.entries(projects)) {
    for (const [index, channel] of discordChannels.entries()) {
      const owner = owners.get(channel) ?? id
      owners.set(channel, owner)
      if (owner === id) continue
      const problem = `channel ${channel} already belongs to project "${owner}"`
      const message = `${problem}: remove it from "${owner}" or from "${id}"`
      context.addIssue({ code: 'custom', path: [id, 'discordChannels', index], message })
    }
  }
})

/** Contract: its error messages never quote the token. */
export const discordTokenSchema = text().refine((token) => problemOfToken(token) === undefined, {
  error: ({ input }) => problemOfToken(String(input)),
})

export const DEFAULT_OPENCODE_URL = 'http://127.0.0.1:4096'
export const DEFAULT_OPENCODE_USERNAME = 'opencode'

/** The configuration file. The environment has the same settings under the names in `VARIABLES`. */
export const settingsSchema = z.strictObject({
  $schema: z.string().exactOptional().describe('The JSON Schema of this file, for editors.'),
  agentBackend: answeringBackend()
    .exactOptional()
    .describe(
      'The agent that answers. Default: codeAgentDefault, else claude. demo is the built-in demo agent, without a model.',
    ),
  backendCliPath: text()
    .exactOptional()
    .describe("The executable of agentBackend: a name in PATH, or a path. Default: the agent's name."),
  agentMode: z
    .enum(AGENT_MODES)
    .default('auto')
    .describe(
      "Whether an agent's process ends after each turn (oneshot) or stays warm for the next (live). auto: live if the installed version is known to support it.",
    ),
  liveIdleMs: whole(1, MAX_TIMER_MS)
    .default(600_000)
    .describe('How long a warm process may stay unused, in milliseconds. Then it is ended.'),
  liveMaxProcesses: whole(1, 1000)
    .default(8)
    .describe('How many warm processes to keep. The least recently used one is ended first.'),
  liveMaxMemoryMb: whole(1, 1_000_000)
    .default(4096)
    .describe('How much memory warm processes may use together, in MB. Linux only.'),
  liveSpare: z
    .boolean()
    .default(false)
    .describe('Keep a process ready for the next new conversation, for agents with one process per conversation.'),
  agentPermissions: z
    .enum(PERMISSIONS)
    .default('allow')
    .describe(
      'Whether an agent uses its tools without asking (allow), or asks a person before those that need permission (ask).',
    ),
  approvalTimeoutMs: whole(1000, MAX_TIMER_MS)
    .default(600_000)
    .describe('How long an approval request waits for an answer, in milliseconds. Then it counts as denied.'),
  backendModel: text().exactOptional().describe("The model, by the agent's name for it."),
  backendMaxTurns: maxTurnsSchema
    .default(DEFAULT_MAX_TURNS)
    .describe('How many rounds with its model the agent may take per message before it pauses.'),
  allowedTools: tools().prefault([]).describe('The tools the agent may use. Empty: every tool.'),
  queryTimeoutMs: whole(1).default(1_800_000).describe('Time limit of one turn, in milliseconds.'),
  messageTimeoutMs: whole(1)
    .default(3_600_000)
    .describe('Time limit of all attempts at one message together, in milliseconds.'),
  queryTimeoutRetries: whole(0, MAX_RETRIES)
    .default(MAX_RETRIES)
    .describe('How many times to retry a turn after a time-out. 0: never.'),
  idleTimeoutMs: whole(0)
    .default(DEFAULT_IDLE_TIMEOUT_MS)
    .describe('An agent that prints nothing for this many milliseconds is ended. 0: never.'),
  workingDir: text()
    .exactOptional()
    .describe(
      "The agent's working directory. A relative path starts from this file's directory. Default: the current directory.",
    ),
  agentEnvPass: list()
    .prefault([])
    .describe('Additional environment variables to pass to agents, as names or PREFIX_*.'),
  logLevel: z
    .enum(LOG_LEVELS)
    .exactOptional()
    .describe('The level of the log on stderr. Default: depends on the command.'),
  databaseUrl: text()
    .refine(isPostgresUrl, { error: 'must be a URL such as postgres://user:password@host:5432/name' })
    .exactOptional()
    .describe('A PostgreSQL database, such as postgres://user:password@host:5432/name. Default: an SQLite file.'),
  maxConcurrentQueries: whole(1, 1000).default(5).describe('How many conversations are answered at once.'),
  maxQueueDepth: whole(1, 1_000_000)
    .default(100)
    .describe('How many messages of a conversation may wait. Any more are refused.'),
  queueMode: z
    .enum(QUEUE_MODES)
    .default('followup')
    .describe(
      'What happens to a message that arrives while the agent works: it waits for its own turn (followup), shares one turn with all waiting messages (collect), stops the running turn (interrupt), or goes to the agent immediately (steer).',
    ),
  maxWaitingCommands: whole(1, 1_000_000)
    .default(100)
    .describe('How many HTTP commands of a project may wait. Any more are refused.'),
  replyExpiryMs: whole(1, MAX_AGE_MS)
    .default(900_000)
    .describe('How long to try to deliver a reply, in milliseconds. Then it is kept as undelivered.'),
  sessionIdleMs: whole(0, MAX_AGE_MS)
    .default(7 * DAY_MS)
    .describe('How long a conversation may be silent before it starts a new session, in milliseconds. 0: no limit.'),
  leaseMs: whole(1000, MAX_TIMER_MS)
    .default(30_000)
    .describe('How long a gateway may give no sign of life before another takes over its work, in milliseconds.'),
  drainTimeoutMs: whole(0, MAX_TIMER_MS)
    .default(30_000)
    .describe('How long running turns may continue when the gateway stops, in milliseconds. 0: not at all.'),
  promptDir: text()
    .exactOptional()
    .describe(
      "The directory of the prompt files. A relative path starts from this file's directory. Default: prompt in the data directory.",
    ),
  hooks: z.array(hookSchema).default([]).describe('Commands or URLs to call on events.'),
  projects: projectsSchema.default({}).describe('Projects, by id: directories in which conversations can work.'),
  defaultProject: text()
    .exactOptional()
    .describe(
      'The id of the project for conversations in the terminal, on Discord and in the dashboard that have no other. Default: none; they work in workingDir.',
    ),
  discordBotToken: discordTokenSchema
    .exactOptional()
    .describe('The token of the Discord bot, from the Bot page of the Developer Portal. Without it, Discord is off.'),
  discordOwnerId: snowflake()
    .exactOptional()
    .describe('The Discord user who may always talk to the bot. Default: the owner of the application.'),
  discordGuilds: snowflakes()
    .prefault([])
    .describe('The Discord servers in which people may talk to the bot. Empty: any server.'),
  discordChannels: snowflakes()
    .prefault([])
    .describe('The Discord channels in which people may talk to the bot, including their threads. Empty: any channel.'),
  discordUsers: snowflakes().prefault([]).describe('The Discord users who may talk to the bot, besides its owner.'),
  discordRoles: snowflakes().prefault([]).describe('The Discord roles whose members may talk to the bot.'),
  discordThreads: z.boolean().default(true).describe('Open a thread for a mention in a Discord channel.'),
  discordFooter: z.boolean().default(true).describe('Show model, time and cost below each answer on Discord.'),
  outputChannelId: snowflake()
    .exactOptional()
    .describe('The Discord channel for messages that are not replies, such as the results of scheduled runs.'),
  discordApiUrl: text()
    .refine((url) => isServerUrl(url) && !/\/v\d+\/*$/.test(url), {
      error: 'must be a URL such as https://discord.com/api, without user, query or version',
    })
    .transform((url) => url.replace(/\/+$/, ''))
    .prefault('https://discord.com/api')
    .describe('The address of the Discord API, for a proxy.'),
  attachmentMaxMb: whole(1, 500).default(25).describe('The largest file accepted with a message, in MB.'),
  attachmentTypes: listOf(z.array(mimeType()), 'must be a list of MIME types, such as image/png or image/*')
    .prefault(DEFAULT_ATTACHMENT_TYPES)
    .describe('The MIME types of files accepted with a message, such as image/png or image/*. Empty: none.'),
  mediaRoots: listOf(z.array(text()), 'must be a list of directories')
    .prefault([])
    .describe('Additional directories whose files an agent may send, besides its working directory.'),
  opencodeEnabled: z
    .boolean()
    .default(false)
    .describe('Use an OpenCode server (opencode serve) for every turn. false: decided by agentMode.'),
  opencodeManaged: z
    .boolean()
    .default(false)
    .describe(
      'Let the gateway start the OpenCode server. Then omit opencodeUrl, opencodeUsername and opencodePassword.',
    ),
  opencodeUrl: serverUrl(DEFAULT_OPENCODE_URL)
    .prefault(DEFAULT_OPENCODE_URL)
    .describe('The URL of your own OpenCode server.'),
  opencodeUsername: text().default(DEFAULT_OPENCODE_USERNAME).describe('The OPENCODE_SERVER_USERNAME of that server.'),
  opencodePassword: text().exactOptional().describe('The OPENCODE_SERVER_PASSWORD of that server.'),
  kubectlPath: text().default('kubectl').describe('kubectl 1.30 or newer: a name in PATH, or a path.'),
  kubernetesContext: contextName()
    .exactOptional()
    .describe('The kubeconfig context for pods that name none. Default: the current one.'),
  kubernetesNamespace: kubernetesName('namespace')
    .exactOptional()
    .describe('The namespace for pods that name none. Default: that of the context.'),
  kubernetesLabel: labelKey()
    .default('rdev.orchard9.ai/agent-provider')
    .describe('The label that "aetheel projects discover" looks for. Its value is the agent.'),
  codeAgentDefault: backend().exactOptional().describe('The agent of new projects. Default: agentBackend.'),
  projectRoots: listOf(z.array(text()).min(1), 'must be a list of directories')
    .exactOptional()
    .describe(
      'The directories in which the HTTP API and the command line may create projects. New ones go into the first. Default: aetheel-projects next to the data directory.',
    ),
  templateDir: text().exactOptional().describe('A directory with your own project templates, one directory each.'),
  httpEnabled: z.boolean().default(true).describe('Serve the HTTP API.'),
  httpHost: text()
    .refine((host) => isIP(host) !== 0 || isHostName(host), {
      error: 'must be an address or a host name, such as 127.0.0.1, without http:// or a port',
    })
    .default('127.0.0.1')
    .describe('The address on which the HTTP API listens.'),
  httpPort: whole(0, 65_535).default(7433).describe('The port on which the HTTP API listens. 0: any free port.'),
  httpAllowedHosts: listOf(
    z.array(allowedHost()),
    'must be a list of hosts, such as gateway.example or gateway.example:8443',
  )
    .prefault([])
    .describe('Additional hosts under which the HTTP API is reached, such as that of a proxy: host or host:port.'),
  publicUrl: serverUrl('https://gateway.example')
    .exactOptional()
    .describe('The URL at which Twilio reaches this gateway. Without it, the gateway polls Twilio for messages.'),
  twilioAccountSid: text()
    .regex(/^AC[0-9a-f]{32}$/i, { error: 'must be a Twilio Account SID: AC and 32 hexadecimal digits' })
    .exactOptional()
    .describe('Your Twilio Account SID, from the Twilio console. Without it, WhatsApp is off.'),
  twilioAuthToken: text().exactOptional().describe('The Auth Token of that account. Webhooks are verified with it.'),
  twilioApiKey: text().exactOptional().describe('An API key (SK…) to use for requests instead of the Auth Token.'),
  twilioApiSecret: text().exactOptional().describe('The secret of that API key.'),
  twilioWhatsappFrom: phoneNumber()
    .exactOptional()
    .describe("The gateway's WhatsApp number at Twilio, such as +14155238886 or whatsapp:+14155238886."),
  twilioApiUrl: serverUrl('https://api.twilio.com')
    .prefault('https://api.twilio.com')
    .describe('The address of the Twilio API, for a proxy.'),
  whatsappPollSeconds: whole(5, 3600)
    .default(5)
    .describe('How often to poll Twilio for messages if there is no publicUrl, in seconds.'),
  inbound: inboundSchema.exactOptional().describe('How WhatsApp messages are answered.'),
  heartbeat: heartbeatSchema.exactOptional().describe('When to wake the agent to check its list. Default: never.'),
})

export type HookConfig = z.output<typeof hookSchema>
export type ProjectEntry = z.output<typeof projectSchema>
export type Settings = Omit<z.output<typeof settingsSchema>, '$schema'>
export type SettingName = keyof Settings

export const SETTING_NAMES = Object.keys(settingsSchema.shape).filter((key): key is SettingName => key !== '$schema')

/** The JSON Schema of the configuration file, as `aetheel.schema.json` holds it. */
export function configJsonSchema(): object {
  return {
    ...z.toJSONSchema(settingsSchema, { io: 'input', target: 'draft-7' }),
    title: 'Aetheel configuration file (aetheel.json5)',
  }
}

function problemOfToken(token: string): string | undefined {
  if (/^Bot\s/i.test(token)) return 'must be only the token, without "Bot " before it'
  if (/\s/.test(token)) return 'must not contain spaces or line breaks: copy only the token'
  return undefined
}

function isPostgresUrl(url: string): boolean {
  // The host may be omitted for the local socket, which `URL` rejects if there is a user.
  return /^postgres(ql)?:\/\/./i.test(url) && URL.canParse(url.replace('@/', '@localhost/'))
}

function isHostName(host: string): boolean {
  return host.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(host)
}

/** As in a URL: IPv6 addresses have brackets. */
function isHostAndPort(text: string): boolean {
  const [, inBrackets, host = '', port = '0'] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  return (inBrackets === undefined ? isHostName(host) : isIP(inBrackets) === 6) && Number(port) <= 65_535
}
