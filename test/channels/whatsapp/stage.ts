// A gateway in this process with the WhatsApp channel and the HTTP server, and a Twilio on loopback.

import { randomUUID } from 'node:crypto'
import type { TestContext } from 'vitest'
import { openWhatsApp } from '../../../src/channels/configured-channels.js'
import type { GatewayConfig } from '../../../src/config.js'
import type { Gateway, GatewayDependencies } from '../../../src/gateway.js'
import { gitRunner } from '../../../src/projects/git-clone.js'
import { ProjectService } from '../../../src/projects/project-service.js'
import { type HttpServer, startHttpServer } from '../../../src/service/server.js'
import { GatewayStage } from '../../kit/gateway-stage.js'
import { STEPS_AGENT } from '../../kit/steps-agent.js'
import { FakeTwilio } from './fake-twilio.js'

export const ADA = '+4915112345678'
export const BEN = '+4915187654321'
export const STRANGER = '+4915100009999'
export const PUBLIC_URL = 'https://gateway.example'

/** Often enough for tests; people cannot configure it. */
const POLL_SECONDS = 0.1

export interface StartOptions extends Pick<GatewayDependencies, 'onStep'> {
  /** Without it, Twilio is polled. */
  isListening?: boolean
  now?: () => number
}

export class WhatsAppStage extends GatewayStage {
  readonly #servers = new Map<Gateway, HttpServer>()

  private constructor(
    readonly twilio: FakeTwilio,
    onTestFinished: TestContext['onTestFinished'],
  ) {
    super(onTestFinished)
  }

  static async open(onTestFinished: TestContext['onTestFinished']): Promise<WhatsAppStage> {
    const twilio = await FakeTwilio.start()
    onTestFinished(() => twilio.stop())
    return new WhatsAppStage(twilio, onTestFinished)
  }

  /** `reply` is the block `inbound.reply`; both are in addition to what every test needs. */
  config(reply: object = {}, settings: object = {}, isListening = true): GatewayConfig {
    const { twilio, workingDir } = this
    const config = this.load({
      backendCliPath: STEPS_AGENT,
      agentMode: 'oneshot',
      workingDir,
      twilioAccountSid: twilio.accountSid,
      twilioAuthToken: twilio.authToken,
      twilioWhatsappFrom: twilio.number,
      twilioApiUrl: twilio.apiUrl,
      httpPort: 0,
      drainTimeoutMs: 0,
      inbound: { reply: { agent: { kind: 'claude' }, allowFrom: [ADA, BEN], ...reply } },
      ...(isListening && { publicUrl: PUBLIC_URL }),
      ...settings,
    })
    return { ...config, whatsappPollSeconds: POLL_SECONDS }
  }

  async start(reply: object = {}, { isListening = true, now, onStep }: StartOptions = {}): Promise<Gateway> {
    return this.startWith(this.config(reply, {}, isListening), { ...(now && { now }), ...(onStep && { onStep }) })
  }

  async startWith(config: GatewayConfig, { now, onStep }: StartOptions = {}): Promise<Gateway> {
    const { environment, log } = this
    const channel = await openWhatsApp(() => config, { environment, log, ...(now && { now }) })
    if (!channel) throw new Error('WhatsApp is not configured')
    const gateway = await this.launch(config, { channels: [channel], ...(onStep && { onStep }) })
    const { endpoints = [] } = channel
    if (endpoints.length > 0) {
      const { store, agents, credentials, metrics } = gateway
      const clock = { now: Date.now, newId: randomUUID }
      const projects = new ProjectService({ store, config, agents, run: gitRunner(environment), log, ...clock })
      const dependencies = { config, gateway, projects, credentials, metrics, endpoints, log, ...clock }
      const server = await startHttpServer(dependencies)
      this.#servers.set(gateway, server)
      this.twilio.webhook = { target: server.url, publicUrl: config.publicUrl ?? '' }
    }
    return gateway
  }

  override async stop(gateway: Gateway): Promise<void> {
    await this.#servers.get(gateway)?.close()
    this.#servers.delete(gateway)
    await super.stop(gateway)
  }
}
