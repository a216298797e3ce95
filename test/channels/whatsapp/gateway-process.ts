// A gateway with the WhatsApp channel and the HTTP server in its own process: `gateway-process.ts <configuration file>
// [step]`. At the step it kills itself.

import { randomUUID } from 'node:crypto'
import { openWhatsApp } from '../../../src/channels/configured-channels.js'
import { loadConfig } from '../../../src/config.js'
import { makeHome, startGateway } from '../../../src/gateway.js'
import { startHttpServer } from '../../../src/service/server.js'
import { createLog } from '../../../src/log.js'
import { gitRunner } from '../../../src/projects/git-clone.js'
import { ProjectService } from '../../../src/projects/project-service.js'

const [, , file = '', fatalStep] = process.argv
const environment = process.env
const config = loadConfig(environment, file)
makeHome(config)
const log = createLog({ level: 'debug' })
const channel = await openWhatsApp(() => config, { environment, log })
const gateway = await startGateway(config, {
  environment,
  log,
  channels: channel ? [channel] : [],
  onStep: (step) => {
    if (step === fatalStep) process.kill(process.pid, 'SIGKILL')
  },
})
const { store, agents, credentials, metrics } = gateway
const clock = { now: Date.now, newId: randomUUID }
const projects = new ProjectService({ store, config, agents, run: gitRunner(environment), log, ...clock })
const endpoints = channel?.endpoints ?? []
const server = await startHttpServer({ config, gateway, projects, credentials, metrics, endpoints, log, ...clock })

process.once('SIGTERM', () => void server.close().then(() => gateway.stop()))
