import { splitList } from './values.js'
import type { SettingName } from './schema.js'

/** Environment variables of the settings and how they are parsed. Structured settings are only in the file. */
export const VARIABLES: Record<
  Exclude<SettingName, 'hooks' | 'projects' | 'defaultProject' | 'inbound' | 'heartbeat'>,
  { name: string; read: (text: string) => unknown }
> = {
  agentBackend: { name: 'AGENT_BACKEND', read: asText },
  backendCliPath: { name: 'BACKEND_CLI_PATH', read: asText },
  agentMode: { name: 'AGENT_MODE', read: asText },
  liveIdleMs: { name: 'LIVE_IDLE_MS', read: asNumber },
  liveMaxProcesses: { name: 'LIVE_MAX_PROCESSES', read: asNumber },
  liveMaxMemoryMb: { name: 'LIVE_MAX_MEMORY_MB', read: asNumber },
  liveSpare: { name: 'LIVE_SPARE', read: asBoolean },
  agentPermissions: { name: 'AGENT_PERMISSIONS', read: asText },
  approvalTimeoutMs: { name: 'APPROVAL_TIMEOUT_MS', read: asNumber },
  backendModel: { name: 'BACKEND_MODEL', read: asText },
  backendMaxTurns: { name: 'BACKEND_MAX_TURNS', read: asNumber },
  allowedTools: { name: 'ALLOWED_TOOLS', read: splitList },
  queryTimeoutMs: { name: 'QUERY_TIMEOUT_MS', read: asNumber },
  messageTimeoutMs: { name: 'MESSAGE_TIMEOUT_MS', read: asNumber },
  queryTimeoutRetries: { name: 'QUERY_TIMEOUT_RETRIES', read: asNumber },
  idleTimeoutMs: { name: 'IDLE_TIMEOUT_MS', read: asNumber },
  workingDir: { name: 'WORKING_DIR', read: asText },
  agentEnvPass: { name: 'AGENT_ENV_PASS', read: splitList },
  logLevel: { name: 'LOG_LEVEL', read: asText },
  databaseUrl: { name: 'DATABASE_URL', read: asText },
  maxConcurrentQueries: { name: 'MAX_CONCURRENT_QUERIES', read: asNumber },
  maxQueueDepth: { name: 'MAX_QUEUE_DEPTH', read: asNumber },
  queueMode: { name: 'QUEUE_MODE', read: asText },
  maxWaitingCommands: { name: 'MAX_WAITING_COMMANDS', read: asNumber },
  replyExpiryMs: { name: 'REPLY_EXPIRY_MS', read: asNumber },
  sessionIdleMs: { name: 'SESSION_IDLE_MS', read: asNumber },
  leaseMs: { name: 'LEASE_MS', read: asNumber },
  drainTimeoutMs: { name: 'DRAIN_TIMEOUT_MS', read: asNumber },
  promptDir: { name: 'PROMPT_DIR', read: asText },
  discordBotToken: { name: 'DISCORD_BOT_TOKEN', read: asText },
  discordOwnerId: { name: 'DISCORD_OWNER_ID', read: asText },
  discordGuilds: { name: 'DISCORD_GUILDS', read: splitList },
  discordChannels: { name: 'DISCORD_CHANNELS', read: splitList },
  discordUsers: { name: 'DISCORD_USERS', read: splitList },
  discordRoles: { name: 'DISCORD_ROLES', read: splitList },
  discordFooter: { name: 'DISCORD_FOOTER', read: asBoolean },
  discordThreads: { name: 'DISCORD_THREADS', read: asBoolean },
  outputChannelId: { name: 'OUTPUT_CHANNEL_ID', read: asText },
  discordApiUrl: { name: 'DISCORD_API_URL', read: asText },
  attachmentMaxMb: { name: 'ATTACHMENT_MAX_MB', read: asNumber },
  attachmentTypes: { name: 'ATTACHMENT_TYPES', read: splitList },
  mediaRoots: { name: 'MEDIA_ROOTS', read: splitList },
  opencodeEnabled: { name: 'OPENCODE_ENABLED', read: asBoolean },
  opencodeManaged: { name: 'OPENCODE_MANAGED', read: asBoolean },
  opencodeUrl: { name: 'OPENCODE_URL', read: asText },
  opencodeUsername: { name: 'OPENCODE_USERNAME', read: asText },
  opencodePassword: { name: 'OPENCODE_PASSWORD', read: asText },
  kubectlPath: { name: 'KUBECTL_PATH', read: asText },
  kubernetesContext: { name: 'KUBERNETES_CONTEXT', read: asText },
  kubernetesNamespace: { name: 'KUBERNETES_NAMESPACE', read: asText },
  kubernetesLabel: { name: 'KUBERNETES_LABEL', read: asText },
  codeAgentDefault: { name: 'CODE_AGENT_DEFAULT', read: asText },
  projectRoots: { name: 'PROJECT_ROOTS', read: splitList },
  templateDir: { name: 'TEMPLATE_DIR', read: asText },
  httpEnabled: { name: 'HTTP_ENABLED', read: asBoolean },
  httpHost: { name: 'HTTP_HOST', read: asText },
  httpPort: { name: 'HTTP_PORT', read: asNumber },
  httpAllowedHosts: { name: 'HTTP_ALLOWED_HOSTS', read: splitList },
  publicUrl: { name: 'PUBLIC_URL', read: asText },
  twilioAccountSid: { name: 'TWILIO_ACCOUNT_SID', read: asText },
  twilioAuthToken: { name: 'TWILIO_AUTH_TOKEN', read: asText },
  twilioApiKey: { name: 'TWILIO_API_KEY', read: asText },
  twilioApiSecret: { name: 'TWILIO_API_SECRET', read: asText },
  twilioWhatsappFrom: { name: 'TWILIO_WHATSAPP_FROM', read: asText },
  twilioApiUrl: { name: 'TWILIO_API_URL', read: asText },
  whatsappPollSeconds: { name: 'WHATSAPP_POLL_SECONDS', read: asNumber },
}

function asText(text: string): string {
  return text
}

/** Other text stays as it is, for the schema to reject. */
function asNumber(text: string): number | string {
  return /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : text
}

/** Other text stays as it is, for the schema to reject. */
function asBoolean(text: string): boolean | string {
  if (/^(true|1|yes)$/i.test(text)) return true
  return /^(false|0|no)$/i.test(text) ? false : text
}
