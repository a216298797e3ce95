import type { Channel } from '../../channels/types.js'
import type { GatewayConfig } from '../../config.js'
import type { Log } from '../../log.js'
import { transcribeBy } from './transcribe.js'

export interface WhatsAppDependencies {
  environment: NodeJS.ProcessEnv
  log: Log
  now?: () => number
}

const MEGABYTE = 1024 * 1024

/**
 * Nothing when WhatsApp is not configured.
 *
 * Contract: `config` gives the configuration that holds now; what concerns Twilio itself is read once.
 */
export async function openWhatsApp(
  config: () => GatewayConfig,
  { environment, log, now = Date.now }: WhatsAppDependencies,
): Promise<Channel | undefined> {
  const {
    twilioAuthToken: authToken,
    twilioWhatsappFrom: from,
    publicUrl,
    twilioApiUrl,
    whatsappPollSeconds,
  } = config()
  const account = twilioAccount(config())
  if (!account || from === undefined) return undefined
  const { WhatsAppChannel } = await import('../../channels/whatsapp/whatsapp-channel.js')
  return new WhatsAppChannel({
    ...account,
    apiUrl: twilioApiUrl,
    ...(authToken !== undefined && { authToken }),
    from,
    ...(publicUrl !== undefined && { publicUrl }),
    pollSeconds: whatsappPollSeconds,
    reply: () => config().inbound?.reply,
    transcriber: () => {
      const { inbound, workingDir, agentEnvPass: passVariables } = config()
      const settings = inbound?.reply.transcribeAudio
      return settings && transcribeBy({ ...settings, workingDir, environment, passVariables })
    },
    maxFileBytes: () => config().attachmentMaxMb * MEGABYTE,
    log,
    now,
  })
}

/** How Twilio is asked: with an API key where there is one. */
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
