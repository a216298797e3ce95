import type { GatewayConfig } from '../config.js'

export const MASK = '***'

/** Secrets in the configuration that must not appear in a log. Those of the environment are found by name. */
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

/** Masks up to the last `@`, since an unescaped password may contain one. */
export function maskDatabaseUrl(url: string): string {
  return url
    .replace(/^([^:]+:\/\/[^:@/?]*):.*@/s, `$1:${MASK}@`)
    .replace(/([?&][^=&]*(?:pass|secret|key|token)[^=&]*=)[^&]*/gi, `$1${MASK}`)
}

/** Shows only the server: chat services put a webhook's secret into its path. */
export function maskHookUrl(url: string): string {
  const { protocol, host, href } = new URL(url)
  const server = `${protocol}//${host}/`
  return href === server ? server : `${server}${MASK}`
}
