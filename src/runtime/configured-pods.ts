import type { GatewayConfig } from '../config.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { createPods } from '../kubernetes/pods.js'
import type { Pods } from '../kubernetes/types.js'
import { secretsOf } from '../log.js'
import type { ProcessOwner } from '../processes/process-owner.js'

/** The pods that a configuration can reach, for the gateway and every command. */
export function configuredPods(
  { kubectlPath, agentEnvPass: passVariables }: Pick<GatewayConfig, 'kubectlPath' | 'agentEnvPass'>,
  environment: NodeJS.ProcessEnv,
  { owner, scrubber }: { owner?: ProcessOwner; scrubber?: Pick<Scrubber, 'add'> } = {},
): Pods {
  return createPods({
    environment,
    passVariables,
    kubectlPath,
    ...(owner && { owner }),
    // API keys of the agents in the container.
    onEnvironment: (container) => scrubber?.add(secretsOf(container)),
  })
}
