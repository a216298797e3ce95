// How Claude Code is logged in. `claude auth status` captured from 2.1.326; see test/fixtures/claude.

import { join } from 'node:path'
import { defined } from '../../core/defined.js'
import type { JsonObject } from '../engine/jsonl.js'
import { type LoginPlace, type LoginReading, textOf } from '../engine/login.js'
import { parseSettings } from '../engine/settings.js'
import type { AgentLogin } from '../types.js'

const FIX = 'claude auth login'

export async function claudeLogin(place: LoginPlace): Promise<LoginReading> {
  const directory = place.setting('CLAUDE_CONFIG_DIR') ?? join(place.home, '.claude')
  const settings = await place.settings(join(directory, 'settings.json'))
  const model = place.setting('ANTHROPIC_MODEL') ?? textOf(settings?.['model'])
  const byVariable = place.byVariable('ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN')
  return defined({ login: byVariable ?? (await askForLogin(place)), model })
}

/** A login may come from a keychain, a helper program or a cloud provider, so only the CLI itself can tell. */
async function askForLogin(place: LoginPlace): Promise<AgentLogin> {
  return readStatus(await place.ask(['auth', 'status', '--json'], { DISABLE_AUTOUPDATER: '1' }))
}

/** Leaves out what it says about the person. */
function readStatus(output: string): AgentLogin {
  const status = statusIn(output)
  if (status['loggedIn'] === false) return { state: 'logged-out', fix: FIX }
  if (status['loggedIn'] === true) return { state: 'logged-in', how: describe(status), fix: FIX }
  return { state: 'unknown', why: 'Its `claude auth status` does not say.', fix: FIX }
}

/** Empty if there is none: older versions do not know the command. */
function statusIn(output: string): JsonObject {
  try {
    return parseSettings(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1))
  } catch {
    return {}
  }
}

function describe({ authMethod, apiProvider, subscriptionType }: JsonObject): string {
  switch (authMethod) {
    case 'claude.ai':
      return `a Claude account (${textOf(subscriptionType) ?? 'plan unknown'})`
    case 'third_party':
      return `${textOf(apiProvider) ?? 'cloud'} credentials`
    case 'api_key_helper':
      return 'its apiKeyHelper'
    case 'oauth_token':
      return 'an OAuth token'
    default:
      return 'an API key'
  }
}
