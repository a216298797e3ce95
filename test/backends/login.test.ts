// How each agent is logged in, from variables, files and what its real CLI printed.

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CliBackend } from '../../src/backends/engine/cli-backend.js'
import { WarmPool } from '../../src/backends/engine/warm/warm-pool.js'
import { type AgentProbe, BACKEND_NAMES, type BackendName } from '../../src/backends/types.js'
import { createFakeBackend, createStage } from './fake-cli.js'

interface Situation {
  environment?: Record<string, string>
  /** Names of stored credentials. */
  stored?: string[]
  /** Below the home directory. */
  files?: Record<string, string>
  /** What the CLI prints when asked: a recording, or a text. */
  recording?: string
  prints?: string
  /** Whether the agent runs warm. */
  isWarm?: boolean
  model?: string
}

type Row = [what: string, situation: Situation, login: AgentProbe['login'], model?: string]

const claudeFix = 'claude auth login'
const byAccount = (how: string): AgentProbe['login'] => ({ state: 'logged-in', how, fix: claudeFix })
const byVariable = (name: string): AgentProbe['login'] => ({
  state: 'logged-in',
  how: name,
  fix: `aetheel credentials set ${name}`,
})
const byStored = (name: string): AgentProbe['login'] => ({
  state: 'logged-in',
  how: `the stored credential ${name}`,
  fix: `aetheel credentials set ${name}`,
})

const CLAUDE: Row[] = [
  ['nothing', { recording: 'login-none.json' }, { state: 'logged-out', fix: claudeFix }],
  ['a key, without asking the CLI', { environment: { ANTHROPIC_API_KEY: 'x' } }, byVariable('ANTHROPIC_API_KEY')],
  ['a token', { environment: { CLAUDE_CODE_OAUTH_TOKEN: 'x' } }, byVariable('CLAUDE_CODE_OAUTH_TOKEN')],
  [
    'a custom endpoint',
    { environment: { ANTHROPIC_BASE_URL: 'http://x', ANTHROPIC_AUTH_TOKEN: 'x' } },
    byVariable('ANTHROPIC_AUTH_TOKEN'),
  ],
  ['a stored key', { stored: ['ANTHROPIC_API_KEY'] }, byStored('ANTHROPIC_API_KEY')],
  ['an account', { recording: 'login-account.json' }, byAccount('a Claude account (max)')],
  ['a helper', { recording: 'login-helper.json' }, byAccount('its apiKeyHelper')],
  ['a token of its own', { recording: 'login-token.json' }, byAccount('an OAuth token')],
  ['a key of its own', { recording: 'login-api-key.json' }, byAccount('an API key')],
  ['a cloud', { recording: 'login-bedrock.json' }, byAccount('bedrock credentials')],
  [
    'a version without the command',
    { prints: "error: unknown command 'auth'" },
    { state: 'unknown', why: 'Its `claude auth status` does not say.', fix: claudeFix },
  ],
  [
    'the model of its settings',
    { recording: 'login-none.json', files: { '.claude/settings.json': '{"model":"opus"}' } },
    { state: 'logged-out', fix: claudeFix },
    'opus',
  ],
  [
    'the configured model, which wins',
    { recording: 'login-none.json', files: { '.claude/settings.json': '{"model":"opus"}' }, model: 'haiku' },
    { state: 'logged-out', fix: claudeFix },
    'haiku',
  ],
]

const codexOut = (fix = 'codex login'): AgentProbe['login'] => ({ state: 'logged-out', fix })
const codexIn = (how: string): AgentProbe['login'] => ({ state: 'logged-in', how, fix: 'codex login' })
const PROVIDER = `model = "gpt-5.5"
model_provider = "acme"
[model_providers.acme]
name = "Acme"
base_url = "http://127.0.0.1/v1"
`

