import type { GatewayConfig } from '../config.js'

const MASK = '***'

const SECRET_SETTINGS = ['discordBotToken', 'twilioAuthToken', 'twilioApiSecret', 'opencodePassword'] as const

type Secrets = Pick<GatewayConfig, 'databaseUrl' | 'hooks' | (typeof SECRET_SETTINGS)[number]>

/** Secrets in the configuration that must not appear in a log. Those of the environment are found by name. */
export function secretsOfConfig(config: Secrets): string[] {
  const own = [config.databaseUrl, ...SECRET_SETTINGS.map((name) => config[name])]
  return [...own, ...config.hooks.map(({ url }) => url)].filter((secret) => secret !== undefined)
}

/** The configuration without its secrets, for people to read. */
export function masked(config: GatewayConfig): GatewayConfig {
  const shown = { ...config, hooks: config.hooks.map((hook) => ({ ...hook })) }
  for (const name of SECRET_SETTINGS) if (shown[name] !== undefined) shown[name] = MASK
  if (shown.databaseUrl !== undefined) shown.databaseUrl = maskDatabaseUrl(shown.databaseUrl)
  for (const hook of shown.hooks) if (hook.url !== undefined) hook.url = maskHookUrl(hook.url)
  return shown
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
