// How Codex is logged in. `codex login status` captured from 0.169.0; see test/fixtures/codex.

import { join } from 'node:path'
import { defined } from '../../core/defined.js'
import { type LoginPlace, type LoginReading, storeKey } from '../engine/login.js'
import type { AgentLogin } from '../types.js'

const FIX = 'codex login'

export async function codexLogin(place: LoginPlace): Promise<LoginReading> {
  const directory = place.setting('CODEX_HOME') ?? join(place.home, '.codex')
  const config = readConfig((await place.text(join(directory, 'config.toml'))) ?? '')
  return defined({ login: await loginOf(place, config), model: config.model })
}

async function loginOf(place: LoginPlace, { provider }: CodexConfig): Promise<AgentLogin> {
  if (!provider || provider.needsLogin) return openAiLogin(place)
  const { name, keyVariable } = provider
  if (keyVariable === undefined) return { state: 'logged-in', how: `its settings of ${name}`, fix: FIX }
  return place.byVariable(keyVariable) ?? { state: 'logged-out', fix: storeKey(keyVariable) }
}

/** OPENAI_API_KEY alone is not a login: Codex uses it only after `codex login --with-api-key`. */
async function openAiLogin(place: LoginPlace): Promise<AgentLogin> {
  const login = readStatus(await place.ask(['login', 'status']))
  if (login.state !== 'logged-out') return login
  const byKey = place.byVariable('CODEX_API_KEY')
  if (byKey) return byKey
  return place.setting('OPENAI_API_KEY') === undefined ? login : { ...login, fix: logInWith('OPENAI_API_KEY') }
}

function logInWith(variable: string): string {
  return `printenv ${variable} | codex login --with-api-key`
}

/** Codex prints part of an API key, which is left out. */
function readStatus(output: string): AgentLogin {
  if (/^not logged in/im.test(output)) return { state: 'logged-out', fix: FIX }
  const isKey = /^(?:api key configured|logged in using an api key)\b/im.test(output)
  const how = isKey ? 'an API key' : /^logged in using ([\w ]+)/im.exec(output)?.[1]
  return how === undefined
    ? { state: 'unknown', why: 'Its `codex login status` does not say.', fix: FIX }
    : { state: 'logged-in', how, fix: FIX }
}

interface CodexConfig {
  model?: string
  /** A provider other than OpenAI. */
  provider?: { name: string; keyVariable?: string; needsLogin: boolean }
}

/** Reads the few settings that matter, each on its own line, as Codex itself writes them. */
function readConfig(toml: string): CodexConfig {
  const tables = toml.split(/^\s*\[/m)
  const [top = '', ...named] = tables
  const model = valueOf(top, 'model')
  const name = valueOf(top, 'model_provider')
  const table = named.find((one) => one.replaceAll(/["'\s]/g, '').startsWith(`model_providers.${name}]`)) ?? ''
  const keyVariable = valueOf(table, 'env_key')
  const needsLogin = /^\s*requires_openai_auth\s*=\s*true/m.test(table)
  const isOther = name !== undefined && name !== 'openai'
  return defined({ model, provider: isOther ? defined({ name, keyVariable, needsLogin }) : undefined })
}

function valueOf(table: string, key: string): string | undefined {
  return new RegExp(String.raw`^\s*${key}\s*=\s*["']([^"'\n]+)["']`, 'm').exec(table)?.[1]
}
