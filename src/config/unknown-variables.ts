import { nearestKey } from './nearest-key.js'
import { didYouMean } from './problems.js'
import { VARIABLES } from './variables.js'

const KNOWN = [...Object.values(VARIABLES).map(({ name }) => name), 'AETHEEL_HOME', 'AETHEEL_MASTER_KEY']

/** Only ours begin so. Of `AGENT_`, `HTTP_`, `KUBERNETES_`, `OPENCODE_`, `PROMPT_` and `SESSION_`, others have some, too. */
const OWN_PREFIX = /^(?:AETHEEL|APPROVAL|ATTACHMENT|BACKEND|DISCORD|QUERY|QUEUE|TWILIO|WHATSAPP)_/i

/** What we set for agents and hooks, what programs that use the HTTP API are given, and what our own tests read. */
const NO_SETTING = /^AETHEEL_(?:RUN_ID|OWNER_ID|POD_RUN_ID|HOOK|INSTRUCTIONS|TOKEN|TEST_\w+)$/

/** More would take the variables of other programs for ours. */
const MOST_MISTAKES = 2

/** A sentence for each environment variable that looks like one of ours, and is none. Contract: quotes no value. */
export function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    if (!value || KNOWN.includes(name) || NO_SETTING.test(name) || isOfService(name, value)) return []
    if (!OWN_PREFIX.test(name) && nearestKey(name, KNOWN, MOST_MISTAKES) === undefined) return []
    return [`${name}: unknown variable${didYouMean(name, KNOWN) || ', which does nothing.'}`]
  })
}

/** Kubernetes names the services around a pod in its environment, and one may be called `aetheel` or `backend`. */
function isOfService(name: string, value: string): boolean {
  return /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)/.test(name) || /^(?:tcp|udp|sctp):\/\//.test(value)
}
