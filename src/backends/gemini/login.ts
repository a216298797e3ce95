// How Gemini CLI is logged in. No command reports it, so this reads the same files and variables as 0.61.0.

import { dirname, join } from 'node:path'
import { defined } from '../../core/defined.js'
import { isObject, type JsonObject } from '../engine/jsonl.js'
import { type LoginPlace, type LoginReading, storeKey, textOf } from '../engine/login.js'
import type { AgentLogin } from '../types.js'

const FIX = storeKey('GEMINI_API_KEY')

export async function geminiLogin(place: LoginPlace): Promise<LoginReading> {
  const directory = join(place.setting('GEMINI_CLI_HOME') ?? place.home, '.gemini')
  const settings = (await place.settings(join(directory, 'settings.json'))) ?? {}
  const model = place.setting('GEMINI_MODEL') ?? textOf(objectIn(settings, 'model')['name'])
  return defined({ login: await loginOf(place, directory, settings), model })
}

async function loginOf(place: LoginPlace, directory: string, settings: JsonObject): Promise<AgentLogin> {
  const chosen = textOf(objectIn(objectIn(settings, 'security'), 'auth')['selectedType'])
  switch (chosen ?? methodOf(place)) {
    case 'gemini-api-key':
      return place.byVariable('GEMINI_API_KEY') ?? (await byFile(place, directory)) ?? inKeychain()
    case 'vertex-ai':
      return byVertex(place)
    case 'oauth-personal':
      return (await place.text(join(directory, 'oauth_creds.json'))) === undefined ? loggedOut() : byAccount()
    case 'compute-default-credentials':
      return { state: 'logged-in', how: "this machine's Google Cloud credentials", fix: FIX }
    case 'gateway':
      return { state: 'unknown', why: NEEDS_CHOICE, fix: FIX }
    case undefined:
      return place.byVariable('GEMINI_API_KEY') ?? (await byFile(place, directory)) ?? loggedOut()
    default:
      return {
        state: 'unknown',
        why: `Its settings choose an unknown login method: ${chosen}.`,
        fix: FIX,
      }
  }
}

/** The login method that variables choose if the settings choose none. */
function methodOf(place: LoginPlace): string | undefined {
  if (place.setting('GOOGLE_GENAI_USE_GCA') === 'true') return 'oauth-personal'
  if (place.setting('GOOGLE_GENAI_USE_VERTEXAI') === 'true') return 'vertex-ai'
  if (place.setting('GOOGLE_GEMINI_BASE_URL') !== undefined) return 'gateway'
  return place.setting('GEMINI_CLI_USE_COMPUTE_ADC') === 'true' ? 'compute-default-credentials' : undefined
}

function byVertex(place: LoginPlace): AgentLogin {
  const hasProject = place.byVariable('GOOGLE_CLOUD_PROJECT') && place.byVariable('GOOGLE_CLOUD_LOCATION')
  if (hasProject) return { state: 'logged-in', how: 'Vertex AI, GOOGLE_CLOUD_PROJECT', fix: VERTEX_FIX }
  return place.byVariable('GOOGLE_API_KEY') ?? { state: 'logged-out', fix: VERTEX_FIX }
}

const VERTEX_FIX = 'gcloud auth application-default login'

/** It reads the nearest `.env` from the working directory upwards, or else the one in its own directory. */
async function byFile(place: LoginPlace, directory: string): Promise<AgentLogin | undefined> {
  const paths = upwards(place.workingDir).flatMap((one) => [join(one, '.gemini', '.env'), join(one, '.env')])
  for (const path of [...paths, join(directory, '.env')]) {
    const text = await place.text(path)
    if (text === undefined) continue
    return /^\s*(?:export\s+)?GEMINI_API_KEY\s*=\s*\S/m.test(text)
      ? { state: 'logged-in', how: path, fix: FIX }
      : undefined
  }
  return undefined
}

function upwards(directory: string): string[] {
  const parent = dirname(directory)
  return parent === directory ? [directory] : [directory, ...upwards(parent)]
}

/** A one-shot process fails without a choice; a warm one does not. */
const NEEDS_CHOICE =
  'With GOOGLE_GEMINI_BASE_URL, its settings.json must choose a login method: {"security":{"auth":{"selectedType":"gemini-api-key"}}}.'

function loggedOut(): AgentLogin {
  return { state: 'logged-out', fix: FIX }
}

function inKeychain(): AgentLogin {
  return { state: 'unknown', why: 'Its settings choose an API key, which may be in a keychain.', fix: FIX }
}

function byAccount(): AgentLogin {
  const why = 'It is logged in with a Google account. Since June 2026, only organisation accounts are accepted.'
  return { state: 'unknown', why, fix: FIX }
}

function objectIn(settings: JsonObject, key: string): JsonObject {
  const value = settings[key]
  return isObject(value) ? value : {}
}
