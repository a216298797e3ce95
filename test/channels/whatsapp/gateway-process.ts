// A gateway with the WhatsApp channel and the HTTP server in its own process: `gateway-process.ts <configuration file>
// [step]`. At the step it kills itself.

import { randomUUID } from 'node:crypto'
import { openWhatsApp } from '../../../src/channels/configured-channels.js'
import { loadConfig } from '../../../src/config.js'
import { gitRunner } from '../../../src/projects/git-clone.js'
import { ProjectService } from '../../../src/projects/project-service.js'
import { startHttpServer } from '../../../src/service/server.js'
import { log, runGateway } from '../../kit/run-gateway.js'

const [, , file = '', step] = process.argv
const environment = process.env
const config = loadConfig(environment, file)
const channel = await openWhatsApp(() => config, { environment, log })
const gateway = await runGateway(config, channel ? [channel] : [], { step })
const { store, agents, credentials, metrics } = gateway
const clock = { now: Date.now, newId: randomUUID }
const projects = new ProjectService({ store, config, agents, run: gitRunner(environment), log, ...clock })
const endpoints = channel?.endpoints ?? []
await startHttpServer({ config, gateway, projects, credentials, metrics, endpoints, log, ...clock })
