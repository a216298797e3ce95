/** What is asked of every agent in a whole gateway: that nothing is lost and nothing left when that ends or is killed. */
import assert from 'node:assert/strict'
import type { Case } from './cases.js'
import { countProcesses } from './sandbox.js'

const log = (label: string, value: unknown) => console.log(label, JSON.stringify(value, null, 1))
const answer = 'Here is the answer.'

const crash: Case = {
  name: 'gateway-crash',
  title: 'Gateway killed during a tool',
  async run({ agent, open }) {
    const sleepCommand = ['sleep', String(70_000_000 + Math.floor(Math.random() * 10_000_000))]
    const stage = await open((_request, index) =>
      index === 0
        ? { type: 'tool', name: agent.shellTool.name, input: agent.shellTool.input(sleepCommand.join(' ')) }
        : { type: 'text', deltas: [answer] },
    )
    const { gateway, model, sandbox } = stage
    await gateway.start()
    gateway.say('First question?')
    await gateway.until('the tool runs', async () => (await countProcesses(sleepCommand)) > 0)
    log('alive', await sandbox.processes())
    await gateway.kill()
    const killedAt = Date.now()
    await gateway.until('gone', async () => (await sandbox.processes()).length === 0, 20000).catch((e) => console.log(String(e)))
    log('left', [Date.now() - killedAt, await sandbox.processes(), await countProcesses(sleepCommand)])
    const before = model.requests.length
    await gateway.start()
    await gateway.until('answered', () => gateway.replies.length > 0)
    log('replies', gateway.replies)
    log('sessions', gateway.sessions())
    log('requests', model.requests.slice(before).map(({ messages, toolCalls, toolResults }) => ({ messages: messages.map(({role, text}) => [role, text.slice(0, 300)]), toolCalls, toolResults })))
    await gateway.stop()
    return 'x'
  },
}

const midStream: Case = {
  name: 'gateway-stream',
  title: 'Gateway killed during an answer',
  async run({ expected, open }) {
    let isSpoken = false
    async function* slow() {
      yield 'Half of '
      isSpoken = true
      await new Promise(() => {})
    }
    const stage = await open((_request, index) =>
      index === 0
        ? { type: 'text', deltas: slow() }
        : { type: 'text', deltas: [answer] },
    )
    const { gateway, model, sandbox } = stage
    await gateway.start()
    gateway.say('First question?')
    await gateway.until('it speaks', async () => isSpoken && (!expected.streams || gateway.events.some(({type}) => type === 'output')))
    log('alive', await sandbox.processes())
    await gateway.kill()
    const killedAt = Date.now()
    await gateway.until('gone', async () => (await sandbox.processes()).length === 0, 20000).catch((e) => console.log(String(e)))
    log('left', [Date.now() - killedAt, await sandbox.processes()])
    const before = model.requests.length
    await gateway.start()
    await gateway.until('answered', () => gateway.replies.length > 0)
    log('replies', gateway.replies)
    log('sessions', gateway.sessions())
    log('requests', model.requests.slice(before).map(({ messages, toolCalls, toolResults }) => ({ messages: messages.map(({role, text}) => [role, text.slice(0, 300)]), toolCalls, toolResults })))
    await gateway.stop()
    return 'x'
  },
}

const restart: Case = {
  name: 'gateway-restart',
  title: 'Gateway restarted between two turns',
  async run({ open }) {
    const stage = await open((_request, index) => ({ type: 'text', deltas: [['First answer.', 'Second answer.'][index] ?? ''] }))
    const { gateway, model } = stage
    await gateway.start()
    gateway.say('First question?')
    await gateway.until('answered', () => gateway.replies.length > 0)
    await gateway.stop()
    await gateway.start()
    gateway.say('Second question?')
    await gateway.until('answered', () => gateway.replies.length > 1)
    log('replies', gateway.replies)
    log('sessions', gateway.sessions())
    log('requests', model.requests.slice(1).map(({ messages, toolCalls, toolResults }) => ({ messages: messages.map(({role, text}) => [role, text.slice(0, 300)]), toolCalls, toolResults })))
    await gateway.stop()
    return 'x'
  },
}

const stop: Case = {
  name: 'gateway-stop',
  title: '/stop during a tool',
  async run({ agent, open }) {
    const sleepCommand = ['sleep', String(70_000_000 + Math.floor(Math.random() * 10_000_000))]
    const stage = await open((_request, index) =>
      index === 0
        ? { type: 'tool', name: agent.shellTool.name, input: agent.shellTool.input(sleepCommand.join(' ')) }
        : { type: 'text', deltas: [answer] },
    )
    const { gateway, model, sandbox } = stage
    await gateway.start()
    gateway.say('First question?')
    await gateway.until('the tool runs', async () => (await countProcesses(sleepCommand)) > 0)
    log('stop', await gateway.command('/stop'))
    log('left', [await sandbox.processes(), await countProcesses(sleepCommand)])
    gateway.say('Second question?')
    await gateway.until('answered', () => gateway.replies.length > 0)
    log('replies', gateway.replies)
    log('sessions', gateway.sessions())
    log('requests', model.requests.slice(1).map(({ messages, toolCalls, toolResults }) => ({ messages: messages.map(({role, text}) => [role, text.slice(0, 300)]), toolCalls, toolResults })))
    await gateway.stop()
    assert.ok(true)
    return 'x'
  },
}

export const gatewayCases: Case[] = [crash, midStream, restart, stop]
