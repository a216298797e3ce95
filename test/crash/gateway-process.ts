// The gateway under test, as a process of its own: `gateway-process.ts <socket of the channel> [signal step occurrence]`.
// With the latter it sends itself that signal, such as SIGKILL, when it comes to that step for so many times.

import { loadConfig } from '../../src/config.js'
import { makeHome, startGateway } from '../../src/gateway.js'
import { createLog } from '../../src/log.js'
import { LoopbackChannel } from './loopback-channel.js'

const [, , socketPath = '', signal, fatalStep, occurrence] = process.argv
const config = loadConfig(process.env)
makeHome(config)

let occurrences = 0
const gateway = await startGateway(config, {
  environment: process.env,
  log: createLog({ level: 'debug' }),
  channels: [new LoopbackChannel(socketPath)],
  onStep: (step) => {
    if (signal === undefined || step !== fatalStep) return
    occurrences += 1
    if (occurrences === Number(occurrence)) process.kill(process.pid, signal)
  },
})

process.once('SIGTERM', () => void gateway.stop())
console.log(gateway.id)
