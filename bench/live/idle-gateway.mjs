// A gateway from the build, as operators run it. Takes one turn in each of as many conversations as its first argument
// says, prints a line, and ends when its input ends.
import { once } from 'node:events'
import { loadConfig } from '../../dist/config.js'
import { startGateway } from '../../dist/gateway.js'
import { createLog } from '../../dist/log.js'

const [conversations, prompt] = process.argv.slice(2)
const environment = process.env

let replied = () => {}
const channel = {
  name: 'bench',
  start: async () => {},
  send: async ({ text, isError }) => replied(isError ? `The answer was: ${text}` : undefined),
  stop: async () => {},
  close: async () => {},
}
const log = createLog({ level: 'silent' })
const gateway = await startGateway(loadConfig(environment), { environment, log, channels: [channel] })
for (let conversation = 1; conversation <= Number(conversations); conversation += 1) {
  const reply = new Promise((resolve) => {
    replied = resolve
  })
  const address = `conversation-${conversation}`
  await gateway.hostOf('bench').onMessage({ address, platformId: address, author: 'bench', text: prompt })
  const problem = await reply
  if (problem !== undefined) throw new Error(problem)
}
console.log('ready')
process.stdin.resume()
await once(process.stdin, 'end')
await gateway.stop()
