import { fileURLToPath } from 'node:url'

/** An executable that speaks Claude Code's wire format without a model: something to talk to without an account. */
export const DEMO_AGENT = fileURLToPath(new URL('../../demo/agent.mjs', import.meta.url))

/** Its name in settings, tables and sentences about what it does. */
export const DEMO = 'demo'

/** The agent's name as people see it: the demo agent goes by its own, not by that of the agent it replaces. */
export function shownAgent(
  backend: string,
  { isDemoAgent, agentBackend }: { isDemoAgent: boolean; agentBackend: string },
): string {
  return isDemoAgent && backend === agentBackend ? DEMO : backend
}

/** Where its name introduces it. */
export const DEMO_AGENT_NAME = 'the demo agent, without a model'
