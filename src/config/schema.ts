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
/** Of what is transient. */
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

const UNQUOTED_ID = 'write it in quotes: as a number, an id of Discord loses its last digits'

/** A Discord id. */
export const snowflake = () =>
  z.string({ error: ({ input }) => (typeof input === 'number' ? UNQUOTED_ID : undefined) }).regex(/^\d{15,21}$/, {
    error: ({ input }) =>
      `${quote(input)} is no id of Discord, which has 15 to 21 digits: turn on Developer Mode there, right-click, choose Copy ID`,
  })

const snowflakes = () =>
  listOf(z.array(snowflake()), ({ input }) =>
    typeof input === 'number' ? UNQUOTED_ID : 'must be a list of ids, each in quotes',
  )

const mimeType = () =>
  z
    .string()
    .regex(/^[a-z0-9][a-z0-9.+-]*\/(\*|[a-z0-9][a-z0-9.+-]*)$/i, {
      error: ({ input }) => `${quote(input)} is no MIME type, such as image/png, and no kind of them, such as image/*`,
    })
    .toLowerCase()

const allowedHost = () =>
  z
    .string()
    .refine(isHostAndPort, {
      error: ({ input }) => `${quote(input)} is no host, such as gateway.example or gateway.example:8443`,
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
      .describe('What calls the hook: one name, or a list of them.'),
    command: argv()
      .exactOptional()
      .describe('An executable and its arguments, started without a shell. It gets JSON on stdin.'),
    url: text()
      .refine((url) => /^https?:\/\//i.test(url) && URL.canParse(url), {
        error: 'must be a URL that begins with http:// or https://',
      })
      .exactOptional()
      .describe('A URL that is called by POST with JSON.'),
    timeoutMs: whole(1, 300_000).default(10_000).describe('The longest that one call may take, in milliseconds.'),
  })
  .refine((hook) => (hook.command === undefined) !== (hook.url === undefined), {
    error: 'needs either "command" or "url", and not both',
    when: isObject,
  })
  .meta({ oneOf: [{ required: ['command'] }, { required: ['url'] }] })

const projectSchema = z
  .strictObject({
    name: text().exactOptional().describe('A name for people; left out, the id.'),
    directory: text()
      .exactOptional()
      .describe(
        "Where the agent works. A relative path begins at this file's directory. In a pod it is absolute; left out there, /workspace.",
      ),
    pod: podSchema.exactOptional().describe('The pod in which the agent runs, through kubectl exec; left out, here.'),
    backend: backend().exactOptional().describe('The agent of this project; left out, that of agentBackend.'),
    agentMode: z
      .enum(AGENT_MODES)
      .exactOptional()
      .describe('Whether its process ends with each turn or stays; left out, as agentMode says.'),
    agentPermissions: z
      .enum(PERMISSIONS)
      .exactOptional()
      .describe('Whether a person is asked before the agent uses a tool; left out, as agentPermissions says.'),
    model: text().exactOptional().describe("The model, by the agent's own name for it."),
    allowedTools: tools()
      .exactOptional()
      .describe('The tools that the agent may use; left out, those of allowedTools.'),
    queryTimeoutMs: whole(1).exactOptional().describe('The longest that one turn may take, in milliseconds.'),
    maxTurns: maxTurnsSchema
      .exactOptional()
      .describe('How many times the agent may go back to its model within one turn.'),
    isUntrusted: z
      .boolean()
      .exactOptional()
      .describe('Whether nothing in its directory may configure the agent, or run by itself.'),
    discordChannels: snowflakes()
      .exactOptional()
      .describe('Ids of the Discord channels whose conversations work in this project.'),
  })
  .refine(({ directory, pod }) => directory !== undefined || pod !== undefined, {
    path: ['directory'],
    error: 'is missing: name the directory that the agent works in, or the pod with "pod"',
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
  error: 'a project id has 1 to 64 letters, digits, "-" and "_", and begins with a letter or a digit',
})