const CODEX: Row[] = [
  ['nothing', { recording: 'login-none.txt' }, codexOut()],
  ['an account', { recording: 'login-chatgpt.txt' }, codexIn('ChatGPT')],
  ['a key, no part of which is told', { recording: 'login-api-key.txt' }, codexIn('an API key')],
  ['a key, as 0.166 tells it', { prints: 'Logged in using an API key - sk-proj-***ABCDE' }, codexIn('an API key')],
  [
    'OPENAI_API_KEY, which it does not read',
    { recording: 'login-none.txt', environment: { OPENAI_API_KEY: 'x' } },
    codexOut('printenv OPENAI_API_KEY | codex login --with-api-key'),
  ],
  ['CODEX_API_KEY', { recording: 'login-none.txt', environment: { CODEX_API_KEY: 'x' } }, byVariable('CODEX_API_KEY')],
  [
    'CODEX_API_KEY, when it is kept alive',
    { recording: 'login-none.txt', environment: { CODEX_API_KEY: 'x' }, isWarm: true },
    byVariable('CODEX_API_KEY'),
  ],
  [
    'a provider without a key',
    { files: { '.codex/config.toml': PROVIDER } },
    codexIn('its settings of acme'),
    'gpt-5.5',
  ],
  [
    'a provider whose key is missing',
    { files: { '.codex/config.toml': `${PROVIDER}env_key = "ACME_KEY"\n` } },
    codexOut('aetheel credentials set ACME_KEY'),
    'gpt-5.5',
  ],
  [
    'a provider whose key is stored',
    { files: { '.codex/config.toml': `${PROVIDER}env_key = "ACME_KEY"\n` }, stored: ['ACME_KEY'] },
    byStored('ACME_KEY'),
    'gpt-5.5',
  ],
  [
    'a provider that takes the login of OpenAI',
    { files: { '.codex/config.toml': `${PROVIDER}requires_openai_auth = true\n` }, recording: 'login-none.txt' },
    codexOut(),
    'gpt-5.5',
  ],
  [
    'an answer that is not understood',
    { prints: 'Error checking login status' },
    { state: 'unknown', why: 'Its `codex login status` does not say.', fix: 'codex login' },
  ],
]

const geminiFix = 'aetheel credentials set GEMINI_API_KEY'
const geminiOut: AgentProbe['login'] = { state: 'logged-out', fix: geminiFix }
const chosen = (selectedType: string): Record<string, string> => ({
  '.gemini/settings.json': JSON.stringify({ security: { auth: { selectedType } }, model: { name: 'gemini-3' } }),
})
const unknown = (why: string, fix = geminiFix): AgentProbe['login'] => ({
  state: 'unknown',
  why: expect.stringContaining(why) as string,
  fix,
})

const GEMINI: Row[] = [
  ['nothing', {}, geminiOut],
  ['a key', { environment: { GEMINI_API_KEY: 'x' } }, byVariable('GEMINI_API_KEY')],
  ['a stored key', { stored: ['GEMINI_API_KEY'] }, byStored('GEMINI_API_KEY')],
  ['GOOGLE_API_KEY alone, which it does not read', { environment: { GOOGLE_API_KEY: 'x' } }, geminiOut],
  [
    'a key in the file that it reads',
    { files: { '.gemini/.env': 'GEMINI_API_KEY=x\n' } },
    { state: 'logged-in', how: expect.stringMatching(/home\/\.gemini\/\.env$/) as string, fix: geminiFix },
  ],
  [
    'Vertex AI',
    { environment: { GOOGLE_GENAI_USE_VERTEXAI: 'true', GOOGLE_CLOUD_PROJECT: 'p', GOOGLE_CLOUD_LOCATION: 'eu' } },
    { state: 'logged-in', how: 'Vertex AI, GOOGLE_CLOUD_PROJECT', fix: 'gcloud auth application-default login' },
  ],
  [
    'Vertex AI with a key',
    { environment: { GOOGLE_GENAI_USE_VERTEXAI: 'true', GOOGLE_API_KEY: 'x' } },
    byVariable('GOOGLE_API_KEY'),
  ],
  [
    'Vertex AI without a project',
    { environment: { GOOGLE_GENAI_USE_VERTEXAI: 'true' } },
    { state: 'logged-out', fix: 'gcloud auth application-default login' },
  ],
  ['the login of an account that is not there', { files: chosen('oauth-personal') }, geminiOut, 'gemini-3'],
  [
    'the login of an account',
    { files: { ...chosen('oauth-personal'), '.gemini/oauth_creds.json': '{}' } },
    unknown('Since June 2026'),
    'gemini-3',
  ],
  ['a key that may be in a keychain', { files: chosen('gemini-api-key') }, unknown('keychain'), 'gemini-3'],
  [
    'a custom endpoint without a choice',
    { environment: { GOOGLE_GEMINI_BASE_URL: 'http://x', GEMINI_API_KEY: 'x' } },
    unknown('selectedType'),
  ],
  [
    'a custom endpoint with a choice',
    { environment: { GOOGLE_GEMINI_BASE_URL: 'http://x', GEMINI_API_KEY: 'x' }, files: chosen('gemini-api-key') },
    byVariable('GEMINI_API_KEY'),
    'gemini-3',
  ],
]

