// How OpenCode is logged in: by keys of model providers, which it keeps itself or finds in variables and settings.

import { join } from 'node:path'
import { defined } from '../../core/defined.js'
import { isObject, type JsonObject } from '../engine/jsonl.js'
import { byProviderKey, type LoginPlace, type LoginReading, textOf } from '../engine/login.js'
import { mergeSettings, parseSettings } from '../engine/settings.js'
import type { AgentLogin } from '../types.js'

export const OPENCODE_LOGIN = 'opencode auth login'

export async function opencodeLogin(place: LoginPlace): Promise<LoginReading> {
  const settings = await settingsOf(place)
  return defined({ login: await loginOf(place, settings), model: textOf(settings['model']) })
}

/** `opencode models` lists them, one per line. */
export async function opencodeModels(place: LoginPlace): Promise<string[]> {
  const output = await place.ask(['models'], { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' })
  return output.split('\n').filter((line) => /^[\w.-]+\/\S+$/.test(line))
}

async function loginOf(place: LoginPlace, settings: JsonObject): Promise<AgentLogin> {
  const byVariable = byProviderKey(place)
  if (byVariable) return byVariable
  const data = place.setting('XDG_DATA_HOME') ?? join(place.home, '.local', 'share')
  const kept = Object.keys((await place.settings(join(data, 'opencode', 'auth.json'))) ?? {})
  if (kept.length > 0) return loggedIn(`its login to ${kept.join(', ')}`)
  const providers = isObject(settings['provider']) ? Object.keys(settings['provider']) : []
  if (providers.length > 0) return loggedIn(`its settings of ${providers.join(', ')}`)
  const why = 'It is not logged in to any provider, so it has only the free models that OpenCode offers.'
  return { state: 'unknown', why, fix: OPENCODE_LOGIN }
}

function loggedIn(how: string): AgentLogin {
  return { state: 'logged-in', how, fix: OPENCODE_LOGIN }
}

/** Later files win. */
async function settingsOf(place: LoginPlace): Promise<JsonObject> {
  const directory = join(place.setting('XDG_CONFIG_HOME') ?? join(place.home, '.config'), 'opencode')
  const named = place.setting('OPENCODE_CONFIG')
  const paths = [
    ...['config.json', 'opencode.json', 'opencode.jsonc'].map((name) => join(directory, name)),
    ...(named === undefined ? [] : [named]),
    ...['opencode.json', 'opencode.jsonc'].map((name) => join(place.workingDir, name)),
  ]
  const files = await Promise.all(paths.map((path) => place.settings(path)))
  return [...files, inVariable(place)].reduce<JsonObject>((all, own) => mergeSettings(all, own ?? {}), {})
}

function inVariable(place: LoginPlace): JsonObject {
  try {
    return parseSettings(place.setting('OPENCODE_CONFIG_CONTENT') ?? '{}')
  } catch {
    return {} // OpenCode reports the error on each turn.
  }
}
