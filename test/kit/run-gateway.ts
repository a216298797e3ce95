import type { Channel } from '../../src/channels/types.js'
import type { GatewayConfig } from '../../src/config.js'
import { type Gateway, makeHome, startGateway } from '../../src/gateway.js'
import { createLog } from '../../src/log.js'

/** The signal that a gateway sends itself when it reaches a step for the nth time; without a step, none. */
interface SignalAt {
  step: string | undefined
  signal?: string | undefined
  occurrence?: number
}

export const log = createLog({ level: 'debug' })

/** A gateway in its own process: prints its id when it has started, and stops on SIGTERM. */
export async function runGateway(
  config: GatewayConfig,
  channels: Channel[],
  { step: fatalStep, signal = 'SIGKILL', occurrence = 1 }: SignalAt,
): Promise<Gateway> {
  makeHome(config)
  let occurrences = 0
  const gateway = await startGateway(config, {
    environment: process.env,
    log,
    channels,
    onStep: (step) => {
      if (step !== fatalStep) return
      occurrences += 1
      if (occurrences === occurrence) process.kill(process.pid, signal)
    },
  })
  process.once('SIGTERM', () => void gateway.stop())
  console.log(gateway.id)
  return gateway
}
