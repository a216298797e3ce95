import { INBOX_DIRECTORY, STATE_DIRECTORY } from './inbox-folder.js'

/** Directories of secrets and state, matched anywhere in a path. The agents' own hold their log-ins. */
const SECRET_DIRECTORIES = new Set([
  ...['.git', '.ssh', '.gnupg', '.aws', '.azure', '.kube', '.docker', '.password-store', '.config', '.local'],
  ...['.claude', '.codex', '.gemini', '.opencode', '.pi'],
])

const SECRET_NAMES = [
  // Environment files, and settings that hold keys or passwords.
  /^\.env/,
  /\.env$/,
  /^\.(npmrc|yarnrc(\.yml)?|netrc|pypirc|pgpass|my\.cnf|htpasswd|vault-token|git-credentials)$/,
  /^_netrc$/,
  /^\.?(credentials?|secrets?|oauth_creds|auth)(\.(json5?|toml|ya?ml|ini|db|txt|tfrc\.json))?$/,
  /^(client_secret|service[-_]account).*\.json$/,
  /\.tfstate(\.backup)?$/,
  /^\.\w+_history$/,
  // Private keys and key stores.
  /^id_(rsa|dsa|ecdsa|ed25519)/,
  /\.(pem|key|p12|pfx|p8|ppk|jks|keystore|kdbx)$/,
  // The gateway's own configuration, with tokens, and its database, with everyone's messages.
  /^aetheel\.(json5|db)/,
]

/**
 * Whether a file is one that people do not mean to send: a log-in, a key, version control, the gateway's own state.
 *
 * Contract: takes the path relative to the agent's root, free of links.
 */
export function isSecretPath(path: string): boolean {
  // Some file systems treat `.ENV` as `.env`.
  const parts = path.toLowerCase().split('/')
  const name = parts.at(-1) ?? ''
  // What people sent may be sent back.
  if (parts.some((part, index) => part === STATE_DIRECTORY && parts[index + 1] !== INBOX_DIRECTORY)) return true
  return parts.some((part) => SECRET_DIRECTORIES.has(part)) || SECRET_NAMES.some((pattern) => pattern.test(name))
}