const projectsSchema = z.record(projectIdSchema, projectSchema).superRefine((projects, context) => {
  const owners = new Map<string, string>()
  for (const [id, { discordChannels = [] }] of Object.entries(projects)) {
    for (const [index, channel] of discordChannels.entries()) {
      const owner = owners.get(channel) ?? id
      owners.set(channel, owner)
      if (owner === id) continue
      const message = `channel ${channel} is of project "${owner}" already, and a channel works in one project: take it out of "${owner}" or of "${id}"`
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
  $schema: z.string().exactOptional().describe('Where the JSON Schema of this file is, for editors.'),
  agentBackend: answeringBackend()
    .exactOptional()
    .describe(
      'The agent that answers. Left out, that of codeAgentDefault, else claude. demo: the built-in demonstration agent, without a model.',
    ),
  backendCliPath: text()
    .exactOptional()
    .describe('The executable of that agent: a name looked up in PATH, or a path. Left out, the name of the agent.'),
  agentMode: z
    .enum(AGENT_MODES)
    .default('auto')
    .describe(
      'Whether the process of an agent ends with each turn (oneshot) or stays for the next (live). auto: live where the installed version is known to work so.',
    ),
  liveIdleMs: whole(1, MAX_TIMER_MS)
    .default(600_000)
    .describe('A process that stays and that nobody has used for so many milliseconds is ended.'),
  liveMaxProcesses: whole(1, 1000)
    .default(8)
    .describe('How many processes may stay; the one that was used longest ago makes place.'),
  liveMaxMemoryMb: whole(1, 1_000_000)
    .default(4096)
    .describe('How much memory they may take together, in MB, where the system tells it (Linux).'),
  liveSpare: z
    .boolean()
    .default(false)
    .describe('Whether a process is started ahead for the next new conversation, where each has its own.'),
  agentPermissions: z
    .enum(PERMISSIONS)
    .default('allow')
    .describe(
      'Whether an agent uses its tools without asking (allow), or a person is asked before those that need permission (ask).',
    ),
  approvalTimeoutMs: whole(1000, MAX_TIMER_MS)
    .default(600_000)
    .describe('How long such a question waits for an answer, in milliseconds; then it counts as refused.'),
  backendModel: text().exactOptional().describe("The model, by the agent's own name for it."),
  backendMaxTurns: maxTurnsSchema
    .default(DEFAULT_MAX_TURNS)
    .describe('How many times the agent may go back to its model within one turn.'),
  allowedTools: tools().prefault([]).describe('The tools that the agent may use. Empty: every tool.'),
  queryTimeoutMs: whole(1).default(1_800_000).describe('The longest that one turn may take, in milliseconds.'),
  messageTimeoutMs: whole(1)
    .default(3_600_000)
    .describe('The longest that all attempts at one message may take together, in milliseconds.'),
  queryTimeoutRetries: whole(0, MAX_RETRIES)
    .default(MAX_RETRIES)
    .describe('How many times a turn that took too long is tried again. 0: never.'),
  idleTimeoutMs: whole(0)
    .default(DEFAULT_IDLE_TIMEOUT_MS)
    .describe('An agent that prints nothing for so many milliseconds is ended. 0: never.'),
  workingDir: text()
    .exactOptional()
    .describe(
      "Where the agent works. A relative path begins at this file's directory. Left out, the current directory.",
    ),
  agentEnvPass: list()
    .prefault([])
    .describe('Further variables of the environment that agents may see, as names or PREFIX_*.'),
  logLevel: z
    .enum(LOG_LEVELS)
    .exactOptional()
    .describe('What is logged, on stderr. Left out, each command has its own.'),
  databaseUrl: text()
    .refine(isPostgresUrl, { error: 'must be a URL such as postgres://user:password@host:5432/name' })
    .exactOptional()
    .describe('A PostgreSQL database, as postgres://user:password@host:5432/name. Left out, an SQLite file.'),
  maxConcurrentQueries: whole(1, 1000).default(5).describe('How many conversations are answered at the same time.'),
  maxQueueDepth: whole(1, 1_000_000)
    .default(100)
    .describe('How many messages of one conversation may wait; further ones are refused.'),
  queueMode: z
    .enum(QUEUE_MODES)
    .default('followup')
    .describe(
      "What becomes of a person's message that comes while the agent works: it waits for its own turn (followup), shares one with all that wait (collect), ends what runs (interrupt), or is told to the agent at once (steer).",
    ),
  maxWaitingCommands: whole(1, 1_000_000)
    .default(100)
    .describe('How many commands of one project, which came over HTTP, may wait; further ones are refused.'),
  replyExpiryMs: whole(1, MAX_AGE_MS)
    .default(900_000)
    .describe('A reply that could not be delivered for so many milliseconds is kept as undelivered.'),
  sessionIdleMs: whole(0, MAX_AGE_MS)
    .default(7 * DAY_MS)
    .describe('A conversation that was silent for so many milliseconds begins a new session. 0: never.'),
  leaseMs: whole(1000, MAX_TIMER_MS)
    .default(30_000)
    .describe('How long the work of a gateway that gives no sign stays its own, in milliseconds.'),
  drainTimeoutMs: whole(0, MAX_TIMER_MS)
    .default(30_000)
    .describe('How long running turns may go on when the gateway is stopped, in milliseconds. 0: not at all.'),
  promptDir: text()
    .exactOptional()
    .describe(
      "The directory of the prompt files. A relative path begins at this file's directory. Left out, prompt in the data directory.",
    ),
  hooks: z.array(hookSchema).default([]).describe('Commands or URLs that are called when something happens.'),
  projects: projectsSchema.default({}).describe('Directories that conversations can work in, by their ids.'),
  defaultProject: text()
    .exactOptional()
    .describe(
      'The project, one of projects, of conversations in the terminal, on Discord and in the dashboard that have no other. Left out, these work in workingDir.',
    ),
  discordBotToken: discordTokenSchema
    .exactOptional()
    .describe('The token of the Discord bot, from its page Bot in the Developer Portal. Left out, no Discord.'),
  discordOwnerId: snowflake()
    .exactOptional()
    .describe('The Discord user who may always talk to the bot. Left out, the owner of the application.'),
  discordGuilds: snowflakes()
    .prefault([])
    .describe('The Discord servers in which people may talk to the bot. Empty: any server.'),
  discordChannels: snowflakes()
    .prefault([])
    .describe('The Discord channels in which people may talk to the bot, and in their threads. Empty: any channel.'),
  discordUsers: snowflakes().prefault([]).describe('The Discord users who may talk to the bot, beside its owner.'),
  discordRoles: snowflakes().prefault([]).describe('The Discord roles whose members may talk to the bot.'),
  discordThreads: z.boolean().default(true).describe('Whether a mention in a Discord channel opens a thread.'),
  discordFooter: z
    .boolean()
    .default(true)
    .describe('Whether a quiet line below each answer on Discord tells its model, time and cost.'),
  outputChannelId: snowflake()
    .exactOptional()
    .describe('The Discord channel for what answers no message, such as the results of scheduled work.'),
  discordApiUrl: text()
    .refine((url) => isServerUrl(url) && !/\/v\d+\/*$/.test(url), {
      error: 'must be a URL such as https://discord.com/api, without user, query and version at the end',
    })
    .transform((url) => url.replace(/\/+$/, ''))
    .prefault('https://discord.com/api')
    .describe('Where the API of Discord is reached, for a proxy.'),
  attachmentMaxMb: whole(1, 500).default(25).describe('The largest file that is taken with a message, in MB.'),
  attachmentTypes: listOf(z.array(mimeType()), 'must be a list of MIME types, such as image/png or image/*')
    .prefault(DEFAULT_ATTACHMENT_TYPES)
    .describe('The kinds of files that are taken with a message, as image/png or image/*. Empty: none.'),
  mediaRoots: listOf(z.array(text()), 'must be a list of directories')
    .prefault([])
    .describe('Further directories whose files an agent may send, beside the one it works in.'),
  opencodeEnabled: z
    .boolean()
    .default(false)
    .describe('Whether OpenCode is reached as a server (opencode serve) in place of one process per turn.'),
  opencodeManaged: z
    .boolean()
    .default(false)
    .describe('Whether the gateway starts that server itself; then neither URL nor password is needed.'),
  opencodeUrl: serverUrl(DEFAULT_OPENCODE_URL)
    .prefault(DEFAULT_OPENCODE_URL)
    .describe('Where a server that runs already is reached.'),
  opencodeUsername: text().default(DEFAULT_OPENCODE_USERNAME).describe('The user name for it.'),
  opencodePassword: text().exactOptional().describe('The password for it, its OPENCODE_SERVER_PASSWORD.'),
  kubectlPath: text().default('kubectl').describe('kubectl, 1.30 or newer: a name looked up in PATH, or a path.'),
  kubernetesContext: contextName()
    .exactOptional()
    .describe('The context of the kubeconfig for pods that name none. Left out, the current one.'),
  kubernetesNamespace: kubernetesName('namespace')
    .exactOptional()
    .describe('The namespace of pods that name none. Left out, that of the context.'),
  kubernetesLabel: labelKey()
    .default('rdev.orchard9.ai/agent-provider')
    .describe('The label by which "aetheel projects discover" finds pods; its value is the agent.'),
  codeAgentDefault: backend().exactOptional().describe('The agent of new projects. Left out, that of agentBackend.'),
  projectRoots: listOf(z.array(text()).min(1), 'must be a list of directories')
    .exactOptional()
    .describe(
      'The directories in which projects may be made by the HTTP API and the command line; new ones go into the first. Left out, projects in the data directory.',
    ),
  templateDir: text().exactOptional().describe('A directory of your own project templates, a directory each.'),
  httpEnabled: z.boolean().default(true).describe('Whether the gateway serves the HTTP API.'),
  httpHost: text()
    .refine((host) => isIP(host) !== 0 || isHostName(host), {
      error: 'must be an address or a host name, such as 127.0.0.1, without http:// and without a port',
    })
    .default('127.0.0.1')
    .describe('The address on which the HTTP API listens.'),
  httpPort: whole(0, 65_535).default(7433).describe('The port on which the HTTP API listens. 0: any that is free.'),
  httpAllowedHosts: listOf(
    z.array(allowedHost()),
    'must be a list of hosts, such as gateway.example or gateway.example:8443',
  )
    .prefault([])
    .describe('Further names under which the HTTP API is reached, as behind a proxy: host or host:port.'),
  publicUrl: serverUrl('https://gateway.example')
    .exactOptional()
    .describe('Where Twilio reaches this gateway. Left out, WhatsApp is asked for messages again and again.'),
  twilioAccountSid: text()
    .regex(/^AC[0-9a-f]{32}$/i, { error: 'must be the Account SID of Twilio: AC and 32 hexadecimal digits' })
    .exactOptional()
    .describe('The Account SID of Twilio, from its console. Left out, no WhatsApp.'),
  twilioAuthToken: text().exactOptional().describe('The Auth Token of that account. Webhooks are checked with it.'),
  twilioApiKey: text().exactOptional().describe('An API key (SK…) to be used for requests in place of the Auth Token.'),
  twilioApiSecret: text().exactOptional().describe('The secret of that API key.'),
  twilioWhatsappFrom: phoneNumber()
    .exactOptional()
    .describe('The WhatsApp number of the gateway at Twilio, as whatsapp:+14155238886 or +14155238886.'),
  twilioApiUrl: serverUrl('https://api.twilio.com')
    .prefault('https://api.twilio.com')
    .describe('Where the API of Twilio is reached, for a proxy.'),
  whatsappPollSeconds: whole(5, 3600)
    .default(5)
    .describe('How often Twilio is asked for new messages where there is no publicUrl, in seconds.'),
  inbound: inboundSchema.exactOptional().describe('How WhatsApp messages are answered.'),
  heartbeat: heartbeatSchema
    .exactOptional()
    .describe('When the agent looks by itself whether there is something to do. Left out, never.'),
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
    title: 'The configuration file of Aetheel, aetheel.json5',
  }
}

function problemOfToken(token: string): string | undefined {
  if (/^Bot\s/i.test(token)) return 'must be the token alone, without "Bot " before it'
  if (/\s/.test(token)) return 'must not have spaces or line breaks in it: copy the token alone'
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
