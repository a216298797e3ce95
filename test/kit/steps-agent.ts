// Messages for the agent `test/fixtures/bin/steps-agent.mjs`, and what it leaves in its working directory.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentPath } from './agents.js'

export const STEPS_AGENT = agentPath('steps-agent.mjs')

export interface Journaled {
  prompt: string
  sessionId: string
  isResumed: boolean
  model: string
  tools?: string
}

/** Steps for the agent, as a message. */
export function steps(...list: object[]): string {
  return JSON.stringify(list)
}

/** Releases an agent that waits at `{"hold": name}`. */
export function release(directory: string, name: string): void {
  writeFileSync(join(directory, `go-${name}`), '')
}

/** The prompts agents got in this directory, in order. */
export function journalIn<T = Journaled>(directory: string): T[] {
  const file = join(directory, 'journal')
  if (!existsSync(file)) return []
  // The last line may be incomplete.
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as T)
}
