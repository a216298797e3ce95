// The gateway under test in its own process: `gateway-process.ts <socket of the channel> [signal step occurrence]`. It
// sends itself that signal, such as SIGKILL, when it reaches that step for the nth time.

import { loadConfig } from '../../src/config.js'
import { runGateway } from '../kit/run-gateway.js'
import { LoopbackChannel } from './loopback-channel.js'

const [, , socketPath = '', signal, step, occurrence] = process.argv
const channels = [new LoopbackChannel(socketPath)]
await runGateway(loadConfig(process.env), channels, { step, signal, occurrence: Number(occurrence) })
