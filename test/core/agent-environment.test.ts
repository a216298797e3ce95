import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentEnvironment } from '../../src/core/agent-environment.js'
import { PROVIDER_VARIABLES } from '../../src/backends/engine/provider-variables.js'

const OWN = ['ANTHROPIC_*', 'CLAUDE_*', 'IS_SANDBOX']

describe('an agent', () => {
  it.each([
    ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'SSH_AUTH_SOCK', 'XDG_CONFIG_HOME'],
    ...['LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ'],
    ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
    ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
    ...['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'CLAUDE_CONFIG_DIR', 'IS_SANDBOX'],
  ])('gets %s', (name) => {
    expect(agentEnvironment({ [name]: 'value' }, OWN)).toEqual({ [name]: 'value' })
  })

  it.each([
    ...['AETHEEL_TOKEN', 'AETHEEL_', 'DISCORD_TOKEN', 'DISCORD_BOT_TOKEN', 'TWILIO_AUTH_TOKEN', 'DATABASE_URL'],
    ...['OPENCODE_URL', 'OPENCODE_USERNAME', 'OPENCODE_PASSWORD', 'OPENCODE_ENABLED'],
  ])('never gets %s, even if configured to pass it', (name) => {
    expect(agentEnvironment({ [name]: 'secret' }, [name, '*', 'OPENCODE_*'])).toEqual({})
  })

  it.each([
    ...['OPENAI_API_KEY', 'GITHUB_TOKEN', 'AWS_SECRET_ACCESS_KEY', 'NPM_TOKEN', 'PGPASSWORD', 'NODE_OPTIONS'],
    ...['path', 'PATHS', 'XPATH', 'IS_SANDBOXED', 'ANTHROPIC', 'LC', 'LD_PRELOAD'],
  ])('does not get %s, which is not its own', (name) => {
    expect(agentEnvironment({ [name]: 'value' }, OWN)).toEqual({})
  })

  it.each([
    ...['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'AZURE_OPENAI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_CLOUD_PROJECT'],
    ...['AWS_PROFILE', 'GROQ_API_KEY', 'CEREBRAS_API_KEY', 'XAI_API_KEY', 'OPENROUTER_API_KEY', 'MISTRAL_API_KEY'],
    ...['DEEPSEEK_API_KEY', 'ZAI_API_KEY', 'MINIMAX_API_KEY', 'MOONSHOT_API_KEY', 'KIMI_API_KEY', 'HF_TOKEN'],
    ...['FIREWORKS_API_KEY', 'AI_GATEWAY_API_KEY', 'CLOUDFLARE_API_KEY', 'XIAOMI_API_KEY', 'COPILOT_GITHUB_TOKEN'],
    ...['DEEPINFRA_API_KEY', 'DATABRICKS_HOST', 'CLARIFAI_PAT'],
  ])('of any provider gets %s', (name) => {
    expect(agentEnvironment({ [name]: 'value' }, PROVIDER_VARIABLES)).toEqual({ [name]: 'value' })
  })

  it.each(['STRIPE_API_KEY', 'GITHUB_TOKEN', 'GH_TOKEN', 'NPM_TOKEN'])('of any provider does not get %s', (name) => {
    expect(agentEnvironment({ [name]: 'value' }, PROVIDER_VARIABLES)).toEqual({})
  })

  it('does not get a variable that has no value', () => {
    expect(agentEnvironment({ PATH: undefined, HOME: '' }, OWN)).toEqual({ HOME: '' })
  })

  it('gets only what is listed, whatever the operator has', () => {
    const anyName = fc.oneof(
      fc.string({ unit: 'grapheme-ascii', minLength: 1 }),
      fc.constantFrom(
        'PATH',
        'ANTHROPIC_API_KEY',
        'DISCORD_TOKEN',
        'AETHEEL_X',
        '__proto__',
        'constructor',
        'DATABASE_URL',
      ),
    )
    const listed =
      /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|SSH_AUTH_SOCK|XDG_.*|LANG|LANGUAGE|LC_.*|TZ|(?:HTTP|HTTPS|ALL|NO)_PROXY|(?:http|https|all|no)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|ANTHROPIC_.*)$/s
    fc.assert(
      fc.property(fc.dictionary(anyName, fc.string()), (operator) => {
        const passed = Object.entries(operator).filter(([name]) => listed.test(name))
        expect(agentEnvironment(operator, ['ANTHROPIC_*'])).toEqual(Object.fromEntries(passed))
      }),
    )
  })
})
