import { fileURLToPath } from 'node:url'

/** An executable that speaks Claude Code's wire format without a model: something to talk to without an account. */
export const DEMO_AGENT = fileURLToPath(new URL('../../demo/agent.mjs', import.meta.url))

/** In place of the agent's name, wherever one is shown. */
export const DEMO_AGENT_NAME = 'the demo agent, without a model'
