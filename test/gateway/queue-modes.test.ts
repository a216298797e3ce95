// What happens to messages that arrive while an agent works, through a whole gateway and a warm process.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { until } from '../kit/waiting.js'
import { type RunningGateway, Stage } from '../kit/stage.js'

/** In the wire format of Pi: works until the file `go` exists, then answers with all its input. With `dies` in the
 *  directory it exits instead, and the one-shot process in its place answers at once. */
const PI_AGENT = `#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
const print = (message) => console.log(JSON.stringify(message))
const answer = (text, stopReason = 'stop') =>
  print({ type: 'message_end', message: { role: 'assistant', content: [{ type: 'text', text }], stopReason } })
if (!process.argv.includes('rpc')) {
  const asked = await text(process.stdin)
  print({ type: 'session', id: 's1' })
  answer('Anew: ' + asked)
  print({ type: 'agent_end', messages: [] })
  process.exit(0)
}
let told = []
let unread = []
let isWorking = false
const read = (message) => {
  told.push(message)
  print({ type: 'message_start', message: { role: 'user' } })
}
const end = (reason) => {
  isWorking = false
  answer('Told: ' + told.join(' | '), reason)
  print({ type: 'agent_end', messages: [] })
}
setInterval(() => {
  if (!isWorking) return
  if (unread.length > 0) read(unread.shift())
  else if (existsSync('dies')) process.exit(9)
  else if (existsSync('go')) end()
}, 20)
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, type, message } = JSON.parse(line)
  const data = { sessionId: 's1', isStreaming: isWorking, isCompacting: false }
  print({ id, type: 'response', command: type, success: true, ...(type === 'get_state' && { data }) })
  if (type === 'steer') unread.push(message)
  if (type === 'abort') end('aborted')
  if (type !== 'prompt') return
  isWorking = true
  told = []
  print({ type: 'agent_start' })
  read(message)
})
`

describe.concurrent('a message that comes while the agent works', () => {
  it('is passed to the agent, and part of its answer', async ({ expect, onTestFinished }) => {
    const { stage, running, begin } = await open(onTestFinished, 'steer')
    const { channel, gateway } = running
    await begin('one')
    const second = await channel.say('a', 'two')
    await until(() => noticesOf(running).length > 0, 'that the agent was told')
    const during = await channel.command('a', '/status')
    writeFileSync(join(stage.workingDir, 'go'), '')
    await until(() => channel.replies.length > 0, 'an answer')
    expect([
      channel.replies.map(({ text, notes }) => [text, notes]),
      noticesOf(running),
      during.includes('queue: working, 0 waiting'),
      (await gateway.store.inbox.get(second.messageId))?.state,
    ]).toEqual([
      [['Told: one | two', ['This also answers the message after it.']]],
      ['Passed on to the running agent: two'],
      true,
      'answered',
    ])
  })

  it("is asked again together with the first when the agent's process is lost", async ({ expect, onTestFinished }) => {
    const { stage, running, begin } = await open(onTestFinished, 'steer')
    const { channel } = running
    await begin('one')
    await channel.say('a', 'two')
    await until(() => noticesOf(running).length > 0, 'that the agent was told')
    writeFileSync(join(stage.workingDir, 'dies'), '')
    await until(() => channel.replies.length > 0, 'an answer')
    expect(channel.texts()).toEqual([
      expect.stringMatching(/^Anew: \[Your process ended[^]*\]\n\none\n\n\[Another .*\]\n\ntwo$/),
    ])
  })

  it('interrupts the running turn and comes next, in the same process', async ({ expect, onTestFinished }) => {
    const { stage, running, begin } = await open(onTestFinished, 'interrupt')
    const { channel, gateway } = running
    const first = await begin('one')
    const second = await channel.say('a', 'two')
    await until(async () => (await gateway.store.inbox.get(first))?.state === 'cancelled', 'the end of the first')
    writeFileSync(join(stage.workingDir, 'go'), '')
    await until(() => channel.replies.length > 0, 'an answer')
    expect([second, channel.texts(), stage.alive().length]).toEqual([
      expect.objectContaining({ interrupts: first, notes: [expect.stringContaining('stopped')] }),
      ['Told: two'],
      1,
    ])
  })

  it('waits, and shares the next turn with others, if the person has chosen that', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, running, begin } = await open(onTestFinished, 'followup')
    const { channel } = running
    await begin('one')
    const chosen = await channel.command('a', '/queue collect')
    await channel.say('a', 'two')
    await channel.say('a', 'three')
    writeFileSync(join(stage.workingDir, 'go'), '')
    await until(() => channel.replies.length > 1, 'two answers')
    expect([chosen, channel.texts()]).toEqual([
      expect.stringMatching(/^The mode is collect/),
      ['Told: one', 'Told: two\n\n[Another message of this conversation:]\n\nthree'],
    ])
  })
})

async function open(onTestFinished: ConstructorParameters<typeof Stage>[0], mode: string) {
  const stage = new Stage(onTestFinished)
  const running = await stage.start({
    AGENT_BACKEND: 'pi',
    BACKEND_CLI_PATH: stage.executable('pi-agent.mjs', PI_AGENT),
    AGENT_MODE: 'live',
    QUEUE_MODE: mode,
  })
  const begin = async (text: string): Promise<string> => {
    const { messageId } = await running.channel.say('a', text)
    await until(() => running.channel.shown.length > 0, 'the beginning of a turn')
    return messageId
  }
  return { stage, running, begin }
}

function noticesOf({ channel }: RunningGateway): string[] {
  return channel.shown.flatMap(({ event }) => (event.type === 'notice' ? [event.content] : []))
}