const opencodeFix = 'opencode auth login'
const OPENCODE: Row[] = [
  ['nothing', {}, unknown('free models', opencodeFix)],
  ['a key', { environment: { GROQ_API_KEY: 'x' } }, byVariable('GROQ_API_KEY')],
  ['a region, which is no key', { environment: { AWS_REGION: 'eu' } }, unknown('free models', opencodeFix)],
  ['a stored key', { stored: ['OPENROUTER_API_KEY'] }, byStored('OPENROUTER_API_KEY')],
  [
    'logins that it keeps',
    { files: { '.local/share/opencode/auth.json': '{"anthropic":{"type":"oauth"},"xai":{"type":"api"}}' } },
    { state: 'logged-in', how: 'its login to anthropic, xai', fix: opencodeFix },
  ],
  [
    'a provider in its settings, with comments',
    {
      files: {
        '.config/opencode/opencode.jsonc': '{ // mine\n "model": "acme/m", "provider": { "acme": { "options": {} } } }',
      },
    },
    { state: 'logged-in', how: 'its settings of acme', fix: opencodeFix },
    'acme/m',
  ],
  [
    'a provider in its variable',
    { environment: { OPENCODE_CONFIG_CONTENT: '{"provider":{"acme":{}}}' } },
    { state: 'logged-in', how: 'its settings of acme', fix: opencodeFix },
  ],
]

const piFix = { fix: 'pi', next: 'type /login' }
const PI: Row[] = [
  ['nothing', { recording: 'login-none.txt' }, { state: 'logged-out', ...piFix }],
  ['a key', { environment: { ANTHROPIC_API_KEY: 'x' } }, byVariable('ANTHROPIC_API_KEY')],
  ['a stored key', { stored: ['MISTRAL_API_KEY'] }, byStored('MISTRAL_API_KEY')],
  [
    'logins that it keeps',
    { files: { '.pi/agent/auth.json': '{"anthropic":{"type":"oauth"}}' } },
    { state: 'logged-in', how: 'its login to anthropic', ...piFix },
  ],
  [
    'keys in its settings',
    { recording: 'login-models.txt', files: { '.pi/agent/settings.json': '{"defaultModel":"m1"}' } },
    { state: 'logged-in', how: 'its settings of acme, zeta', ...piFix },
    'm1',
  ],
  [
    'an answer that is not understood',
    { prints: 'Error' },
    { state: 'unknown', why: 'Its `pi --list-models` does not say.', ...piFix },
  ],
]

const SITUATIONS: Record<BackendName, Row[]> = {
  claude: CLAUDE,
  codex: CODEX,
  gemini: GEMINI,
  opencode: OPENCODE,
  pi: PI,
}

