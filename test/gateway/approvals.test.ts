// A whole gateway with an agent in the wire format of Claude Code that asks before it uses its tool.

import { describe, it } from 'vitest'
import { until } from '../kit/waiting.js'
import { Stage, type TestChannel } from '../kit/stage.js'

/** Asks for permission to run its prompt, and answers with the decision. */
const ASKING_AGENT = `#!/usr/bin/env node
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
if (process.argv.includes('--version')) {
  console.log('2.1.197 (Claude Code)')
  process.exit()
}
const at = process.argv.indexOf('--resume')
const session_id = at < 0 ? randomUUID() : process.argv[at + 1]
const print = (line) => console.log(JSON.stringify({ session_id, ...line }))
let asked = 0
for await (const line of createInterface({ input: process.stdin })) {
  const { type, request_id, request, message, response } = JSON.parse(line)
  if (type === 'control_request') {
    print({ type: 'control_response', response: { subtype: 'success', request_id } })
    if (request.subtype === 'interrupt') print({ type: 'result', subtype: 'error_during_execution', is_error: true })
  } else if (type === 'user') {
    print({ type: 'system', subtype: 'init', model: 'm', tools: ['Bash'] })
    const input = { command: JSON.stringify(message.content).match(/make \\w+/)[0] }
    print({
      type: 'control_request',
      request_id: 'ask-' + (asked += 1),
      request: { subtype: 'can_use_tool', tool_name: 'Bash', input },
    })
  } else if (response.request_id.startsWith('ask-')) {
    const { behavior, updatedInput, message: words } = response.response
    const result = behavior === 'allow' ? 'Done: ' + updatedInput.command : 'Not done: ' + words
    print({ type: 'result', subtype: 'success', is_error: false, result, num_turns: 1, total_cost_usd: 0, modelUsage: {} })
  }
}
`

function setup(onTestFinished: ConstructorParameters<typeof Stage>[0]) {
  const stage = new Stage(onTestFinished)
  const path = stage.executable('claude', ASKING_AGENT)
  const start = (file: object = {}) =>
    stage.start({ BACKEND_CLI_PATH: path, AGENT_PERMISSIONS: 'ask', DRAIN_TIMEOUT_MS: '0' }, file)
  return { stage, start }
}

async function question({ replies }: TestChannel, count = 1) {
  return until(() => replies.filter((reply) => reply.question)[count - 1], 'a question')
}

async function answer({ replies }: TestChannel, address: string): Promise<string> {
  return until(
    () => replies.find((reply) => reply.address === address && !reply.question)?.text,
    `an answer in ${address}`,
  )
}

describe.concurrent('an agent that asks', () => {
  it('waits for the answer while other conversations continue, and gets it', async ({ expect, onTestFinished }) => {
    const { start } = setup(onTestFinished)
    const { channel, gateway } = await start()
    await channel.say('a', 'make first')
    const first = await question(channel)
    await channel.say('b', 'make second')
    await question(channel, 2)
    const refused = await channel.command('b', '/deny')
    const second = await answer(channel, 'b')
    const waiting = channel.replies.some((reply) => reply.address === 'a' && !reply.question)
    const allowed = await channel.command('a', `/approve ${first.question?.id.slice(0, 8)} always`)
    const done = await answer(channel, 'a')
    await channel.say('c', 'make first')
    expect([refused, second, waiting, allowed, done, await answer(channel, 'c')]).toEqual([
      'Denied: Bash: make second',
      'Not done: The person who was asked denied this.',
      false,
      'Allowed, now and always: Bash: make first',
      'Done: make first',
      'Done: make first',
    ])
    expect((await gateway.store.approvals.list({}, 9)).length).toEqual(2)
  })

  it('asks again when its gateway was stopped while it waited', async ({ expect, onTestFinished }) => {
    const { start } = setup(onTestFinished)
    const before = await start()
    await before.channel.say('a', 'make first')
    const asked = await question(before.channel)
    await before.stop()
    const { channel, gateway } = await start()
    const again = await question(channel)
    const late = await channel.host().onButton('allow', asked.question?.id ?? '', 'ann')
    const told = await channel.host().onButton('allow', again.question?.id ?? '', 'ann')
    const states = (await gateway.store.approvals.list({}, 9)).map(({ state }) => state)
    expect([late.text, told.text, await answer(channel, 'a'), states.toSorted((a, b) => a.localeCompare(b))]).toEqual([
      'Too late. No longer asked: the run has ended, or the agent continued without it: Bash: make first',
      'Allowed: Bash: make first',
      'Done: make first',
      ['allowed', 'withdrawn'],
    ])
  })

  it('is withdrawn by /stop', async ({ expect, onTestFinished }) => {
    const { start } = setup(onTestFinished)
    const { channel, gateway } = await start()
    await channel.say('a', 'make first')
    const asked = await question(channel)
    const told = await channel.command('a', '/stop')
    const approval = await gateway.store.approvals.get(asked.question?.id ?? '')
    expect([told, approval?.state, await channel.command('a', '/approve')]).toEqual([
      expect.stringMatching(/^Stopped claude after \d+ s/),
      'withdrawn',
      'Nothing is waiting for approval here.',
    ])
  })

  it('honours the settings of a configured project', async ({ expect, onTestFinished }) => {
    const { start, stage } = setup(onTestFinished)
    const { gateway } = await start({ projects: { free: { directory: stage.workingDir, agentPermissions: 'allow' } } })
    expect((await gateway.store.projects.get('free'))?.agentPermissions).toEqual('allow')
  })
})
