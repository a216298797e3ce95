// The names that Claude Code lists in answer to `initialize`. Captured from 2.1.326; see test/fixtures/claude.

import { isObject, type JsonObject } from '../engine/jsonl.js'
import type { LoginPlace } from '../engine/login.js'

const ARGS = ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose']
const INITIALIZE = { type: 'control_request', request_id: 'models', request: { subtype: 'initialize' } }

export async function claudeModels(place: LoginPlace): Promise<string[]> {
  const output = await place.ask(ARGS, { DISABLE_AUTOUPDATER: '1' }, `${JSON.stringify(INITIALIZE)}\n`)
  const line = output.split('\n').find((one) => one.startsWith('{') && one.includes('"control_response"')) ?? '{}'
  const { response } = JSON.parse(line) as { response?: { response?: { models?: unknown } } }
  const models = response?.response?.models
  if (!Array.isArray(models)) return []
  const names = models.filter((model): model is JsonObject => isObject(model)).map(({ value }) => value)
  return names.filter((name): name is string => typeof name === 'string' && name !== 'default')
}