describe.each(BACKEND_NAMES)('%s', (name) => {
  it.each(SITUATIONS[name])('%s', async (_what, situation, login, model) => {
    const probe = await probeIn(name, situation)
    expect([probe.login, probe.model]).toEqual([login, model])
  })

  it('reveals no value', async () => {
    const environment = { ANTHROPIC_API_KEY: SECRET, GEMINI_API_KEY: SECRET, CODEX_API_KEY: SECRET }
    const files = {
      '.local/share/opencode/auth.json': `{"xai":{"key":"${SECRET}"}}`,
      '.pi/agent/auth.json': `{"xai":{"key":"${SECRET}"}}`,
      '.gemini/.env': `GEMINI_API_KEY=${SECRET}\n`,
    }
    const probes = [
      await probeIn(name, { environment, prints: SECRET }),
      await probeIn(name, { files, prints: SECRET }),
    ]
    expect(JSON.stringify(probes)).not.toContain(SECRET)
  })
})

describe('the models that a command line lists', () => {
  it.each<[BackendName, Situation, string[]]>([
    ['claude', { recording: 'models.jsonl' }, ['opus', 'fable', 'sonnet', 'haiku']],
    ['claude', { prints: 'error: unknown option --verbose' }, []],
    [
      'codex',
      { recording: 'models.json' },
      [
        ...['gpt-6-astra', 'gpt-6.1-sol', 'gpt-6.1-terra', 'gpt-6-sol', 'gpt-6-luna'],
        ...['gpt-5.6-sol', 'gpt-5.6-terra', 'gpt-5.6-luna', 'gpt-5.5'],
      ],
    ],
    ['codex', { prints: '{"models": broken' }, []],
    ['gemini', { prints: 'gemini-2.5-pro' }, []],
    ['pi', { recording: 'login-models.txt' }, ['acme/m1', 'zeta/z1', 'zeta/z2']],
    ['pi', { recording: 'login-none.txt' }, []],
  ])('%s %j', async (name, situation, models) => {
    const backend = backendIn(name, situation)
    expect([await backend.models(), backend.capabilities().supportedModels]).toEqual([models, models])
  })

  it('opencode', async () => {
    const recording = 'models.txt'
    const models = await backendIn('opencode', { recording }).models()
    const lines = readFileSync(join(import.meta.dirname, '../fixtures/opencode', recording), 'utf8')
      .trim()
      .split('\n')
    expect([models.length > 0, models]).toEqual([true, lines])
  })

  it('are none if it is not installed', async () => {
    const backend = createFakeBackend('claude', '/nowhere/claude', createStage())
    expect(await backend.models()).toEqual([])
  })
})

const SECRET = 'sk-0123456789abcdef'

async function probeIn(name: BackendName, situation: Situation): Promise<AgentProbe> {
  const { stored = [] } = situation
  return backendIn(name, situation).probe({ storedVariables: stored })
}

function backendIn(name: BackendName, situation: Situation): CliBackend {
  const { environment = {}, files = {}, recording, prints = '', isWarm = false, model } = situation
  const stage = createStage()
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(stage.home, path)), { recursive: true })
    writeFileSync(join(stage.home, path), content)
  }
  const text =
    recording === undefined ? prints : readFileSync(join(import.meta.dirname, '../fixtures', name, recording), 'utf8')
  const answer = stage.write('answer', text)
  const cli = stage.write('cli', `#!/bin/sh\n[ "$1" = --version ] && echo 99.1.2 || cat '${answer}'\n`)
  chmodSync(cli, 0o755)
  const pool = new WarmPool({ log: LOG, now: Date.now, limits: LIMITS })
  return createFakeBackend(name, cli, stage, {
    environment,
    ...(model !== undefined && { config: { model } }),
    ...(isWarm && { dependencies: { warm: { mode: 'auto', pool } } }),
  })
}

const LOG = { debug() {}, info() {}, warn() {}, error() {} }
const LIMITS = { liveIdleMs: 1, liveMaxProcesses: 1, liveMaxMemoryMb: 1, liveSpare: false }
