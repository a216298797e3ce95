// The models of Codex's catalogue. `codex debug models` captured from 0.169.0; see test/fixtures/codex.

import { isObject } from '../engine/jsonl.js'
import type { LoginPlace } from '../engine/login.js'

export async function codexModels(place: LoginPlace): Promise<string[]> {
  const output = await place.ask(['debug', 'models'])
  const line = output.split('\n').find((one) => one.startsWith('{')) ?? '{}'
  const { models } = JSON.parse(line) as { models?: unknown }
  if (!Array.isArray(models)) return []
  return models.flatMap((model: unknown) => {
    if (!isObject(model)) return []
    const { slug, visibility } = model
    return typeof slug === 'string' && visibility === 'list' ? [slug] : []
  })
}
