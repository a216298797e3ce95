import { randomUUID } from 'node:crypto'
import { answerApproval } from '../approvals/answer-approval.js'
import type { ApprovalService } from '../approvals/approval-service.js'
import type { GatewayConfig } from '../config.js'
import { ControlClient } from './control/client.js'
import { LocalControl } from './control/local-control.js'
import { operations } from './control/operations.js'
import { type Control, socketPath } from './control/protocol.js'
import { databaseFile, makeHome } from '../gateway.js'
import type { Log } from '../log.js'
import { Queue } from '../turns/queue.js'
import { openStore } from '../store/store.js'

/** Makes a change through the running gateway, or directly in the database if there is none. */
export async function withControl<T>(
  config: GatewayConfig,
  log: Log,
  work: (control: Control) => Promise<T>,
): Promise<T> {
  const control = (await ControlClient.connect(socketPath(config.home))) ?? (await openLocally(config, log))
  try {
    return await work(control)
  } finally {
    await control.close()
  }
}

async function openLocally(config: GatewayConfig, log: Log): Promise<Control> {
  makeHome(config)
  const store = await openStore({ file: databaseFile(config), databaseUrl: config.databaseUrl }, log)
  const now = Date.now
  const queue = new Queue(store, { ...config, gatewayId: randomUUID(), now, newId: randomUUID })
  const approvals: Pick<ApprovalService, 'answer'> = {
    answer: (id, decision, note) => answerApproval(store, id, decision, now(), note),
  }
  // Nobody to wake: the next gateway finds the work.
  return new LocalControl(operations({ store, queue, approvals, wake: () => {}, now }), () => store.close())
}
