import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const LONGEST_MS = 60_000

/** Waits until it holds; nothing depends on how long it takes. Also for tests that run at once, which `expect.poll` is not. */
export async function until<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  what: string,
): Promise<T> {
  const deadline = Date.now() + LONGEST_MS
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (Date.now() > deadline) throw new Error(`It did not come: ${what}`)
    await sleep(20)
  }
}

/** What the agent of `test/fixtures/bin/steps-agent.mjs` was asked in a directory, in order. */
export function journalIn<T>(directory: string): T[] {
  const file = join(directory, 'journal')
  if (!existsSync(file)) return []
  // The last one may only be half there.
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as T)
}
