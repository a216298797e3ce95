// The environment of an agent is built on purpose: what a CLI needs passes, everything else stays with us.

/** Names, or the beginning or the end of names with a `*` for the rest. */
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
  ...['OPENCODE_URL', 'OPENCODE_USERNAME', 'OPENCODE_PASSWORD', 'OPENCODE_ENABLED'],
]

/** The variables of every model provider, for the agents that can use any of them. There are hundreds. */
export const PROVIDER_VARIABLES = [
  '*_API_KEY',
  ...['ANTHROPIC_*', 'OPENAI_*', 'AZURE_*', 'GEMINI_*', 'GOOGLE_*', 'GCLOUD_*', 'VERTEX_*', 'AWS_*', 'CLOUDFLARE_*'],
  ...['OLLAMA_*', 'LMSTUDIO_*', 'HF_*', 'HUGGINGFACE_*', 'COPILOT_*', 'DATABRICKS_*', 'SNOWFLAKE_*', 'WATSONX_*'],
  ...['FRIENDLI_*', 'CLARIFAI_*', 'NEON_AI_GATEWAY_*', 'INFOMANIAK_*', 'PRIVATEMODE_*', 'BAILING_*', 'MODAL_*'],
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
  return patterns.some((pattern) => {
    if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1))
    return pattern.startsWith('*') ? name.endsWith(pattern.slice(1)) : name === pattern
  })
}
