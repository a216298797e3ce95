// A gateway with the Discord channel in its own process: `gateway-process.ts <configuration file> <milliseconds the
// channel's clock is ahead> [step]`. At the step it kills itself.

import { openDiscord } from '../../../src/channels/configured-channels.js'
import { loadConfig } from '../../../src/config.js'
import { log, runGateway } from '../../kit/run-gateway.js'

const [, , file = '', aheadMs, step] = process.argv
const config = loadConfig(process.env, file)
const discord = await openDiscord(config, log, () => Date.now() + Number(aheadMs))
await runGateway(config, discord ? [discord] : [], { step })
