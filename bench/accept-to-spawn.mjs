// Runs a gateway from the build, as operators do, and prints the median times from a message's arrival to the call that
// starts its agent, and to the existence of the agent's process. In its own process, because spawning takes the kernel
// longer the more memory the parent has.
import { subscribe } from 'node:diagnostics_channel'
import { loadConfig } from '../dist/config.js'
import { startGateway } from '../dist/gateway.js'
import { createLog } from '../dist/log.js'

const TURNS = 100
const environment = process.env

let replied = () => {}
const channel = {
  name: 'bench',
  start: async () => {},
  send: async () => replied(),
  stop: async () => {},
  close: async () => {},
}
const gateway = await startGateway(loadConfig(environment), { environment, log: createLog(), channels: [channel] })

let calledAt = 0
let startedAt = 0
subscribe('child_process', () => {
  calledAt = performance.now()
})
const { ledger } = gateway.store
const add = ledger.add.bind(ledger)
// Called for every process, right after its start.
ledger.add = (entry) => {
  startedAt = performance.now()
  return add(entry)
}

const calls = []
const starts = []
for (let turn = 0; turn < TURNS; turn += 1) {
  const reply = new Promise((resolve) => {
    replied = resolve
  })
  const arrivedAt = performance.now()
  const message = { address: `conversation-${turn}`, platformId: `${turn}`, author: 'bench', text: 'hello' }
  await gateway.hostOf('bench').onMessage(message)
  await reply
  calls.push(calledAt - arrivedAt)
  starts.push(startedAt - arrivedAt)
}
console.log(JSON.stringify({ callMs: median(calls), startMs: median(starts) }))
await gateway.stop()

function median(times) {
  return times.toSorted((a, b) => a - b)[TURNS / 2]
}
