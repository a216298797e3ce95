// Fake agents.

import { fileURLToPath } from 'node:url'

/** Answers without a model; the agent of `aetheel demo`. */
export const DEMO_AGENT = fileURLToPath(new URL('../../demo/agent.mjs', import.meta.url))

/** Answers with exactly its prompt. */
export const ECHO_AGENT = `#!/usr/bin/env node
import { text } from 'node:stream/consumers'
const result = await text(process.stdin)
console.log(JSON.stringify({ type: 'result', subtype: 'success', is_error: false, session_id: 's1', result }))
`

export type AgentName =
  | 'any-agent.mjs'
  | 'deaf-agent.sh'
  | 'fake-agent.sh'
  | 'live-agent.mjs'
  | 'mirror-agent.sh'
  | 'old-agent.mjs'
  | 'serving-opencode.mjs'
  | 'steps-agent.mjs'
  | 'unready-agent.sh'
  | 'warm-agent.sh'

/** The executable of this name in `test/fixtures/bin`. */
export function agentPath(name: AgentName): string {
  return fileURLToPath(new URL(`../fixtures/bin/${name}`, import.meta.url))
}
