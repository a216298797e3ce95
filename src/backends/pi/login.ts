// How Pi is logged in: by keys of model providers. `pi --list-models` captured from 0.87.1 and 0.73.1; see test/fixtures/pi.

import { join } from 'node:path'
import { defined } from '../../core/defined.js'
import { byProviderKey, type LoginPlace, type LoginReading, textOf } from '../engine/login.js'
import type { AgentLogin } from '../types.js'

const FIX = 'pi, then /login'

export async function piLogin(place: LoginPlace): Promise<LoginReading> {
  const directory = place.setting('PI_CODING_AGENT_DIR') ?? join(place.home, '.pi', 'agent')
  const settings = (await place.settings(join(directory, 'settings.json'))) ?? {}
  return defined({ login: await loginOf(place, directory), model: textOf(settings['defaultModel']) })
}

async function loginOf(place: LoginPlace, directory: string): Promise<AgentLogin> {
  const byVariable = byProviderKey(place)
  if (byVariable) return byVariable
  const kept = Object.keys((await place.settings(join(directory, 'auth.json'))) ?? {})
  if (kept.length > 0) return { state: 'logged-in', how: `its login to ${kept.join(', ')}`, fix: FIX }
  return readModels(await place.ask(['--list-models'], { PI_OFFLINE: '1' }))
}

/** It lists the models of the providers that it has a key of, also in its settings. */
function readModels(output: string): AgentLogin {
  if (/^no models available/im.test(output)) return { state: 'logged-out', fix: FIX }
  const [, ...rows] = output.slice(Math.max(0, output.search(/^provider\s+model\b/m))).split('\n')
  const providers = new Set(rows.flatMap((row) => /^([\w.-]+)\s{2,}\S/.exec(row)?.[1] ?? []))
  if (providers.size === 0) return { state: 'unknown', why: 'Its `pi --list-models` does not say.', fix: FIX }
  return { state: 'logged-in', how: `its settings of ${[...providers].join(', ')}`, fix: FIX }
}
