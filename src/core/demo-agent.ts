import { fileURLToPath } from 'node:url'

/** An executable that speaks Claude Code's wire format without a model: something to talk to without an account. */
export const DEMO_AGENT = fileURLToPath(new URL('../../demo/agent.mjs', import.meta.url))
