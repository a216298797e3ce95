import JSON5 from 'json5'
import { isObject, type JsonObject } from './jsonl.js'

/** Reads settings as the CLIs do, allowing comments. Contract: throws if they are not an object. */
export function parseSettings(text: string): JsonObject {
  const settings: unknown = JSON5.parse(text)
  if (isObject(settings)) return settings
  throw new SyntaxError('the settings are not an object')
}

/** Objects are merged key by key, anything else is replaced. */
export function mergeSettings(base: JsonObject, over: JsonObject): JsonObject {
  const merged = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key]
    merged[key] = isObject(value) && isObject(below) ? mergeSettings(below, value) : value
  }
  return merged
}
