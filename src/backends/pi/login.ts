// How Pi is logged in: by keys of model providers. `pi --list-models` captured from 0.87.1 and 0.73.1; see test/fixtures/pi.

import { join } from 'node:path'
import { defined } from '../../core/defined.js'
import { byProviderKey, type LoginPlace, type LoginReading, textOf } from '../engine/login.js'
import type { AgentLogin } from '../types.js'

/** No command logs it in. */
const FIX = { fix: 'pi', next: 'type /login' }

export async function piLogin(place: LoginPlace): Promise<LoginReading> {
  const directory = place.setting('PI_CODING_AGENT_DIR') ?? join(place.home, '.pi', 'agent')
  const settings = (await place.settings(join(directory, 'settings.json'))) ?? {}
  return defined({ login: await loginOf(place, directory), model: textOf(settings['defaultModel']) })
}

async function loginOf(place: LoginPlace, directory: string): Promise<AgentLogin> {
  const byVariable = byProviderKey(place)
  if (byVariable) return byVariable
  const kept = Object.keys((await place.settings(join(directory, 'auth.json'))) ?? {})
  if (kept.length > 0) return { state: 'logged-in', how: `its login to ${kept.join(', ')}`, ...FIX }
  return readModels(await listed(place))
}

export async function piModels(place: LoginPlace): Promise<string[]> {
  return modelsIn(await listed(place)).map(({ provider, model }) => `${provider}/${model}`)
}

/** The models of all providers it has a key for, including those in its settings. */
function listed(place: LoginPlace): Promise<string> {
  return place.ask(['--list-models'], { PI_OFFLINE: '1' })
}

function modelsIn(output: string): { provider: string; model: string }[] {
  const [, ...rows] = output.slice(Math.max(0, output.search(/^provider\s+model\b/m))).split('\n')
  return rows.flatMap((row) => {
    const [, provider, model] = /^([\w.-]+)\s{2,}(\S+)/.exec(row) ?? []
    return provider === undefined || model === undefined ? [] : [{ provider, model }]
  })
}

function readModels(output: string): AgentLogin {
  if (/^no models available/im.test(output)) return { state: 'logged-out', ...FIX }
  const providers = new Set(modelsIn(output).map(({ provider }) => provider))
  if (providers.size === 0) return { state: 'unknown', why: 'Its `pi --list-models` does not say.', ...FIX }
  return { state: 'logged-in', how: `its settings of ${[...providers].join(', ')}`, ...FIX }
}
