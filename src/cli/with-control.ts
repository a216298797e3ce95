import { randomUUID } from 'node:crypto'
import { answerApproval } from '../approvals/answer-approval.js'
import type { ApprovalService } from '../approvals/approval-service.js'
import type { GatewayConfig } from '../config.js'
import { ControlClient } from './control/client.js'
import { LocalControl } from './control/local-control.js'
import { operations } from './control/operations.js'
import { type Control, socketPath } from './control/protocol.js'
import { GatewayError } from '../errors.js'
import type { Log } from '../log.js'
import { Queue } from '../turns/queue.js'
import { closing, openForChanges } from './open-store.js'

/** For operations that need a running gateway. */
export async function withGateway<T>(home: string, work: (control: Control) => Promise<T>): Promise<T> {
  const control = await ControlClient.connect(socketPath(home))
  if (control) return closing(control, work)
  throw new GatewayError('gateway_unavailable', 'No gateway is running here. Start one with "aetheel start".')
}

/** Makes a change through the running gateway, or directly in the database if there is none. */
export async function withControl<T>(
  config: GatewayConfig,
  log: Log,
  work: (control: Control) => Promise<T>,
): Promise<T> {
  const running = await ControlClient.connect(socketPath(config.home))
  return closing<Control, T>(running ?? (await openLocally(config, log)), work)
}

async function openLocally(config: GatewayConfig, log: Log): Promise<Control> {
  const store = await openForChanges(config, log)
  const now = Date.now
  const queue = new Queue(store, { ...config, gatewayId: randomUUID(), now, newId: randomUUID })
  const approvals: Pick<ApprovalService, 'answer'> = {
    answer: (id, decision, note) => answerApproval(store, id, decision, now(), note),
  }
  // Nobody to wake: the next gateway finds the work.
  return new LocalControl(operations({ store, queue, approvals, wake: () => {}, now }), () => store.close())
}
