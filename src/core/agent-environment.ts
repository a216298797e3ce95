// An agent's environment is an allow-list: a CLI gets what it needs and nothing else.

/** Names, or prefixes that end in `*`. */
const COMMON_VARIABLES = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'SSH_AUTH_SOCK', 'XDG_*'],
  ...['LANG', 'LANGUAGE', 'LC_*', 'TZ'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO'],
]

/** Secrets of the gateway and its channels, which no configuration can pass on. */
const GATEWAY_VARIABLES = [
  'AETHEEL_*',
  'DISCORD_*',
  'TWILIO_*',
  'DATABASE_URL',
  // How the gateway reaches an OpenCode server. Other OPENCODE_* variables belong to the CLI.
  ...['OPENCODE_URL', 'OPENCODE_USERNAME', 'OPENCODE_PASSWORD', 'OPENCODE_ENABLED', 'OPENCODE_MANAGED'],
]

export function agentEnvironment(operator: NodeJS.ProcessEnv, ownVariables: readonly string[]): Record<string, string> {
  const passed = [...COMMON_VARIABLES, ...ownVariables]
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(operator)) {
    if (value !== undefined && matches(name, passed) && !matches(name, GATEWAY_VARIABLES)) environment[name] = value
  }
  return environment
}

function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
}
