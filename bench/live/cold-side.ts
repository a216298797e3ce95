/** The bare CLI, one process per turn. */
import { recordInvocation, timeBare } from '../bare-turn.js'
import { ANSWER } from './script.js'
import type { OpenSide } from './side.js'

/** Each turn has its own session. */
export const coldSide: OpenSide = async ({ agent, installation, sandbox, signal }) => {
  const invocation = await recordInvocation(agent, sandbox, signal)
  return {
    async open() {
      return { say: async () => ({ ...(await timeBare(installation.cliPath, invocation, signal)), text: ANSWER }) }
    },
    close: async () => {},
  }
}
