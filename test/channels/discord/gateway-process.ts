// A gateway with the Discord channel in its own process: `gateway-process.ts <configuration file> <milliseconds the
// channel's clock is ahead> [step]`. At the step it kills itself.

import { openDiscord } from '../../../src/channels/configured-channels.js'
import { loadConfig } from '../../../src/config.js'
import { makeHome, startGateway } from '../../../src/gateway.js'
import { createLog } from '../../../src/log.js'

const [, , file = '', aheadMs, fatalStep] = process.argv
const config = loadConfig(process.env, file)
makeHome(config)
const log = createLog({ level: 'debug' })
const discord = await openDiscord(config, log, () => Date.now() + Number(aheadMs))

const gateway = await startGateway(config, {
  environment: process.env,
  log,
  channels: discord ? [discord] : [],
  onStep: (step) => {
    if (step === fatalStep) process.kill(process.pid, 'SIGKILL')
  },
})

process.once('SIGTERM', () => void gateway.stop())
