// Creates the chat channels a configuration asks for.

import { type GatewayConfig, projectOfChannel } from '../config.js'
import type { Log } from '../log.js'
import { transcribeWith } from './transcribe.js'
import type { Channel } from './types.js'

export interface WhatsAppDependencies {
  environment: NodeJS.ProcessEnv
  log: Log
  now?: () => number
}

const MEGABYTE = 1024 * 1024

/** Undefined if Discord is not configured. Contract: its library is loaded only when needed. */
export async function openDiscord(
  config: GatewayConfig,
  log: Log,
  now: () => number = Date.now,
): Promise<Channel | undefined> {
  const { discordBotToken: token, discordApiUrl: apiUrl, discordOwnerId: ownerId } = config
  if (token === undefined) return undefined
  const { discordGuilds: guilds, discordChannels: channels, discordUsers: users, discordRoles: roles } = config
  const { DiscordChannel } = await import('./discord/discord-channel.js')
  return new DiscordChannel({
    token,
    apiUrl,
    ownerId,
    access: { guilds, channels, users, roles },
    opensThreads: config.discordThreads,
    hasFooter: config.discordFooter,
    projectOf: projectOfChannel.bind(undefined, config),
    log,
    now,
  })
}

/**
 * Undefined if WhatsApp is not configured.
 *
 * Contract: `config` returns the current configuration; Twilio's own settings are read once.
 */
export async function openWhatsApp(
  config: () => GatewayConfig,
  { environment, log, now = Date.now }: WhatsAppDependencies,
): Promise<Channel | undefined> {
  const { twilioAuthToken: authToken, twilioWhatsappFrom: from, twilioApiUrl: apiUrl, publicUrl } = config()
  const account = twilioAccount(config())
  if (!account || from === undefined) return undefined
  const { WhatsAppChannel } = await import('./whatsapp/whatsapp-channel.js')
  return new WhatsAppChannel({
    ...account,
    apiUrl,
    authToken,
    from,
    publicUrl,
    pollSeconds: config().whatsappPollSeconds,
    reply: () => config().inbound?.reply,
    transcriber: () => {
      const { inbound, workingDir, agentEnvPass: passVariables } = config()
      const settings = inbound?.reply.transcribeAudio
      return settings && transcribeWith({ ...settings, workingDir, environment, passVariables })
    },
    maxFileBytes: () => config().attachmentMaxMb * MEGABYTE,
    log,
    now,
  })
}

/** The credentials for Twilio: an API key if there is one. */
export function twilioAccount(
  config: GatewayConfig,
): { accountSid: string; auth: { user: string; password: string } } | undefined {
  const { twilioAccountSid: accountSid, twilioAuthToken, twilioApiKey, twilioApiSecret } = config
  if (accountSid === undefined) return undefined
  if (twilioApiKey !== undefined && twilioApiSecret !== undefined) {
    return { accountSid, auth: { user: twilioApiKey, password: twilioApiSecret } }
  }
  return twilioAuthToken === undefined
    ? undefined
    : { accountSid, auth: { user: accountSid, password: twilioAuthToken } }
}
