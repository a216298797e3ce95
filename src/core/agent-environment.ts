// The environment of an agent is built on purpose: what a CLI needs passes, everything else stays with us.

/** Names, or the beginning of names with a `*` for the rest. */
const COMMON_VARIABLES = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'SSH_AUTH_SOCK', 'XDG_*'],
  ...['LANG', 'LANGUAGE', 'LC_*', 'TZ'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO'],
]

/** Secrets of the gateway and of the channels it serves: no configuration passes them on. */
const GATEWAY_VARIABLES = [
  'AETHEEL_*',
  'DISCORD_*',
  'TWILIO_*',
  'DATABASE_URL',
  // Beside the OPENCODE_* variables of the CLI itself: how the gateway reaches an OpenCode server.
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
