import type { GatewayConfig } from '../config.js'

export const MASK = '***'

/** What must not appear in a log beside the secrets of the environment. */
export function secretsOfConfig({
  databaseUrl,
  discordBotToken,
  twilioAuthToken,
  twilioApiSecret,
  opencodePassword,
  hooks,
}: Pick<
  GatewayConfig,
  'databaseUrl' | 'discordBotToken' | 'twilioAuthToken' | 'twilioApiSecret' | 'opencodePassword' | 'hooks'
>): string[] {
  const own = [databaseUrl, discordBotToken, twilioAuthToken, twilioApiSecret, opencodePassword]
  return [...own, ...hooks.map(({ url }) => url)].filter((secret) => secret !== undefined)
}

/** Up to the last `@`: a password whose reserved characters are not escaped has one itself, and is still a password. */
export function maskDatabaseUrl(url: string): string {
  return url
    .replace(/^([^:]+:\/\/[^:@/?]*):.*@/s, `$1:${MASK}@`)
    .replace(/([?&][^=&]*(?:pass|secret|key|token)[^=&]*=)[^&]*/gi, `$1${MASK}`)
}

/** The server alone: chat services put the secret of a webhook into its path. */
export function maskHookUrl(url: string): string {
  const { protocol, host, href } = new URL(url)
  const server = `${protocol}//${host}/`
  return href === server ? server : `${server}${MASK}`
}
