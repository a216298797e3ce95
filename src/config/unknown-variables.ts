import { nearestKey } from './nearest-key.js'
import { didYouMean } from './problems.js'
import { VARIABLES } from './variables.js'

const KNOWN = [...Object.values(VARIABLES).map(({ name }) => name), 'AETHEEL_HOME', 'AETHEEL_MASTER_KEY']

/** Others use `AGENT_`, `HTTP_`, `KUBERNETES_`, `OPENCODE_`, `PROMPT_` and `SESSION_` too, but not these. */
const OWN_PREFIX = /^(?:AETHEEL|APPROVAL|ATTACHMENT|BACKEND|DISCORD|QUERY|QUEUE|TWILIO|WHATSAPP)_/i

/** Set by us for agents and hooks, used by clients of the HTTP API, or read by our own tests. */
const NO_SETTING = /^AETHEEL_(?:RUN_ID|OWNER_ID|POD_RUN_ID|HOOK|INSTRUCTIONS|TOKEN|TEST_\w+)$/

/** With more, variables of other programs would be taken for ours. */
const MOST_MISTAKES = 2

/** A sentence for each environment variable that looks like one of ours but is not. Contract: quotes no value. */
export function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    if (!value || KNOWN.includes(name) || NO_SETTING.test(name) || isOfService(name, value)) return []
    if (!OWN_PREFIX.test(name) && nearestKey(name, KNOWN, MOST_MISTAKES) === undefined) return []
    return [`${name}: unknown variable${didYouMean(name, KNOWN) || ', which has no effect.'}`]
  })
}

/** Kubernetes names the services around a pod in its environment, and one may be called `aetheel` or `backend`. */
function isOfService(name: string, value: string): boolean {
  return /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)/.test(name) || /^(?:tcp|udp|sctp):\/\//.test(value)
}
